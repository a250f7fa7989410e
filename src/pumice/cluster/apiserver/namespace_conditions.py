"""What the conditions of a namespace say while it is being deleted."""

from collections import Counter

from pumice.api import Object


def deletion_conditions(remaining: Counter[str], finalizers: Counter[str], before: list[Object], now: str) -> list[Object]:
    """The conditions of a namespace that is being deleted, in the words of Kubernetes: how many objects of each kind are still in it, and
    how many of them each finalizer holds."""
    pods = remaining["pods"]
    held = ", ".join(f"{name} in {count} resource instances" for name, count in sorted(finalizers.items()))
    left = ", ".join(f"{kind} has {count} resource instances" for kind, count in sorted(remaining.items()))
    failed = f"Failed to delete all resource types, 1 remaining: unexpected items still remain in namespace: {pods} pods" if pods else ""
    conditions = [
        ("NamespaceDeletionDiscoveryFailure", False, "ResourcesDiscovered", "All resources successfully discovered"),
        ("NamespaceDeletionGroupVersionParsingFailure", False, "ParsedGroupVersions", "All legacy kube types successfully parsed"),
        ("NamespaceDeletionContentFailure", True, "ContentDeletionFailed", failed)
        if failed
        else (
            "NamespaceDeletionContentFailure",
            False,
            "ContentDeleted",
            "All content successfully deleted, may be waiting on finalization",
        ),
        ("NamespaceContentRemaining", True, "SomeResourcesRemain", f"Some resources are remaining: {left}"),
        ("NamespaceFinalizersRemaining", True, "SomeFinalizersRemain", f"Some content in the namespace has finalizers remaining: {held}")
        if held
        else ("NamespaceFinalizersRemaining", False, "ContentHasNoFinalizers", "All content-preserving finalizers finished"),
    ]
    since = {(each["type"], each["status"]): each["lastTransitionTime"] for each in before if "lastTransitionTime" in each}
    others = [each for each in before if each.get("type") not in {type_ for type_, *_ in conditions}]
    return others + [
        {
            "type": type_,
            "status": str(holds),
            "lastTransitionTime": since.get((type_, str(holds)), now),
            "reason": reason,
            "message": message,
        }
        for type_, holds, reason, message in conditions
    ]
