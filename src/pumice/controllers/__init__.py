"""What keeps a cluster going besides the scheduler, as pure functions: objects in, writes out.

A controller says which kinds it watches, which keys a change touches, and what to write for one key (`controller`); it sees the cluster
through a small read-only protocol (`lister`) and answers with writes, values that somebody else carries out.
Nothing here knows a client, a clock or chance: time is an argument, names are derived from uids, key pairs are passed in.
`work_queue` says which key is next, `in_memory` is a cluster in dictionaries and runs them until nothing changes, and `registry` lists
all controllers. Admission rules (`admission`) have the same shape: an object and a lister in, an object or problems out.
"""
