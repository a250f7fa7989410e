"""The kinds that the API server knows, and their fields: built-in ones from the tables in `types/`, custom ones from their definitions."""
