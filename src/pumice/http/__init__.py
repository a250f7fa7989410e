"""HTTP/1.1 of our own. No policy.

As a client: answers, connections with TLS and through proxies, kept alive in a pool. Half of what a scheduler spends on a bind is its HTTP
client, and a buffer of a quarter megabyte for each connection, which asyncio's own TLS keeps, is most of what it would hold. So this one
does only what an API server needs: one request at a time on a connection, nothing repeated, unzipped where an answer comes zipped.

As a server: a protocol that parses by hand (`server`), for the embedded API server and, by `listener`, for probes and webhooks.
"""
