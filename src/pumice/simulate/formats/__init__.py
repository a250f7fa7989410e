"""One file an input format. Each has `workload(path)`, which streams jobs, and `nodes(path)` if clusters are written in it as well."""
