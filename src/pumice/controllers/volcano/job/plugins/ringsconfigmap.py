"""ringsconfigmap: a ConfigMap into which Ascend's device plugin writes the ring of the job's cards, mounted in every container.

Arguments: --configmap-name-template (rings-config-{{.Name}}; {{.Namespace}} and {{.UID}} are known as well), --volume-name,
--mount-path, and as JSON --configmap-labels, --configmap-annotations and --configmap-data (its first content).
"""

import json
import re
from collections.abc import Sequence

from pumice.api import Object, kinds, name_of, namespace_of, uid_of
from pumice.controllers.controller import Lister
from pumice.controllers.volcano.job.plugins.plugin import JobPlugin, flags, mount, owned, present, removed
from pumice.controllers.writes import Create, Write

TEXTS = {
    "configmap-labels": '{"ring-controller.atlas": "ascend-910b"}',
    "configmap-annotations": "{}",
    "configmap-data": '{"hccl.json": "{\\"status\\":\\"initializing\\"}"}',
}  #: the arguments that are JSON, with their defaults
DEFAULTS = {
    "configmap-name-template": "rings-config-{{.Name}}",
    "volume-name": "ascend-910-config",
    "mount-path": "/user/serverid/devindex/config",
    **TEXTS,
}
_FIELD = re.compile(r"\{\{\s*\.(Name|Namespace|UID)\s*\}\}")


class RingsConfigMap(JobPlugin):
    def __init__(self, arguments: Sequence[str]) -> None:
        given = flags(arguments, DEFAULTS)
        self.template, self.volume, self.path = given["configmap-name-template"], given["volume-name"], given["mount-path"]
        self.labels, self.annotations, self.data = (_stated(given[name], default) for name, default in TEXTS.items())

    def keep(self, job: Object, lister: Lister) -> list[Write]:
        name = self._name(job)
        if present(job, kinds.CONFIG_MAP, name, lister) is not None:
            return []
        made = owned(job, kinds.CONFIG_MAP, name, data=self.data)
        made["metadata"]["labels"] |= self.labels
        if self.annotations:
            made["metadata"]["annotations"] = self.annotations
        return [Create(made, job)]

    def remove(self, job: Object, lister: Lister) -> list[Write]:
        return removed(job, kinds.CONFIG_MAP, self._name(job), lister)

    def dress(self, pod: Object, job: Object, task: Object, index: int) -> None:
        mount(pod, {"name": self.volume, "configMap": {"name": self._name(job)}}, self.path)

    def _name(self, job: Object) -> str:
        fields = {"Name": name_of(job), "Namespace": namespace_of(job), "UID": uid_of(job)}
        return _FIELD.sub(lambda found: fields[found[1]], self.template)


def texts(given: str) -> dict[str, str] | None:
    """The JSON object that maps texts to texts; None if it is anything else."""
    try:
        read = json.loads(given)
    except ValueError:
        return None
    return read if isinstance(read, dict) and all(isinstance(value, str) for value in read.values()) else None


def _stated(given: str, default: str) -> dict[str, str]:
    """The map that an argument states, else its default. Invalid arguments are ignored: old jobs that admission did not check run on."""
    found = texts(given)
    return (texts(default) or {}) if found is None else found
