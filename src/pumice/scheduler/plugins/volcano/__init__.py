"""The rules, one file a plugin. `pumice.scheduler.registry` finds them, and those of others."""
