"""Validation: the reasons for which the API server refuses an object of a built-in kind, in Kubernetes' words.

Rules of fields and between fields are lines of the tables of types. What takes more than a line is a function that such a line names, or
that `strategies` calls by kind.
"""
