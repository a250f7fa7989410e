"""Recordings: what a scheduler saw and decided, in files from which any of its cycles can be decided anew.

    tape ─▶ Writer (a thread) ─▶ recording-00000001.pumice ─▶ Replay ─▶ the kept state as it was before a cycle

`entries.py` is what a file says, `files.py` how it stands on disk, `snapshot.py` the state with which each file begins, `replay.py` goes
through it again, `usage.py` adds up who had what. `anonymous.py` hides names. Nothing here decides: replays call the scheduler's cycle.
"""
