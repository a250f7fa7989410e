"""ssh: the job's pods log in to each other without a password.

A Secret holds one key pair for the whole job, which every pod accepts, and an SSH client configuration that names every pod.
Pods mount a folder within the volume: the volume itself may be written by everybody, and sshd trusts no keys in such a place.
Arguments: --ssh-key-file-path (/root/.ssh), --ssh-private-key and --ssh-public-key (made if not given), --ssh-port (22).
"""

import base64
from collections.abc import Callable, Sequence
from typing import NamedTuple

from pumice.api import Object, kinds, name_of
from pumice.controllers.controller import Lister
from pumice.controllers.volcano.job import spec
from pumice.controllers.volcano.job.plugins.plugin import JobPlugin, flags, hosts, mount, owned, port, present, removed
from pumice.controllers.writes import Create, Write

FILES = ("id_rsa", "id_rsa.pub", "authorized_keys", "config")
FOLDER = ".ssh"
PORT = "22"
READ_BY_OWNER = 0o600
BITS = 2048


class SshKeyPair(NamedTuple):
    private_pem: str
    public_openssh: str  #: one line


KeyPairs = Callable[[], SshKeyPair]  #: makes a new pair each time it is called


class SpareKeyPairs:
    """Key pairs that were made in advance, as it takes long to make one."""

    def __init__(self, make: KeyPairs) -> None:
        self._make = make
        self._made: list[SshKeyPair] = []

    def __bool__(self) -> bool:
        return bool(self._made)

    def prepare(self) -> None:
        self._made.append(self._make())

    def take(self) -> SshKeyPair:
        return self._made.pop() if self._made else self._make()


class Ssh(JobPlugin):
    def __init__(self, arguments: Sequence[str], key_pairs: KeyPairs) -> None:
        given = flags(arguments, {"ssh-key-file-path": "/root/.ssh", "ssh-private-key": "", "ssh-public-key": "", "ssh-port": PORT})
        self.path, self.port = given["ssh-key-file-path"], port(given["ssh-port"], PORT)
        self._given = SshKeyPair(given["ssh-private-key"], given["ssh-public-key"])
        self._key_pairs = key_pairs

    @property
    def makes_keys(self) -> bool:
        return not all(self._given)

    def keep(self, job: Object, lister: Lister) -> list[Write]:
        if present(job, kinds.SECRET, secret_name(name_of(job)), lister) is not None:
            return []
        pair = self._key_pairs() if self.makes_keys else self._given
        texts = (pair.private_pem, pair.public_openssh, pair.public_openssh, _client_configuration(job, self.port))
        data = {file: base64.b64encode(text.encode()).decode() for file, text in zip(FILES, texts, strict=True)}
        return [Create(owned(job, kinds.SECRET, secret_name(name_of(job)), type="Opaque", data=data), job)]

    def remove(self, job: Object, lister: Lister) -> list[Write]:
        return removed(job, kinds.SECRET, secret_name(name_of(job)), lister)

    def dress(self, pod: Object, job: Object, task: Object, index: int) -> None:
        items = [{"key": file, "path": f"{FOLDER}/{file}"} for file in FILES]
        secret = {"secretName": secret_name(name_of(job)), "items": items, "defaultMode": READ_BY_OWNER}
        mount(pod, {"name": secret_name(name_of(job)), "secret": secret}, self.path, FOLDER)


def secret_name(job: str) -> str:
    return f"{job}-ssh"


def _client_configuration(job: Object, port: int) -> str:
    lines = ["StrictHostKeyChecking no", "UserKnownHostsFile /dev/null"]
    for task in spec.tasks(job):
        for host in hosts(job, task):
            lines += [f"Host {host.partition('.')[0]}", f"  HostName {host}", f"  Port {port}"]
    return "\n".join(lines) + "\n"


def rsa_key_pair() -> SshKeyPair:
    """A new, random key pair. Controllers are pure functions, so their caller passes this function to them."""
    from cryptography.hazmat.primitives import serialization  # imported only if keys are made
    from cryptography.hazmat.primitives.asymmetric import rsa

    key = rsa.generate_private_key(public_exponent=65537, key_size=BITS)
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption())
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    return SshKeyPair(private.decode(), public.decode())
