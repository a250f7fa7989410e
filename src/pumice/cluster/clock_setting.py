"""The speed of a running cluster's clock, as an object of the cluster: the ConfigMap kube-system/pumice-clock.

    kubectl -n kube-system patch configmap pumice-clock --type merge -p '{"data": {"speed": "60"}}'

`speed` is a number from 0, which pauses, to a million. An admission rule refuses any other value.
"""

from pumice.api.json_objects import field
from pumice.cluster.apiserver import AdmissionAttributes, AdmissionLister, AdmissionRefusal, AdmissionRule, Store
from pumice.cluster.apiserver.storage.watch import WatchEvent
from pumice.cluster.clock import RunningClock

KEY = ("kube-system", "pumice-clock")


class ClockSetting:
    def __init__(self, store: Store, clock: RunningClock) -> None:
        self._clock = clock
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": KEY[1]}, "data": {"speed": f"{clock.speed:g}"}}
        if store.find("configmaps", *KEY) is None:
            store.create("configmaps", body, KEY[0])
        else:
            store.update("configmaps", body | {"metadata": {"name": KEY[1], "namespace": KEY[0]}})
        store.admission.add([AdmissionRule(("configmaps",), ("CREATE", "UPDATE"), validate=_only_a_speed)])
        store.storage.listen(self._on_write, "configmaps")

    def _on_write(self, storage: str, event: WatchEvent) -> None:
        if event.key == KEY and event.type != "DELETED":
            speed = read_speed(field(event.object, "data.speed"))
            if speed is not None and speed != self._clock.speed:
                self._clock.set_speed(speed)


def _only_a_speed(review: AdmissionAttributes, lister: AdmissionLister) -> AdmissionRefusal | None:
    speed = field(review.obj, "data.speed")
    if (review.namespace, review.name) != KEY or read_speed(speed) is not None:
        return None
    return AdmissionRefusal(f'data.speed: "{speed}" is no speed; write a number from 0, which pauses, to 1000000')


def read_speed(text: object) -> float | None:
    """The speed that the text states: a number from 0 to a million; None if it is anything else."""
    try:
        speed = float(str(text))
    except ValueError:
        return None
    return speed if 0 <= speed <= 1e6 else None
