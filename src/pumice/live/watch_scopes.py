"""The resources of controllers' kinds on an API server, and which objects of each kind are read.

Of the kinds that hold the secrets and settings of all users, only the objects that job plugins made are read: these carry a label. An
object that was made before plugins set the label is found when its creation is refused because it exists.
"""

from collections.abc import Iterable, Mapping

from pumice.api import Key, Object, kinds
from pumice.api.annotations import JOB_NAME
from pumice.api.gang_dialects import ALSO_READ, READ
from pumice.api.json_objects import labels_of
from pumice.api.kinds import Kind
from pumice.client.reflector import DEFAULT_PACE, Pace, Reflector, dict_metadata
from pumice.client.transport import ListScope, Transport, as_dict
from pumice.live.object_cache import ObjectCache

RESOURCES: dict[str, Kind] = {
    each.name: each
    for each in (
        kinds.PODS,
        kinds.NODES,
        kinds.NAMESPACES,
        kinds.SERVICES,
        kinds.SECRETS,
        kinds.CONFIG_MAPS,
        kinds.VOLUME_CLAIMS,
        kinds.NETWORK_POLICIES,
        kinds.PRIORITY_CLASSES,
        kinds.REPLICA_SETS,
        kinds.STATEFUL_SETS,
        kinds.DAEMON_SETS,
        kinds.BATCH_JOBS,
        kinds.QUEUES,
        kinds.POD_GROUPS,
        kinds.JOBS,
        kinds.CRON_JOBS,
        kinds.COMMANDS,
        kinds.JOB_TEMPLATES,
        kinds.JOB_FLOWS,
        kinds.HYPER_NODES,
        kinds.NODE_SHARDS,
        *READ,
    )
}
OTHER_VERSIONS = {f"{each.name} {each.version}": each for each in ALSO_READ}  #: no server has a kind in two of them
#: few servers have these kinds, and few roles let them be read: nothing is told then
SELDOM_SERVED = frozenset([*(each.name for each in READ), *OTHER_VERSIONS])

LABELLED = frozenset({kinds.SERVICE, kinds.SECRET, kinds.CONFIG_MAP, kinds.NETWORK_POLICY})
REQUIRED = frozenset({kinds.POD, kinds.QUEUE, kinds.POD_GROUP, kinds.JOB, kinds.COMMAND})  #: a server need not have the other kinds
ADMISSION = (kinds.QUEUE, kinds.NAMESPACE)  #: what admission rules look up


def single_scopes(wanted: Iterable[tuple[str, Key]]) -> dict[str, ListScope]:
    return {
        f"{kind} {key.namespace}/{key.name}": ListScope(RESOURCES[kind], key.namespace, field_selector=f"metadata.name={key.name}")
        for kind, key in wanted
    }


def is_shown(subject: Object, scope: ListScope) -> bool:
    return not scope.label_selector or scope.label_selector in labels_of(subject)


def scopes(wanted: Iterable[str]) -> dict[str, ListScope]:
    """The scopes of all objects of these kinds, by kind, and by kind and version where a kind has several."""
    usual = {kind: ListScope(RESOURCES[kind], label_selector=JOB_NAME if kind in LABELLED else "") for kind in wanted}
    return usual | {name: ListScope(kind) for name, kind in OTHER_VERSIONS.items() if kind.name in usual}


def followed(
    transport: Transport, cache: ObjectCache, wanted: Mapping[str, ListScope], pace: Pace = DEFAULT_PACE
) -> dict[str, Reflector[Object]]:
    """A reflector for each scope, which delivers into the cache."""

    def reflector(name: str, scope: ListScope) -> Reflector[Object]:
        kind = scope.resource.name
        deliver = cache.delivery(kind, scope.resource)
        made = Reflector(transport, scope, as_dict, deliver, metadata=dict_metadata, pace=pace, optional=name not in REQUIRED)
        if not scope.field_selector:
            cache.follow(kind, lambda subject: not is_shown(subject, scope) or made.note_answer(dict_metadata(subject)))
        return made

    return {name: reflector(name, scope) for name, scope in wanted.items()}
