"""HTTP/1.1 as a client speaks it: answers, connections with TLS and through proxies, kept alive in a pool. No policy.

Half of what a scheduler spends on a bind is its HTTP client, and a buffer of a quarter megabyte for each connection, which asyncio's own
TLS keeps, is most of what it would hold. So this one does only what an API server needs: one request at a time on a connection, nothing
repeated, nothing decompressed.
"""
