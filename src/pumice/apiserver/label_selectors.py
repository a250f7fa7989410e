"""Label selectors as objects have them: `matchLabels` and `matchExpressions`, or a plain map of labels."""

from __future__ import annotations

from collections.abc import Mapping

from pumice.api.selectors import label_selector, matches
from pumice.apiserver.shapes import Object


def matches_selector(selector: Object, labels: Mapping[str, str]) -> bool:
    found = label_selector(selector)
    return found is not None and matches(found, labels)


def selector_text(selector: Object) -> str:
    """As `kubectl get -l` would take it; also for the plain maps of services and replication controllers."""
    if not ({"matchLabels", "matchExpressions"} & set(selector)):
        return ",".join(f"{key}={value}" for key, value in sorted(selector.items()))
    parts = [f"{key}={value}" for key, value in sorted((selector.get("matchLabels") or {}).items())]
    for term in selector.get("matchExpressions") or ():
        values = ",".join(term.get("values") or ())
        parts.append(
            {"In": f"{term['key']} in ({values})", "NotIn": f"{term['key']} notin ({values})", "Exists": term["key"]}.get(
                term["operator"], f"!{term['key']}"
            )
        )
    return ",".join(parts)
