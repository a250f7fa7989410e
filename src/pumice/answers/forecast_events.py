"""Past forecasts as events, for programs that read the state of a scheduler from a file."""

import re
from collections.abc import Iterable, Iterator

from pumice.answers.past_forecasts import PastForecast, past_forecasts
from pumice.api import rfc3339
from pumice.api.core import FORECAST, Event, ObjectReference
from pumice.api.meta import Metadata, Wire
from pumice.api.times import instant_or
from pumice.scheduler.model import Cluster

_PATTERN = re.compile(r"expected within (?P<latest>\d+) s(?:, started after (?P<waited>\d+) s)?")


def forecast_events(cluster: Cluster) -> Iterator[Event]:
    """The past forecasts as events, which `take_in_forecasts` reads."""
    for number, each in enumerate(past_forecasts(cluster)):
        namespace, _, name = each.job.partition("/")
        came = f", started after {each.started - each.at:.0f} s" if each.started is not None else ""
        about = ObjectReference(kind="PodGroup", name=name, namespace=namespace)
        message = f"expected within {each.latest_s:.0f} s{came}"
        yield Event(Metadata(f"forecast-{number}", namespace), about, FORECAST, message, rfc3339(each.at))


def take_in_forecasts(cluster: Cluster, items: Iterable[tuple[str, Wire]]) -> None:
    """Keep the past forecasts that the events among these objects hold."""
    known = past_forecasts(cluster)
    for _, item in items:
        if isinstance(item, Event) and item.reason == FORECAST and (match := _PATTERN.fullmatch(item.message)):
            at, about = instant_or(item.last_timestamp, item.metadata.created), item.involved_object
            started = at + float(match["waited"]) if match["waited"] else None
            known.keep(PastForecast(f"{about.namespace}/{about.name}", at, float(match["latest"]), started))
