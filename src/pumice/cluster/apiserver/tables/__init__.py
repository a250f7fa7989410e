"""Objects as `kubectl get` shows them: rows of a Table."""
