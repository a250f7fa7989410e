"""The structure of a KubeSchedulerConfiguration, version v1."""

from typing import Any

from msgspec import field, structs

from pumice.api import duration
from pumice.api.problems import Path, Problems, check_duration, qualified_name_fault
from pumice.api.strict_decoding import Conf
from pumice.scheduler.framework.profiles import ExtenderSpec


class PluginRef(Conf, frozen=True):
    name: str = ""
    weight: int = 0


class PluginSet(Conf, frozen=True):
    enabled: list[PluginRef] | None = None
    disabled: list[PluginRef] | None = None


class PluginSets(Conf, frozen=True):
    pre_enqueue: PluginSet = PluginSet()
    queue_sort: PluginSet = PluginSet()
    pre_filter: PluginSet = PluginSet()
    filter: PluginSet = PluginSet()
    post_filter: PluginSet = PluginSet()
    pre_score: PluginSet = PluginSet()
    score: PluginSet = PluginSet()
    reserve: PluginSet = PluginSet()
    permit: PluginSet = PluginSet()
    pre_bind: PluginSet = PluginSet()
    bind: PluginSet = PluginSet()
    post_bind: PluginSet = PluginSet()
    placement_generate: PluginSet = PluginSet()
    placement_score: PluginSet = PluginSet()
    pod_group_post_filter: PluginSet = PluginSet()
    multi_point: PluginSet = PluginSet()


class PluginConfig(Conf, frozen=True):
    name: str = ""
    args: dict[str, Any] | None = None


class ProfileText(Conf, frozen=True):
    scheduler_name: str | None = None
    percentage_of_nodes_to_score: int | None = None
    plugins: PluginSets | None = None
    plugin_config: list[PluginConfig] | None = None


class ManagedResource(Conf, frozen=True):
    name: str = ""
    ignored_by_scheduler: bool = False


class TLSConfig(Conf, frozen=True):
    insecure: bool = False
    server_name: str = ""
    cert_file: str = ""
    key_file: str = ""
    ca_file: str = ""
    cert_data: str | None = None
    key_data: str | None = None
    ca_data: str | None = None


class ExtenderText(Conf, frozen=True):
    url_prefix: str = ""
    filter_verb: str = ""
    preempt_verb: str = ""
    prioritize_verb: str = ""
    weight: int = 0
    bind_verb: str = ""
    enable_https: bool = field(name="enableHTTPS", default=False)
    tls_config: TLSConfig | None = None
    http_timeout: str | None = field(name="httpTimeout", default=None)
    node_cache_capable: bool = False
    managed_resources: list[ManagedResource] | None = None
    ignorable: bool = False


class LeaderElection(Conf, frozen=True):
    leader_elect: bool = True
    lease_duration: str = "15s"
    renew_deadline: str = "10s"
    retry_period: str = "2s"
    resource_lock: str = "leases"
    resource_name: str = "kube-scheduler"
    resource_namespace: str = "kube-system"


class ClientConnection(Conf, frozen=True):
    kubeconfig: str = ""
    accept_content_types: str = ""
    content_type: str = ""
    qps: float = 50
    burst: int = 100


class ConfigurationText(Conf, frozen=True):
    kind: str = ""
    api_version: str = ""
    parallelism: int = 16
    leader_election: LeaderElection = LeaderElection()
    client_connection: ClientConnection = ClientConnection()
    enable_profiling: bool = True
    enable_contention_profiling: bool = True
    percentage_of_nodes_to_score: int | None = None
    pod_initial_backoff_seconds: int = 1
    pod_max_backoff_seconds: int = 10
    profiles: list[ProfileText] | None = None
    extenders: list[ExtenderText] | None = None
    delay_cache_until_active: bool = False


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
    """The timeout in seconds; the default if there is none, or if the text is no duration (which is a problem noted before)."""
    try:
        return (duration(text) if text else 0.0) or DEFAULT_TIMEOUT_S
    except ValueError:
        return DEFAULT_TIMEOUT_S


def ignored_by_scheduler(text: ConfigurationText) -> list[str]:
    """The resources that the scheduler is to ignore in all profiles, because extenders manage them."""
    managed = (resource for extender in text.extenders or () for resource in extender.managed_resources or ())
    return [resource.name for resource in managed if resource.ignored_by_scheduler]
