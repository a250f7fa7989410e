"""Credentials from a program named in the kubeconfig (`users[].user.exec`), as clusters of cloud providers use them.

The program writes an ExecCredential to its output. It is kept until it expires, or until the server refuses it. Callers that come while
the program runs wait for this run, which goes on if some of them wait no longer. The program gets our standard input only if that is a
terminal and the program may use it.
"""

import asyncio
import os
import sys
from pathlib import Path

import msgspec

from pumice.api import InputError, instant
from pumice.client.access import TimeSource
from pumice.client.tls import KeyPair

EXEC_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
EXPIRY_MARGIN_S = 10.0  #: a token that expires within this time is renewed: it could expire on its way to the server
RUN_LIMIT_S = 120.0


class EnvVar(msgspec.Struct):
    name: str
    value: str = ""


class ExecSpec(msgspec.Struct, rename="camel"):
    """The section `users[].user.exec` of a kubeconfig."""

    command: str
    api_version: str
    args: list[str] | None = None
    env: list[EnvVar] | None = None
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: str = "IfAvailable"


class _Granted(msgspec.Struct, rename="camel"):
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: str = ""


class _ExecCredential(msgspec.Struct, rename="camel"):
    api_version: str
    status: _Granted | None = None


class ExecPlugin:
    """The credentials from the program of one `exec` section."""

    def __init__(
        self, spec: ExecSpec, *, where: str, subject: str, folder: Path, cluster: dict[str, object] | None, wall: TimeSource
    ) -> None:
        self._spec = spec
        self._where = where
        self._subject = subject
        self._folder = folder
        self._cluster = cluster
        self._wall = wall
        self._granted: _Granted | None = None
        self._pair: KeyPair | None = None
        self._expires = float("inf")
        self._renewing: asyncio.Task[None] | None = None

    async def authorization(self) -> str:
        if self._granted is None or self._wall() + EXPIRY_MARGIN_S >= self._expires:
            if self._renewing is None or self._renewing.done():
                self._renewing = asyncio.create_task(self._renew())
            await asyncio.shield(self._renewing)
        assert self._granted is not None
        return f"Bearer {self._granted.token}" if self._granted.token else ""

    def key_pair(self) -> KeyPair | None:
        return self._pair

    def refused(self) -> None:
        self._expires = float("-inf")

    async def _renew(self) -> None:
        granted = self._read(await self._run())
        try:
            self._expires = instant(granted.expiration_timestamp) if granted.expiration_timestamp else float("inf")
        except ValueError:
            raise self._error(f'expirationTimestamp "{granted.expiration_timestamp}" is not an RFC 3339 time') from None
        certificate, key = granted.client_certificate_data.encode(), granted.client_key_data.encode()
        if certificate and (self._pair is None or (self._pair.certificate, self._pair.key) != (certificate, key)):
            self._pair = KeyPair(certificate, key, source=f"{self._where}: {self._subject}: exec {self._spec.command}")
        self._granted = granted

    async def _run(self) -> bytes:
        interactive = self._interactive()
        try:
            process = await asyncio.create_subprocess_exec(
                self._program(),
                *(self._spec.args or ()),
                stdin=None if interactive else asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=os.environ | {var.name: var.value for var in self._spec.env or ()} | {"KUBERNETES_EXEC_INFO": self._info(interactive)},
            )
        except OSError as error:
            hint = f"; {self._spec.install_hint}" if self._spec.install_hint else "; install it or correct the path"
            raise self._error(f"cannot be run ({error.strerror}){hint}") from None
        try:
            out, err = await asyncio.wait_for(process.communicate(), RUN_LIMIT_S)
        except TimeoutError:
            raise self._error(f"did not end within {RUN_LIMIT_S:.0f} s") from None
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode:
            raise self._error(f"ended with code {process.returncode}: {err.decode(errors='replace').strip()[-500:]}")
        return out

    def _program(self) -> str:
        """The program to run. A bare name is looked up in PATH; a path with a slash is relative to the kubeconfig's folder."""
        command = self._spec.command
        return str(self._folder / command) if "/" in command else command

    def _interactive(self) -> bool:
        mode = self._spec.interactive_mode
        terminal = sys.stdin is not None and sys.stdin.isatty()
        if mode == "Always" and not terminal:
            raise self._error("interactiveMode is Always, but there is no terminal; use a plugin that works without one")
        return terminal and mode != "Never"

    def _info(self, interactive: bool) -> str:
        spec: dict[str, object] = {"interactive": interactive}
        if self._cluster is not None:
            spec["cluster"] = self._cluster
        return msgspec.json.encode({"kind": "ExecCredential", "apiVersion": self._spec.api_version, "spec": spec}).decode()

    def _read(self, out: bytes) -> _Granted:
        try:
            answer = msgspec.json.decode(out, type=_ExecCredential)
        except msgspec.DecodeError as error:
            raise self._error(f"did not write an ExecCredential ({error})") from None
        if answer.api_version != self._spec.api_version:
            raise self._error(f"answered in {answer.api_version}, {self._spec.api_version} was asked for")
        granted = answer.status or _Granted()
        if bool(granted.client_certificate_data) != bool(granted.client_key_data):
            raise self._error("gave a certificate without its key, or a key without its certificate")
        if not granted.token and not granted.client_certificate_data:
            raise self._error("gave neither a token nor a certificate")
        return granted

    def _error(self, message: str) -> InputError:
        return InputError(f'"{self._spec.command}" {message}', where=self._where, subject=self._subject, field="exec.command")
