"""The session: hooks and how plugins' answers combine, statements that can be undone, decisions as values, reasons with numbers."""
