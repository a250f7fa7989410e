"""Make an `Access` from a kubeconfig context, or from the service account of the pod we run in.

Programs call `find`. It takes a kubeconfig, named by a flag or KUBECONFIG or at its usual place, else the pod's service account
(`in_cluster_config.py`). The server's certificate authority, our own certificate and tokens are read again when their files change.
"""

import base64
import binascii
import os
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from pumice.api import InputError
from pumice.api.files import file_bytes
from pumice.client.access import Access, Credentials, Fixed, Keys, TimeSource, TokenFile, TrustSource
from pumice.client.exec_credentials import EXEC_VERSIONS, ExecPlugin
from pumice.client.in_cluster_config import SERVICE_ACCOUNT, in_cluster
from pumice.client.kubeconfig import ChosenContext, ClusterEntry, Kubeconfig, KubeconfigEntry, UserEntry, files
from pumice.client.proxy_environment import from_environment
from pumice.client.renewed_files import RenewedFiles
from pumice.client.tls import KeyPair, Trust, authority_file, usable
from pumice.http.messages import basic

EXEC_EXTENSION = "client.authentication.k8s.io/exec"  #: the cluster extension that is handed to exec plugins


def find(
    kubeconfig: str = "",
    *,
    context: str = "",
    master: str = "",
    environ: Mapping[str, str] = os.environ,
    service_account: Path = SERVICE_ACCOUNT,
    clock: TimeSource = time.monotonic,
    wall: TimeSource = time.time,
) -> Access:
    """The `Access` to the API server. `master` replaces the server's URL. Raises InputError."""
    paths = files(kubeconfig, dict(environ))
    if paths:
        return from_context(Kubeconfig(paths).choose(context), master=master, environ=environ, clock=clock, wall=wall)
    if "KUBERNETES_SERVICE_HOST" in environ:
        return in_cluster(environ, service_account, clock)
    if master:
        return Access(_server(master, "--master"), Fixed(), proxy=from_environment(master, environ))
    raise InputError("no kubeconfig was found and this is not a pod; name a file with --kubeconfig or in KUBECONFIG")


def from_context(
    chosen: ChosenContext,
    *,
    master: str = "",
    environ: Mapping[str, str] = os.environ,
    clock: TimeSource = time.monotonic,
    wall: TimeSource = time.time,
) -> Access:
    entry, cluster = chosen.cluster, _cluster(chosen.cluster)
    server = _server(master, "--master") if master else _cluster_server(entry, cluster)
    return Access(
        server=server,
        credentials=_credentials(chosen, clock, wall),
        trust=_trust_source(entry, cluster, clock),
        namespace=chosen.context.namespace or "default",
        proxy=_proxy(entry, cluster, server, environ),
        headers=_impersonation(chosen.user),
    )


def _cluster(entry: KubeconfigEntry) -> ClusterEntry:
    value: ClusterEntry = entry.value
    return value


def _cluster_server(entry: KubeconfigEntry, cluster: ClusterEntry) -> str:
    if not cluster.server:
        raise entry.error("is empty; write the API server's URL", "server")
    try:
        return _server(cluster.server, "")
    except InputError as error:
        raise entry.error(error.message, "server") from None


def _server(url: str, where: str) -> str:
    url = url if "://" in url else f"http://{url}"
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InputError(f'"{url}" is not a URL; write one such as "https://10.0.0.1:6443"', where=where)
    return url.rstrip("/")


def _trust_source(entry: KubeconfigEntry, cluster: ClusterEntry, clock: TimeSource) -> TrustSource:
    read = partial(_trust, entry, cluster)
    if cluster.certificate_authority and not cluster.certificate_authority_data:
        return authority_file(entry.folder / cluster.certificate_authority, read, clock)
    return read()


def _trust(entry: KubeconfigEntry, cluster: ClusterEntry) -> Trust:
    authority = _material(entry, cluster.certificate_authority, cluster.certificate_authority_data, "certificate-authority")
    if cluster.insecure_skip_tls_verify and authority:
        raise entry.error("has no sense together with a certificate authority; remove one of them", "insecure-skip-tls-verify")
    return Trust(authority, cluster.tls_server_name, cluster.insecure_skip_tls_verify)


def _proxy(entry: KubeconfigEntry, cluster: ClusterEntry, server: str, environ: Mapping[str, str]) -> str:
    if not cluster.proxy_url:
        return from_environment(server, environ)
    if urlsplit(cluster.proxy_url).scheme not in ("http", "https"):
        raise entry.error(f'"{cluster.proxy_url}" is not supported; write an http or https URL', "proxy-url")
    return cluster.proxy_url


def _material(entry: KubeconfigEntry, path: str, data: str, field: str) -> bytes:
    """The key material from the field's data, else from the file that the field names, as in kubectl. Raises InputError."""
    if data:
        try:
            return base64.b64decode(data, validate=True)
        except binascii.Error:
            raise entry.error("is not base64", f"{field}-data") from None
    if not path:
        return b""
    try:
        return file_bytes(entry.folder / path)
    except InputError as error:
        raise entry.error(f'"{path}" {error.message}', field) from None


