"""The scheduler against an API server, over any `Transport`: a real server, the embedded store, or a test's memory.

    reflectors ─▶ EventHandlers ─▶ Cluster ─▶ cycle() ─▶ Decisions ─▶ requests_of() ─▶ Sender ─▶ Transport
                              ▲                                                    │
                              └───── Outcomes: assume, confirm, forget ◀────────┘

`loop.Scheduler` ties them together. The kept state has one writer (`single_writer.py`): while a cycle decides, changes wait for its end.
"""
