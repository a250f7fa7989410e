"""The commands. The module of a command is imported when the command is called, so that the program starts quickly."""
