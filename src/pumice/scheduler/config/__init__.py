"""Configuration files, read into one `Policy`: Volcano's (and kube-batch's) and kube-scheduler's."""
