"""Where objects are kept: in memory, in a journal on disk, and as events for those who watch."""
