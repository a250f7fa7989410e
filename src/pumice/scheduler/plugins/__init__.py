"""The rules: Volcano's plugins and kube-scheduler's."""
