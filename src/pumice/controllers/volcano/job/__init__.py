"""Volcano's Job: a set of tasks whose pods start, fail, restart and end together.

`request` says what happened, `policies` which action that means, `state` what an action does in each phase; `sync` and `kill`
are the two things that can be done, and `controller` puts them together. The rest makes the objects a job consists of:
`pods`, `group` (its PodGroup), `volumes`, and whatever its `plugins` add.
"""
