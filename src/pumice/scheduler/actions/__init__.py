"""What a cycle does, one file an action. `ACTIONS` is found by looking through this package."""
