"""The embedded control plane's API server: a store of Kubernetes objects, and the Kubernetes API over HTTP in front of it.

`Store` is the API without HTTP, for components in the same process; `Server` serves it on an address. Both take further admission rules
as `AdmissionRule`s.
"""

from pumice.cluster.apiserver.admission import AdmissionAttributes, AdmissionLister, AdmissionRefusal, AdmissionRule, UserInfo, WriteOptions
from pumice.cluster.apiserver.bootstrap import bootstrap
from pumice.cluster.apiserver.deletion import DeleteOptions
from pumice.cluster.apiserver.journal import export_cluster, import_cluster
from pumice.cluster.apiserver.patch import PatchRequest
from pumice.cluster.apiserver.server import Server
from pumice.cluster.apiserver.status import StatusError
from pumice.cluster.apiserver.store import ListPage, Store

__all__ = [
    "AdmissionAttributes",
    "AdmissionLister",
    "AdmissionRefusal",
    "AdmissionRule",
    "DeleteOptions",
    "ListPage",
    "PatchRequest",
    "Server",
    "StatusError",
    "Store",
    "UserInfo",
    "WriteOptions",
    "bootstrap",
    "export_cluster",
    "import_cluster",
]
