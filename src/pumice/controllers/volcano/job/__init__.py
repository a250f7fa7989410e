"""Volcano's Job: a set of tasks whose pods start, fail, restart and end together.

`event` says what happened and which action that means, `state` what an action does in each phase; `controller` carries it out, with
`pods`. `spec` reads a Job's fields; `plugins` add what is beside its pods and in them.
"""
