"""An HTTP/1.1 client and server of our own, without policy.

The client: connections with TLS and through proxies, kept alive in a pool. Half of the time of a bind is spent in a scheduler's HTTP
client, and asyncio's own TLS keeps a buffer of a quarter megabyte for each connection, which would be most of the client's memory. So this
client does only what an API server needs: one request at a time on a connection, no request repeated, zipped answers unzipped.

The server: a protocol that parses by hand (`server`), for the embedded API server and, through `listener`, for probes and webhooks.
"""
