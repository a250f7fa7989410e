"""A live cluster as input: all objects of the kinds that scheduling reads are listed, and nothing is written. So are Volcano's Jobs, as
they say which pods their controller will make, and what admission gives to new pods; and the configuration in force is found, and named."""

from pumice.answers.subject import split
from pumice.api.annotations import GROUP_NAME
from pumice.api.core import FAILED_CREATE
from pumice.api.gang_dialects import ALSO_READ, READ
from pumice.api.kinds import BATCH_JOBS, DEPLOYMENTS, EVENTS, JOBS, LIMIT_RANGES, RUNTIME_CLASSES
from pumice.api.manifests import Objects, read_stream
from pumice.api.pod import Pod
from pumice.cli.live_cluster import Remote
from pumice.cli.live_configuration import InForce, in_force
from pumice.cli.tables import say
from pumice.client.client import Client
from pumice.client.failures import ApiError
from pumice.client.transport import ListScope
from pumice.live.scheduler.watched_resources import EVERY, SELDOM_SERVED
from pumice.scheduler.framework.eviction_events import EVICTION_REASONS

#: what means a gang, of the kinds that scheduling does not read
OWNERS_AND_GROUPS = tuple(kind for kind in (*READ, *ALSO_READ) if kind not in EVERY)
ADMISSION = (RUNTIME_CLASSES, LIMIT_RANGES)
OF_SUBJECT = (BATCH_JOBS, DEPLOYMENTS)
NOT_SCHEDULED = (EVENTS, JOBS, *ADMISSION, *OF_SUBJECT)
TELLING = [ListScope(EVENTS, field_selector=f"reason={reason}") for reason in (*EVICTION_REASONS, FAILED_CREATE)]  #: no object says it


def read_cluster(objects: Objects, remote: Remote, conf: str | None, about: str = "") -> None:
    """Add the cluster's objects to `objects`, and the configuration in force if neither `conf` nor the objects name another. `about`: a
    subject of which everything is to be known. A kind that the server does not know has no objects. Raises InputError, ClickException."""

    async def read(client: Client) -> InForce | None:
        known = None if conf or objects.configurations else await in_force(client)
        for scope in (*map(ListScope, (*EVERY, JOBS, *ADMISSION)), *(_telling_of(about) if about else ())):
            await _read(client, scope, objects)
        lacks = any(_is_in_no_group(pod) for pod in objects.of("Pod"))
        for kind in OWNERS_AND_GROUPS if lacks or about else ():
            await _read(client, ListScope(kind, "" if lacks else _named(about)[0]), objects)
        return known

    objects.whole = True
    known = remote.run(read)
    where = conf or (known.where if known is not None else objects.configurations[-1].where)
    if known is not None:
        objects.configurations += known.texts
        objects.plugins_dir = known.plugins_dir
    say(f"Asked: the cluster at {remote.access.server}; configuration: {where}.", err=True)


def _telling_of(about: str) -> list[ListScope]:
    """What no object that scheduling reads says of a subject: events, and the workload itself, which may be suspended."""
    namespace, name = _named(about)
    return [*TELLING, *(ListScope(kind, namespace, f"metadata.name={name}") for kind in OF_SUBJECT)]


def _named(about: str) -> tuple[str, str]:
    namespace, _, name = split(about).key.partition("/")
    return namespace, name


def _is_in_no_group(pod: Pod) -> bool:
    """Whether a pod that waits for another scheduler than Kubernetes' own names no PodGroup: no controller has read what means its gang."""
    waits = not pod.spec.node_name and pod.spec.scheduler_name not in (None, "", "default-scheduler")
    return waits and not (pod.metadata.annotations or {}).get(GROUP_NAME)


async def _read(client: Client, scope: ListScope, objects: Objects) -> None:
    resource = scope.resource
    try:
        async for page in client.pages(scope):
            head = b'{"apiVersion":"%b","kind":"%bList","items":[' % (resource.api_version.encode(), resource.kind.encode())
            read_stream(head + b",".join(map(bytes, page.items)) + b"]}", resource.plural, objects)
    except ApiError as error:
        if error.code == 403:
            objects.whole = objects.whole and resource in (*NOT_SCHEDULED, *OWNERS_AND_GROUPS)
            if resource not in (*ADMISSION, *OF_SUBJECT, *OWNERS_AND_GROUPS):
                say(f"{resource.plural} are not read: {error.message}", err=True)
        elif error.code != 404:
            raise


def names() -> str:
    """The kinds as an argument for kubectl, without those that few servers serve. Custom kinds have their group, since other groups may
    use the same names."""
    listed = (each for each in EVERY if each not in SELDOM_SERVED)
    return ",".join(f"{each.plural}.{each.group}" if each.group.endswith("volcano.sh") else each.plural for each in listed)
