"""The `extenders` of a KubeSchedulerConfiguration: their rules, and what they become."""

from __future__ import annotations

from msgspec import structs

from pumice.api.times import duration
from pumice.config.kube_args import check_duration, qualified_name_fault
from pumice.config.kube_document import ConfigurationText, ExtenderText
from pumice.config.problems import Path, Problems
from pumice.framework.profile import ExtenderSpec

DEFAULT_TIMEOUT_S = 5.0


def read_extenders(text: ConfigurationText, problems: Problems) -> list[ExtenderSpec]:
    found = []
    binders = 0
    names: set[str] = set()
    for index, extender in enumerate(text.extenders or ()):
        path: Path = ("extenders", index)
        _check_extender(extender, path, names, problems)
        binders += bool(extender.bind_verb)
        found.append(_spec(extender))
    if binders > 1:
        problems.add(("extenders",), f'Invalid value: "found {binders} extenders implementing bind": only one extender can implement bind')
    return found


def _check_extender(extender: ExtenderText, path: Path, names: set[str], problems: Problems) -> None:
    if not extender.url_prefix:
        problems.required((*path, "urlPrefix"), "write the URL at which the extender answers")
    if extender.prioritize_verb and extender.weight <= 0:
        problems.invalid((*path, "weight"), extender.weight, "must have a positive weight applied to it")
    for index, resource in enumerate(extender.managed_resources or ()):
        here = (*path, "managedResources", index, "name")
        if "/" not in resource.name or resource.name.split("/")[0].endswith("kubernetes.io"):
            problems.invalid(here, resource.name, "must be an extended resource: a name with a domain of your own, such as example.com/gpu")
        elif fault := qualified_name_fault(resource.name):
            problems.invalid(here, resource.name, fault)
        if resource.name in names:
            problems.invalid(here, resource.name, "duplicate extender managed resource name")
        names.add(resource.name)
    check_duration(extender.http_timeout, 0.0, (*path, "httpTimeout"), "must not be negative", problems)


def _spec(extender: ExtenderText) -> ExtenderSpec:
    tls = structs.asdict(extender.tls_config) if extender.tls_config else {}
    return ExtenderSpec(
        url=extender.url_prefix.rstrip("/"),
        filter_verb=extender.filter_verb,
        prioritize_verb=extender.prioritize_verb,
        preempt_verb=extender.preempt_verb,
        bind_verb=extender.bind_verb,
        weight=extender.weight,
        timeout_s=_timeout_s(extender.http_timeout),
        names_only=extender.node_cache_capable,
        managed=frozenset(resource.name for resource in extender.managed_resources or ()),
        ignorable=extender.ignorable,
        options={"https": extender.enable_https, "tls": tls},
    )


def _timeout_s(text: str | None) -> float:
    """What is no duration has been noted among the problems."""
    try:
        return (duration(text) if text else 0.0) or DEFAULT_TIMEOUT_S
    except ValueError:
        return DEFAULT_TIMEOUT_S


def ignored_by_scheduler(text: ConfigurationText) -> list[str]:
    """Resources that extenders see to, for all profiles."""
    managed = (resource for extender in text.extenders or () for resource in extender.managed_resources or ())
    return [resource.name for resource in managed if resource.ignored_by_scheduler]
