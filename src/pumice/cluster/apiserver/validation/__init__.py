"""Validation: the reasons for which the API server refuses an object of a built-in kind, in Kubernetes' words.

Rules that concern one field are declared in the tables of types; `strategies` calls the others by kind.
"""
