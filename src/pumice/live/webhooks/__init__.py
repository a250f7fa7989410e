"""Volcano's admission webhooks over HTTPS, in the place of vc-webhook-manager.

`hooks` is the table of paths and of the configurations that make an API server call them, and registers these; `review` answers calls by
the admission rules; `server` keeps the certificates that are served, and ties all together.
"""
