"""Rules between fields of HorizontalPodAutoscalers."""

from collections.abc import Iterator

from pumice.api import Object
from pumice.cluster.apiserver.validation.field_rules import Cause, forbidden, invalid, required

_SOURCES = ("object", "external", "pods", "resource", "containerResource")
_TARGETS = ("Utilization", "Value", "AverageValue")


def _metric(metric: Object) -> Iterator[Cause]:
    wanted = f"{metric.get('type', '')[:1].lower()}{metric.get('type', '')[1:]}"
    if wanted in _SOURCES and wanted not in metric:
        yield required(wanted, "must populate information for the given metric source")
    for source in _SOURCES if wanted in _SOURCES else ():
        if source in metric and source != wanted:
            yield forbidden(source, "must populate the given metric source only")


def _resource(source: Object) -> Iterator[Cause]:
    target = source.get("target") or {}
    stated = [field for field in ("averageUtilization", "averageValue") if field in target]
    if not stated:
        yield required("target.averageUtilization", "must set either a target raw value or a target utilization")
    elif len(stated) > 1:
        yield forbidden("target.averageValue", "may not set both a target raw value and a target utilization")


def _target(target: Object) -> Iterator[Cause]:
    if target.get("type") not in _TARGETS:
        yield invalid("type", target.get("type", ""), "must be either Utilization, Value, or AverageValue")
    if target.get("averageUtilization", 1) < 1:
        yield invalid("averageUtilization", target["averageUtilization"], "must be greater than 0")


def _scaling(rules: Object) -> Iterator[Cause]:
    if not rules.get("policies"):
        yield required("policies", "must specify at least one Policy")


def _policy(policy: Object) -> Iterator[Cause]:
    if policy.get("value", 0) <= 0:
        yield invalid("value", policy.get("value", 0), "must be greater than zero")


CHECKS = {
    "ContainerResourceMetricSource": _resource,
    "HPAScalingPolicy": _policy,
    "HPAScalingRules": _scaling,
    "MetricSpec": _metric,
    "MetricTarget": _target,
    "ResourceMetricSource": _resource,
}
