"""Volcano's Job: a set of tasks whose pods start, fail, restart and end together.

`event` makes events from changes, `policy` finds the action for an event, `state` says what an action does in each phase; `controller`
carries it out, with `pods`. `spec` reads a Job's fields; `plugins` add objects beside its pods and change the pods.
"""
