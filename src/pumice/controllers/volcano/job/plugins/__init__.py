"""The plugins of a job: they add objects beside its pods, and environment variables, volumes or commands in the pods.

All are subclasses of `JobPlugin`. Some imply other plugins: a framework whose pods must find each other implies `svc`, MPI also
`ssh`. Arguments are written like command line flags.
"""

from collections.abc import Callable, Mapping, Sequence

from pumice.api import Object, spec_of
from pumice.controllers.volcano.job.plugins.distributed_framework import HcclRank, Mpi, Pytorch, Ray, Tensorflow
from pumice.controllers.volcano.job.plugins.plugin import Env, JobPlugin
from pumice.controllers.volcano.job.plugins.ringsconfigmap import RingsConfigMap
from pumice.controllers.volcano.job.plugins.ssh import KeyPairs, SpareKeyPairs, Ssh, SshKeyPair
from pumice.controllers.volcano.job.plugins.svc import Svc

PLUGINS: Mapping[str, Callable[[Sequence[str]], JobPlugin]] = {
    "env": Env,
    "svc": Svc,
    "tensorflow": Tensorflow,
    "pytorch": Pytorch,
    "mpi": Mpi,
    "ray": Ray,
    "hcclrank": HcclRank,
    "ringsconfigmap": RingsConfigMap,
}  #: the plugins that need only their arguments

NAMES = frozenset({*PLUGINS, "ssh"})
PORTS = {
    **dict.fromkeys(("tensorflow", "pytorch", "mpi"), ("port",)),
    "ray": ("port", "dashboardPort", "clientServerPort"),
    "ssh": ("ssh-port",),
}  #: the flags of plugins that state ports
IMPLIED = {"tensorflow": ("svc",), "pytorch": ("svc",), "mpi": ("svc", "ssh"), "ray": ("svc",)}


def with_implied(plugins: Mapping[str, Sequence[str] | None]) -> dict[str, list[str]]:
    """The plugins as the job states them, and the plugins that they imply, without arguments."""
    stated = {name: list(arguments or ()) for name, arguments in plugins.items()}
    implied: dict[str, list[str]] = {other: [] for name in stated for other in IMPLIED.get(name, ()) if other not in stated}
    return {**stated, **implied}


def plugins_of(job: Object, key_pairs: KeyPairs) -> dict[str, JobPlugin]:
    """A job's plugins in the order of their names, but ssh last. Unknown names are left out: admission refuses them."""
    stated = with_implied(spec_of(job).get("plugins") or {})
    made: dict[str, JobPlugin] = {name: PLUGINS[name](stated[name]) for name in sorted(stated) if name in PLUGINS}
    if "ssh" in stated:
        made["ssh"] = Ssh(stated["ssh"], key_pairs)
    return made


__all__ = ["IMPLIED", "NAMES", "PORTS", "JobPlugin", "KeyPairs", "SpareKeyPairs", "Ssh", "SshKeyPair", "plugins_of", "with_implied"]
