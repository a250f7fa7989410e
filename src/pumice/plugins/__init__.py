"""The rules, one file a plugin. `pumice.plugins.registry` finds them, and those of others."""
