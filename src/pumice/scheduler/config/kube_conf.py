"""KubeSchedulerConfiguration, read into a Policy whose one action is `schedule`.

A configuration that kube-scheduler refuses is refused, with every fault and its field; one that it accepts is accepted. Older versions,
and the `kind: Policy` of old releases, are converted first (`kube_document`), with a note.
"""

from collections.abc import Mapping

from msgspec import Struct, structs

from pumice.api import duration
from pumice.api.problems import Path, Problems, check_duration
from pumice.api.strict_decoding import decode
from pumice.api.yaml import Document
from pumice.scheduler.actions.schedule import Schedule
from pumice.scheduler.config.kube_document import (
    ConfigurationText,
    LeaderElection,
    PluginSets,
    ProfileText,
    ignored_by_scheduler,
    read_extenders,
)
from pumice.scheduler.config.kube_rules import Configured, args_of, filter_maker, prefilter_maker, scorer_maker
from pumice.scheduler.config.limits import MOST_EXTENDERS, MOST_PROFILES, check_document, check_list
from pumice.scheduler.config.old_versions import converted
from pumice.scheduler.config.plugin_choice import PluginChoice
from pumice.scheduler.framework.feature_gates import DEFAULT, Release
from pumice.scheduler.framework.plugin import Plugin
from pumice.scheduler.framework.policy import Policy
from pumice.scheduler.framework.profiles import Profile, Profiles
from pumice.scheduler.plugins.kube.catalogue import ARGS, FEATURES, GANG, POINTS, TOPOLOGY_PLACEMENTS, defaults
from pumice.scheduler.plugins.kube.volume_binding import PLUGIN as VOLUME_BINDING, VolumeBindingArgs

DEFAULT_NAME = "default-scheduler"
RENEWAL_FACTOR = 1.2  #: the renew deadline must be greater than the retry period times this


def read_kube(document: Document, own: Mapping[str, type[Plugin]], release: Release = DEFAULT) -> tuple[Policy, list[str]]:
    """The policy, and notes on what was converted. Raises InputError with every fault."""
    check_document(document)
    for listed, most in (("profiles", MOST_PROFILES), ("extenders", MOST_EXTENDERS)):
        check_list(document, document.value.get(listed), listed, most)
    problems = Problems(document)
    value, notes = converted(document)
    text = decode(ConfigurationText, value, (), problems)
    _check_top(text, problems)
    profiles = _named(text.profiles or [ProfileText()])
    _check_names(profiles, problems)
    extenders = read_extenders(text, problems)
    ignored = ignored_by_scheduler(text)
    reading = _Reading(text, ignored, own, release, problems)
    read = [_profile(profile, ("profiles", index), reading) for index, profile in enumerate(profiles)]
    problems.check()
    found = Profiles(
        {profile.name: profile for profile in read},
        tuple(sorted(extenders, key=lambda extender: extender.ignorable)),
        float(text.pod_initial_backoff_seconds),
        float(text.pod_max_backoff_seconds),
        release,
    )
    return Policy((Schedule(),), (), profiles=found), notes


def _named(profiles: list[ProfileText]) -> list[ProfileText]:
    """The profiles; a single profile without a name gets the default name."""
    if len(profiles) == 1 and profiles[0].scheduler_name is None:
        return [structs.replace(profiles[0], scheduler_name=DEFAULT_NAME)]
    return profiles


def _check_top(text: ConfigurationText, problems: Problems) -> None:
    if text.parallelism <= 0:
        problems.invalid(("parallelism",), text.parallelism, "should be an integer value greater than zero")
    if not 0 <= (text.percentage_of_nodes_to_score or 0) <= 100:
        problems.invalid(("percentageOfNodesToScore",), text.percentage_of_nodes_to_score, "not in valid range [0-100]")
    if text.pod_initial_backoff_seconds <= 0:
        problems.invalid(("podInitialBackoffSeconds",), text.pod_initial_backoff_seconds, "must be greater than 0")
    if text.pod_max_backoff_seconds < text.pod_initial_backoff_seconds:
        problems.invalid(
            ("podMaxBackoffSeconds",), text.pod_max_backoff_seconds, "must be greater than or equal to PodInitialBackoffSeconds"
        )
    if text.client_connection.burst < 0:
        problems.invalid(("clientConnection", "burst"), text.client_connection.burst, "must be non-negative")
    if text.leader_election.leader_elect:
        _check_election(text.leader_election, ("leaderElection",), problems)


def _check_election(election: LeaderElection, path: Path, problems: Problems) -> None:
    spans: dict[str, float] = {}
    for name, text in (
        ("leaseDuration", election.lease_duration),
        ("renewDeadline", election.renew_deadline),
        ("retryPeriod", election.retry_period),
    ):
        before = len(problems.errors)
        check_duration(text, 1e-9, (*path, name), "must be greater than zero", problems)
        if len(problems.errors) == before:
            spans[name] = duration(text)
    if len(spans) == 3:
        if spans["leaseDuration"] <= spans["renewDeadline"]:
            problems.invalid((*path, "leaseDuration"), election.renew_deadline, "LeaseDuration must be greater than RenewDeadline")
        if spans["renewDeadline"] <= spans["retryPeriod"] * RENEWAL_FACTOR:
            problems.invalid((*path, "renewDeadline"), election.retry_period, "RenewDeadline must be greater than RetryPeriod*JitterFactor")
    if election.resource_lock != "leases":
        problems.invalid((*path, "resourceLock"), election.resource_lock, 'resourceLock value must be "leases"')
    for name, text in (("resourceNamespace", election.resource_namespace), ("resourceName", election.resource_name)):
        if not text:
            problems.invalid((*path, name), text, f"{name} is required")


