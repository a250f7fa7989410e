"""The embedded control plane's API server: a store of Kubernetes objects, and the Kubernetes API over HTTP in front of it.

`Store` is the API without HTTP, for components in the same process; `Server` serves it on an address. Both take further admission rules
as `AdmissionRule`s. Names are loaded when first used: who only checks objects by the rules in this folder loads no server.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pumice.cluster.apiserver.admission.attributes import (
        AdmissionAttributes as AdmissionAttributes,
        AdmissionLister as AdmissionLister,
        AdmissionRefusal as AdmissionRefusal,
        AdmissionRule as AdmissionRule,
        UserInfo as UserInfo,
        WriteOptions as WriteOptions,
    )
    from pumice.cluster.apiserver.archive import export_cluster as export_cluster, import_cluster as import_cluster
    from pumice.cluster.apiserver.deletion import DeleteOptions as DeleteOptions
    from pumice.cluster.apiserver.patches.patch import PatchRequest as PatchRequest
    from pumice.cluster.apiserver.readable_store import ListPage as ListPage
    from pumice.cluster.apiserver.server import Server as Server
    from pumice.cluster.apiserver.status import StatusError as StatusError
    from pumice.cluster.apiserver.store import Store as Store

_WHERE = {
    "admission.attributes": ("AdmissionAttributes", "AdmissionLister", "AdmissionRefusal", "AdmissionRule", "UserInfo", "WriteOptions"),
    "deletion": ("DeleteOptions",),
    "archive": ("export_cluster", "import_cluster"),
    "patches.patch": ("PatchRequest",),
    "server": ("Server",),
    "status": ("StatusError",),
    "readable_store": ("ListPage",),
    "store": ("Store",),
}
_MODULES = {name: module for module, names in _WHERE.items() for name in names}

__all__ = sorted(_MODULES)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    return value
