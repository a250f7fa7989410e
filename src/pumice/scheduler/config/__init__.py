"""Configurations of either scheduler, or of both, read into one Policy.

A `volcano-scheduler.conf` gives Volcano's actions, a KubeSchedulerConfiguration gives the one action `schedule`. With both, profiles serve
plain pods and Volcano's actions serve PodGroups, in one session over the same nodes: `schedule` runs where the conf names it, else first.
If a conf names `schedule` and there are no profiles, kube-scheduler's default profile is used.
"""

from collections.abc import Mapping, Sequence

import msgspec
from msgspec.structs import replace

from pumice.api import yaml
from pumice.api.manifests import CONFIGURATION_KINDS, ConfigText
from pumice.scheduler.config.limits import check_text
from pumice.scheduler.config.volcano_conf import read_policy
from pumice.scheduler.framework.feature_gates import DEFAULT as DEFAULT_RELEASE, Release
from pumice.scheduler.framework.plugin import Plugin
from pumice.scheduler.framework.policy import SCHEDULE, Action, Policy
from pumice.scheduler.registry import ACTIONS

VOLCANO = "volcano"
KUBE_DEFAULT = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def config_text(text: str, where: str) -> ConfigText:
    """A configuration of either kind. Its `kind` field decides which one it is. Raises InputError."""
    check_text(text, where)
    for document in yaml.documents(text, where):
        if isinstance(document.value, dict) and document.value.get("kind") in CONFIGURATION_KINDS:
            return ConfigText("", where, 1, document.value, document)
        break
    return ConfigText(text, where)


def read_configurations(
    found: Sequence[ConfigText],
    known: Mapping[str, type[Plugin]],
    *,
    strict: bool = False,
    actions: Mapping[str, type[Action]] = ACTIONS,
    release: Release = DEFAULT_RELEASE,
) -> tuple[Policy, list[str]]:
    """The policy made from the last configuration of each kind, and notes for the user. `release` is that of kube-scheduler whose rules
    profiles follow. Raises InputError."""
    kube = next((text for text in reversed(found) if text.source is not None), None)
    volcano = next((text for text in reversed(found) if text.source is None), None)
    policy, notes = _read(volcano, kube, known, strict, actions, release)
    return replace(policy, texts=tuple(_text(each) for each in (volcano, kube) if each is not None)), notes


def _text(config: ConfigText) -> str:
    return config.text or msgspec.json.encode(config.document).decode()


def _read(
    volcano: ConfigText | None,
    kube: ConfigText | None,
    known: Mapping[str, type[Plugin]],
    strict: bool,
    actions: Mapping[str, type[Action]],
    release: Release,
) -> tuple[Policy, list[str]]:
    if volcano is None:
        assert kube is not None, "there is a configuration"
        return _kube(kube, known, release)
    text, where, first_line = volcano.text, volcano.where, volcano.first_line
    policy, notes = read_policy(text, known, where=where, first_line=first_line, strict=strict, actions=actions)
    if kube is None and not policy.has_action(SCHEDULE):
        return policy, notes
    profiles, more = _kube(kube or config_text(KUBE_DEFAULT, "built-in configuration"), known, release)
    order = policy.actions if policy.has_action(SCHEDULE) else (*profiles.actions, *policy.actions)
    return replace(policy, actions=order, profiles=profiles.profiles), notes + more


def _kube(text: ConfigText, known: Mapping[str, type[Plugin]], release: Release) -> tuple[Policy, list[str]]:
    from pumice.scheduler.config.kube_conf import read_kube  # loaded only if there are profiles

    assert text.source is not None
    return read_kube(text.source, known, release)


def schedulers_of(policy: Policy) -> tuple[str, ...]:
    """The schedulerNames whose pods a policy places."""
    names = tuple(policy.profiles.by_name) if policy.profiles is not None else ()
    alone = policy.profiles is not None and all(action.name == SCHEDULE for action in policy.actions)
    return names if alone else tuple(dict.fromkeys((VOLCANO, *names)))