def _check_names(profiles: list[ProfileText], problems: Problems) -> None:
    seen: set[str] = set()
    first = (profiles[0].plugins or PluginSets()).queue_sort
    for index, profile in enumerate(profiles):
        path: Path = ("profiles", index, "schedulerName")
        if not profile.scheduler_name:
            problems.required(path, "write the schedulerName of the pods that are this profile's")
        elif profile.scheduler_name in seen:
            problems.duplicate(path, profile.scheduler_name)
        seen.add(profile.scheduler_name or "")
        if (profile.plugins or PluginSets()).queue_sort != first:
            problems.add(("profiles", index, "plugins", "queueSort"), "Invalid value: must be the same for all profiles")


SCORES_STORAGE = "StorageCapacityScoring"  #: the gate with which VolumeBinding scores, as its arguments tell


class _Reading(Struct, frozen=True):
    """What the reading of each profile needs besides the profile."""

    whole: ConfigurationText
    ignored: list[str]
    own: Mapping[str, type[Plugin]]
    release: Release
    problems: Problems


def _profile(text: ProfileText, path: Path, reading: _Reading) -> Profile:
    name, own, problems = text.scheduler_name or "", reading.own, reading.problems
    if not 0 <= (text.percentage_of_nodes_to_score or 0) <= 100:
        problems.invalid((*path, "percentageOfNodesToScore"), text.percentage_of_nodes_to_score, "not in valid range [0-100]")
    configured = _configured(text, path, reading)
    if reading.ignored:
        configured["NodeResourcesFit"] = structs.replace(args_of(configured, "NodeResourcesFit"), ignored_resources=reading.ignored)
    sets = text.plugins or PluginSets()
    choice = PluginChoice(sets, (*path, "plugins"), problems, defaults(reading.release), own)
    points = {point: choice.at(point, getattr(sets, _snake(point))) for point in POINTS}
    if len(points["queueSort"]) != 1:
        rule = f'only one queue sort plugin required for profile with scheduler name "{name}", but got {len(points["queueSort"])}'
        problems.add((*path, "plugins", "queueSort"), rule)
    if not points["bind"]:
        problems.add((*path, "plugins", "bind"), f'at least one bind plugin is needed for profile with scheduler name "{name}"')
    if not reading.release.has(SCORES_STORAGE):
        points["score"].pop(VOLUME_BINDING.name, None)
    if not reading.release.has(FEATURES):
        points["filter"].pop(FEATURES, None)
        points["preFilter"].pop(FEATURES, None)
    filters = [prefilter_maker(plugin, configured) for plugin in points["preFilter"] if plugin not in points["filter"]]
    filters += [filter_maker(plugin, configured, own) for plugin in points["filter"]]
    scorers = [scorer_maker(plugin, weight, configured, own) for plugin, weight in points["score"].items()]
    own_percentage = text.percentage_of_nodes_to_score
    return Profile(
        name,
        tuple(filters),
        tuple(maker for maker in scorers if maker is not None),
        tuple(points["postFilter"]),
        args_of(configured, "DefaultPreemption"),
        frozenset(own.keys() & {*points["filter"], *points["score"]}),
        (reading.whole.percentage_of_nodes_to_score or 0) if own_percentage is None else own_percentage,
        tuple(points["podGroupPostFilter"]),
        GANG in points["preEnqueue"],
        GANG in points["permit"],
        reading.release.has("TopologyAwareWorkloadScheduling"),
        next(iter(points["placementGenerate"]), "") == TOPOLOGY_PLACEMENTS,
        points["placementScore"],
        args_of(configured, "NodeResourcesFit").scoring_strategy.weights,
    )


def _snake(point: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in point)


def _configured(text: ProfileText, path: Path, reading: _Reading) -> Configured:
    """The arguments in the profile, by plugin. Arguments of unknown plugins are ignored, as by kube-scheduler."""
    found: Configured = {}
    problems = reading.problems
    for index, entry in enumerate(text.plugin_config or ()):
        here = (*path, "pluginConfig", index)
        if entry.name in found:
            problems.add((*here, "name"), f"repeated config for plugin {entry.name}; write its arguments once")
        kind = ARGS.get(entry.name)
        if kind is None:
            continue
        args = decode(kind, entry.args or {}, (*here, "args"), problems)
        if args.kind not in ("", f"{entry.name}Args"):
            problems.invalid((*here, "args", "kind"), args.kind, f"args for plugin {entry.name} must be of kind {entry.name}Args")
        args.check((*here, "args"), problems)
        if isinstance(args, VolumeBindingArgs) and args.shape is not None and not reading.release.has(SCORES_STORAGE):
            problems.forbidden((*here, "args", "shape"), f"unexpected field `shape`, feature gate {SCORES_STORAGE} is off")
        found[entry.name] = args
    return found
