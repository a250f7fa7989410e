"""The `Access` of a pod: what the kubelet mounts of its service account, and the API server's address in the environment."""

from collections.abc import Mapping
from pathlib import Path

from pumice.api import InputError
from pumice.api.files import file_bytes
from pumice.client.access import Access, TimeSource, TokenFile
from pumice.client.tls import Trust, authority_file

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


def in_cluster(environ: Mapping[str, str], folder: Path, clock: TimeSource) -> Access:
    """The `Access` of the pod's service account. Raises InputError if its files cannot be read."""
    host, port = environ["KUBERNETES_SERVICE_HOST"], environ.get("KUBERNETES_SERVICE_PORT", "443")
    try:
        namespace = (folder / "namespace").read_text().strip()
    except OSError as error:
        raise InputError(f"the pod's service account cannot be read ({error.strerror})", where=str(error.filename)) from None
    authority = authority_file(folder / "ca.crt", lambda: Trust(file_bytes(folder / "ca.crt")), clock)
    server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    return Access(server, TokenFile(folder / "token", clock), authority, namespace)
