"""Stores and objects for the tests of this room."""

from __future__ import annotations

import base64
import itertools
from collections.abc import Set
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from pumice.cluster.apiserver import AdmissionRule, Store
from pumice.cluster.apiserver.storage.in_memory import StoreJournal

EPOCH_S = 1_800_000_000.0


class Clock:
    """Time that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = EPOCH_S

    def __call__(self) -> float:
        return self.now


def store(
    clock: Clock | None = None, rules: tuple[AdmissionRule, ...] = (), journal: StoreJournal | None = None, gates: Set[str] = frozenset()
) -> Store:
    """A store with a namespace, and uids that are the same in every run."""
    numbers = itertools.count()
    uids = {"new_uid": lambda: f"00000000-0000-0000-0000-{next(numbers):012x}"}
    made = Store(clock=clock or Clock(), rules=rules, journal=journal, gates=frozenset(gates), **uids)
    made.create("namespaces", {"metadata": {"name": "default"}})
    return made


def pod(name: str, labels: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "busybox"}
    return {"metadata": {"name": name, "labels": labels or {}}, "spec": {"containers": [container]} | spec}


def request_of(key: ec.EllipticCurvePrivateKey, name: str, *groups: str) -> str:
    """A signing request as a CertificateSigningRequest has it."""
    parts = [*(x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups), x509.NameAttribute(NameOID.COMMON_NAME, name)]
    made = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(parts)).sign(key, hashes.SHA256())
    return base64.b64encode(made.public_bytes(serialization.Encoding.PEM)).decode()
