"""The Kubernetes objects in files that a user names."""

from collections.abc import Iterable

from pumice.api.files import streams
from pumice.api.manifests import Objects, read_data


def read_all(paths: Iterable[str], namespace: str = "default") -> Objects:
    """Read files, folders (all .yaml, .yml, .json below them, sorted) and "-" for standard input. Objects that state no namespace are of
    this one. Raises InputError with all faults."""
    objects = Objects(namespace=namespace)
    for path in paths:
        for where, data in streams(path, deep=True):
            read_data(data, where, objects)
    objects.check()
    return objects
