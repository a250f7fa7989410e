"""The page: the cluster, its queues and jobs, and what the scheduler decides, in a browser. Beside an API server, users can also act there.

`recorder.py` observes the cycles of a scheduler. `rows.py` makes the rows of nodes, queues and jobs. `sent_rows.py` finds the rows that
have changed, `last_minutes.py` keeps the last minutes; `server_sent_events.py` sends changes to each reader at its own pace. `server.py`
answers the readers that `reader_access.py` admits, `answers.py` their questions about the state; `simulations.py` runs the simulator from
it. In the browser (`static/`) a store keeps what was sent, and views are functions of the store. While the page has no readers, only the
past is kept, at little cost.
"""
