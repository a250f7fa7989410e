"""The form of a KubeSchedulerConfiguration, version v1, as it is written."""

from __future__ import annotations

from typing import Any

from msgspec import field

from pumice.config.strict import Conf

POINTS = (
    "preEnqueue",
    "queueSort",
    "preFilter",
    "filter",
    "postFilter",
    "preScore",
    "score",
    "reserve",
    "permit",
    "preBind",
    "bind",
    "postBind",
    "placementGenerate",
    "placementScore",
    "podGroupPostFilter",
)


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
