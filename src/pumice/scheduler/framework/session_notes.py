"""What a session notes of jobs and tasks while actions run: why they are refused, and what is to be written with their binds."""

from msgspec import Struct

from pumice.scheduler.framework.fit_errors import FitErrors, Shortage
from pumice.scheduler.model import Task, Vector


class LastTry(Struct, frozen=True):
    """The place that a task had until its statement was undone. `evicted`: evictions, undone as well, had made the room."""

    status: int
    node: str
    evicted: bool = False


class SessionNotes:
    def __init__(self) -> None:
        self.annotations: dict[str, dict[str, str]] = {}  #: by task uid: annotations that its bind shall write
        self.refused_by_queue: dict[str, str] = {}  #: by task uid: why its queue refuses it
        self.taken_in_thought: dict[str, tuple[tuple[int, int], Vector]] = {}  #: by job uid: requests of Allocated tasks, until a move
        self.not_admitted: dict[str, str] = {}  #: by job uid: why enqueue did not let it in
        self.shortages: dict[str, tuple[Shortage, ...]] = {}  #: by task or job uid: the numbers behind its refusal
        self.fit_errors: dict[str, FitErrors] = {}  #: by task uid
        self.failed_roles: dict[str, set[str]] = {}  #: by job or sub-job uid: roles whose tasks found no node
        self.last_try: dict[str, LastTry] = {}  #: by task uid
        self.states: dict[str, str] = {}  #: by job uid: its state in one text, if a plugin has told it at the close
        self.changes = 0  #: grows with each change that is not undone before the session closes
        self.blanks: dict[str, str] = {}  #: by task uid: the blank for its name, in texts that serve for several jobs
        self.went_by_clock = False  #: whether something was tried whose outcome depends on time or turns

    def name_of(self, task: Task) -> str:
        """The name of a task, for texts; a blank if the text serves for all jobs that are like the task's job."""
        return self.blanks.get(task.uid, task.name)
