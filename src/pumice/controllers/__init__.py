"""The controllers of a cluster, which work besides the scheduler, as pure functions: objects in, writes out.

A controller says which kinds it watches, which keys a change touches, and what to write for one key (`controller`). It sees the cluster
through a small read-only protocol (`Lister`) and returns writes, which are values that its caller carries out.
Nothing here uses a client, a clock or randomness: time is an argument, names are derived from uids, key pairs are passed in.
`work_queue` says which key is next, `in_memory` is a cluster in dictionaries that runs controllers until nothing changes, and `registry`
lists all controllers. Admission rules (`admission`) have the same shape: an object and a lister in, an object or problems out.
"""
