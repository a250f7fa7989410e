"""Who asks, and what the user may do: tokens, certificates, RBAC."""