def _credentials(chosen: ChosenContext, clock: TimeSource, wall: TimeSource) -> Credentials:
    entry = chosen.user
    if entry is None:
        return Fixed()
    user: UserEntry = entry.value
    if user.auth_provider:
        raise entry.error("is no longer supported by Kubernetes; use an exec plugin", "auth-provider")
    keys = _keys(entry, user, clock)
    if user.exec:
        return _plugin(chosen, entry, user, wall)
    if (user.token or user.token_file) and (user.username or user.password):
        raise entry.error("both a token and a user name are given; keep one", "token")
    if user.token_file:
        return _token_file(entry, user, clock, keys)
    if user.token:
        return Fixed(f"Bearer {user.token}", keys)
    if user.username:
        return Fixed(basic(user.username, user.password), keys)
    return Fixed("", keys)


def _token_file(entry: KubeconfigEntry, user: UserEntry, clock: TimeSource, keys: Keys | None) -> TokenFile:
    path = entry.folder / user.token_file
    if not path.is_file():
        raise entry.error(f'"{user.token_file}" is not a file', "tokenFile")
    return TokenFile(path, clock, keys)


def _keys(entry: KubeconfigEntry, user: UserEntry, clock: TimeSource) -> Keys | None:
    """The source of the client certificate: a fixed pair, or files that may be renewed; None if the user has no certificate."""
    pair = _key_pair(entry, user)
    named = ((user.client_certificate, user.client_certificate_data), (user.client_key, user.client_key_data))
    paths = [entry.folder / path for path, data in named if path and not data]
    if pair is None or not paths:
        return pair
    return RenewedFiles("client certificate", paths, lambda: _key_pair(entry, user) or pair, usable, clock)


def _key_pair(entry: KubeconfigEntry, user: UserEntry) -> KeyPair | None:
    certificate = _material(entry, user.client_certificate, user.client_certificate_data, "client-certificate")
    key = _material(entry, user.client_key, user.client_key_data, "client-key")
    if bool(certificate) != bool(key):
        given, lacking = ("client-certificate", "client-key") if certificate else ("client-key", "client-certificate")
        raise entry.error(f"is given without {lacking}; a certificate needs both", given)
    return KeyPair(certificate, key, source=f"{entry.document.where}: {entry.subject}") if certificate else None


def _plugin(chosen: ChosenContext, entry: KubeconfigEntry, user: UserEntry, wall: TimeSource) -> ExecPlugin:
    spec = user.exec
    assert spec is not None
    if spec.api_version not in EXEC_VERSIONS:
        raise entry.error(f'"{spec.api_version}" is not known; write {EXEC_VERSIONS[0]}', "exec", "apiVersion")
    if spec.interactive_mode not in ("Never", "IfAvailable", "Always"):
        raise entry.error(f'"{spec.interactive_mode}" is not known; write Never, IfAvailable or Always', "exec", "interactiveMode")
    info = _cluster_info(chosen.cluster) if spec.provide_cluster_info else None
    where = entry.document.where
    return ExecPlugin(spec, where=where, subject=entry.subject, folder=entry.folder, cluster=info, wall=wall)


def _cluster_info(entry: KubeconfigEntry) -> dict[str, object]:
    """The information on the cluster for an exec plugin; certificates are given as data."""
    cluster = _cluster(entry)
    authority = _material(entry, cluster.certificate_authority, cluster.certificate_authority_data, "certificate-authority")
    config: list[Any] = [part.get("extension") for part in cluster.extensions or () if part.get("name") == EXEC_EXTENSION]
    fields: dict[str, object] = {
        "server": cluster.server,
        "tls-server-name": cluster.tls_server_name,
        "insecure-skip-tls-verify": cluster.insecure_skip_tls_verify,
        "certificate-authority-data": base64.b64encode(authority).decode(),
        "proxy-url": cluster.proxy_url,
        "config": config[0] if config else None,
    }
    return {key: value for key, value in fields.items() if value}


def _impersonation(entry: KubeconfigEntry | None) -> tuple[tuple[str, str], ...]:
    if entry is None:
        return ()
    user: UserEntry = entry.value
    if not user.impersonate and (user.impersonate_uid or user.impersonate_groups or user.impersonate_extra):
        raise entry.error("is empty, but groups, uid or extra are given; name the user to act as", "as")
    if not user.impersonate:
        return ()
    headers = [("Impersonate-User", user.impersonate)]
    headers += [("Impersonate-Uid", user.impersonate_uid)] if user.impersonate_uid else []
    headers += [("Impersonate-Group", group) for group in user.impersonate_groups or ()]
    for key, values in (user.impersonate_extra or {}).items():
        headers += [(f"Impersonate-Extra-{quote(key, safe='')}", value) for value in values]
    return tuple(headers)
