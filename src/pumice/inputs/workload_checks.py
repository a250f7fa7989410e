"""Whether an API server would accept a workload: its types, the fields that it must have, and that it selects its own pods.

Controllers rely on that. They would make pods for ever for a workload whose selector misses the labels of its template, since none of them
is its own. The rules are those of the embedded API server (`apiserver/`); they are applied to a copy, and nothing is stored.
"""

from functools import cache

from pumice.api import Object
from pumice.api.json_objects import clone
from pumice.api.kinds import group_of
from pumice.cluster.apiserver.decoding import WrongType, conformed, schema_causes
from pumice.cluster.apiserver.scheme.builtin_kinds import builtin_kinds
from pumice.cluster.apiserver.scheme.kinds import ServedKind
from pumice.cluster.apiserver.strategies import default, strategy_of
from pumice.cluster.apiserver.validation import handwritten_rules

_UID = "00000000-0000-0000-0000-000000000000"  #: stands for the uid that a server would give


def why_refused(workload: Object) -> str:
    """Why an API server refuses to create a workload of a built-in kind; empty if it accepts it."""
    kind = _kinds()[group_of(workload["apiVersion"]), workload["kind"]]
    try:
        copy, _ = conformed(kind.shape, clone(workload), kind.kind)
    except WrongType as wrong:
        return str(wrong)
    copy["metadata"]["uid"] = _UID
    strategy = strategy_of(kind)
    strategy.begin(copy)
    default(kind, copy)
    causes = schema_causes(kind, copy, None) or strategy.causes(copy, None) + handwritten_rules.causes(kind.shape, copy, None)
    return "; ".join(f"{field}: {text}" for field, text in causes)


@cache
def _kinds() -> dict[tuple[str, str], ServedKind]:
    return {(kind.group, kind.kind): kind for kind in builtin_kinds()}
