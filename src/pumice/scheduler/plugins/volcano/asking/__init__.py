"""What the extender plugin says to its service, and how it reads the answers."""
