"""The four types of patches, and who owns which field."""
