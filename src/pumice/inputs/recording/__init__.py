"""Recordings: what a scheduler saw and decided, in files from which any of its cycles can be decided anew.

    tape ─▶ Writer (a thread) ─▶ recording-00000001.pumice ─▶ Replay ─▶ the kept state as it was before a cycle

`entry_format.py` holds the entries of a file, `file_format.py` its form on disk, `snapshot.py` the state with which each file begins.
`replay.py` replays a recording, `usage.py` adds up the usage of queues and users, `anonymous.py` hides names. Nothing here decides: replays
call the scheduler's cycle.
"""
