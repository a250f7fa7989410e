"""OpenAPI of all kinds, by which kubectl checks and explains: one document for each group version, and all in one."""
