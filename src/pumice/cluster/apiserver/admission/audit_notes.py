"""What policies want in the audit log: it is logged as `pumice.audit`, an audit event in JSON for each write that has annotations."""

import json
import logging

from pumice.cluster.apiserver.admission.attributes import AdmissionAttributes

AuditNotes = dict[str, dict[str, None]]
"""By key of an audit annotation: its values, which are those of all bindings and parameters."""


def log_notes(review: AdmissionAttributes, notes: AuditNotes) -> None:
    """Write the audit event of a write."""
    kind = review.kind
    about = {
        "resource": kind.plural,
        "namespace": review.namespace,
        "name": review.name,
        "apiGroup": kind.group,
        "apiVersion": kind.version,
    }
    event = {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "Metadata",
        "verb": review.operation.lower(),
        "user": {"username": review.user.name, "groups": list(review.user.groups)},
        "objectRef": {key: value for key, value in about.items() if value},
        "annotations": {key: ", ".join(values) for key, values in notes.items()},
    }
    logging.getLogger("pumice.audit").warning("%s", json.dumps(event))
