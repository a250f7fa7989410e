"""Answers that stay open: watches, logs, commands in containers, forwarded ports."""
