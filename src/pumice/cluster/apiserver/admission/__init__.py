"""Admission: what may change an object before it is stored, and what may refuse it: built-in rules, webhooks, policies."""
