"""The scheduler against an API server, over any `Transport`: a real server, the embedded store, or a test's memory.

    reflectors ─▶ Ingest ─▶ Cluster ─▶ cycle() ─▶ Decisions ─▶ effects (pure) ─▶ Sender ─▶ Transport
                              ▲                                                      │
                              └──────────── Ledger: assume, confirm, forget ◀────────┘

`loop.Scheduler` ties them together. Everything runs in one thread: a cycle never awaits, so events stand still while it decides.
"""
