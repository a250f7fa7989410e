"""Volcano's admission webhooks over HTTPS, in the place of vc-webhook-manager.

`hooks` is the table of paths and of the configurations that make an API server call them, and registers these, `review` answers a call
(pure), `certificates` keeps the pair that is served, `answers` serves the rules, `server` ties all together.
"""
