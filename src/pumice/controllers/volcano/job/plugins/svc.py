"""svc: the job's pods find and reach each other by name.

A headless Service gives each pod a name, a ConfigMap lists the names per task (as files in /etc/volcano and as variables),
and a NetworkPolicy lets only the job's own pods in. Arguments: --publish-not-ready-addresses, --disable-network-policy,
--inject-hosts-env (true; for a job with thousands of pods the list may be too long for a variable).
"""

from collections.abc import Iterable, Iterator, Sequence

from pumice.api import Object, annotations as key, kinds, name_of, namespace_of
from pumice.api.json_objects import copied
from pumice.controllers.controller import Lister
from pumice.controllers.volcano.job import spec
from pumice.controllers.volcano.job.plugins.plugin import JobPlugin, flags, hosts, mount, owned, present, removed, set_env
from pumice.controllers.writes import Create, Write, change

PATH = "/etc/volcano"
DEFAULTS = {"publish-not-ready-addresses": "false", "disable-network-policy": "false", "inject-hosts-env": "true"}
PARTS = ((kinds.CONFIG_MAP, "-svc"), (kinds.SERVICE, ""), (kinds.NETWORK_POLICY, ""))


class Svc(JobPlugin):
    def __init__(self, arguments: Sequence[str]) -> None:
        given = flags(arguments, DEFAULTS)
        self.publish_early = given["publish-not-ready-addresses"].lower() == "true"
        self.isolate = given["disable-network-policy"].lower() != "true"
        self.inject_hosts = given["inject-hosts-env"].lower() == "true"

    def keep(self, job: Object, lister: Lister) -> list[Write]:
        writes: list[Write] = []
        for wanted in self._objects(job):
            kind = kinds.kind_of(wanted)
            there = present(job, kind, name_of(wanted), lister)
            if there is None:
                writes.append(Create(wanted, job))
            elif kind == kinds.CONFIG_MAP:
                target = copied(there)
                target["data"] = wanted["data"]
                writes.extend(change(there, target))
        return writes

    def remove(self, job: Object, lister: Lister) -> list[Write]:
        return [write for kind, ending in PARTS for write in removed(job, kind, name_of(job) + ending, lister)]

    def dress(self, pod: Object, job: Object, task: Object, index: int) -> None:
        pod["spec"].setdefault("hostname", name_of(pod))
        pod["spec"].setdefault("subdomain", name_of(job))
        name = f"{name_of(job)}-svc"
        if self.inject_hosts:
            variables = (variable for each in spec.tasks(job) for variable in _names(job, each))
            set_env(pod, **{variable: {"configMapKeyRef": {"name": name, "key": variable}} for variable in variables})
        mount(pod, {"name": name, "configMap": {"name": name}}, PATH)

    def _objects(self, job: Object) -> Iterator[Object]:
        data = {f"{spec.task_name(job, task)}.host": "\n".join(hosts(job, task)) for task in spec.tasks(job)}
        data.update(variable for task in spec.tasks(job) for variable in _variables(job, task))
        labels = {key.JOB_NAME: name_of(job), key.JOB_NAMESPACE: namespace_of(job)}
        service = {
            "clusterIP": "None",
            "selector": labels,
            "publishNotReadyAddresses": self.publish_early,
            "ports": [{"name": "placeholder-volcano", "port": 1, "protocol": "TCP", "targetPort": 1}],
        }
        isolation = {
            "podSelector": {"matchLabels": labels},
            "ingress": [{"from": [{"podSelector": {"matchLabels": labels}}]}],
            "policyTypes": ["Ingress"],
        }
        yield owned(job, kinds.CONFIG_MAP, f"{name_of(job)}-svc", data=data)
        yield owned(job, kinds.SERVICE, name_of(job), spec=service)
        if self.isolate:
            yield owned(job, kinds.NETWORK_POLICY, name_of(job), spec=isolation)


def _names(job: Object, task: Object) -> tuple[str, str]:
    """The names of the variables with the hosts of a task and with their number."""
    stem = "VC_" + spec.task_name(job, task).upper().replace("-", "_")
    return f"{stem}_HOSTS", f"{stem}_NUM"


def _variables(job: Object, task: Object) -> Iterable[tuple[str, str]]:
    return zip(_names(job, task), (",".join(hosts(job, task)), str(spec.replicas(task))), strict=True)
