"""What the parts of a live scheduler share, like the framework handle of kube-scheduler."""

from collections.abc import Callable
from typing import NamedTuple

from pumice.client.event_correlator import EventRecord
from pumice.live.clock import Clock
from pumice.live.scheduler.cycle_timing import Urgency
from pumice.live.scheduler.event_translation import EventTranslation
from pumice.live.scheduler.metrics import LiveMetrics
from pumice.live.scheduler.sent_status import SentStatus
from pumice.live.scheduler.single_writer import SingleWriter
from pumice.scheduler.model import Cluster


class Handle(NamedTuple):
    cluster: Cluster  #: the kept state
    state: SingleWriter  #: through which it is changed
    sent_status: SentStatus
    event_translation: EventTranslation
    clock: Clock
    metrics: LiveMetrics
    tell: Callable[[EventRecord], None]  #: sends an event
    request_cycle: Callable[[Urgency], None]  #: called if the next cycle may have work
