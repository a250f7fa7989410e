"""The commands. Each module is imported when its command is called, so that starting is quick."""
