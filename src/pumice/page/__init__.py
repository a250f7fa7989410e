"""The page: the cluster, its queues and jobs, and what the scheduler decides, in a browser; beside an API server it acts, too.

`recorder.py` follows the cycles of a scheduler, `rows.py` says what of a node, a queue, a job is shown, `sent_rows.py` finds what has
changed since readers were told and keeps the last minutes, `feed.py` sends it to each at the reader's own pace, `server.py` answers those
whom `readers.py` lets in. `answers.py` is what can be asked of the state, `simulations.py` what is played from it. In the browser
(`static/`) a store takes what is sent and views are functions of it. While nobody reads, only the past is kept, at little cost.
"""
