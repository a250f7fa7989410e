"""The chain of questions about a waiting job or pod, asked in a session that has just failed to place it, mostly alone.

The first link that holds the subject back is the binding constraint. The links after it are still answered where they have an answer.
"""

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from msgspec import Struct

from pumice.answers import closed_nodes, missing_room, pod_quota, queue_quota
from pumice.answers.answer import Because, ChainLink, Headline, Near
from pumice.answers.changes import Gone, MakeQueue, OpenQueue
from pumice.answers.missing_pods import never_made, pods_there, sub_group_too_small, too_few
from pumice.answers.missing_room import Missing
from pumice.answers.pod_changes import AskScheduler, MakeGroup, Ungate
from pumice.answers.pods_to_come import held_tasks
from pumice.answers.refusing_rules import NodesFor
from pumice.answers.request_changes import OtherQueue, WiderTopology
from pumice.answers.trial_cluster import Look
from pumice.api.annotations import GROUP_NAME
from pumice.api.defaults import SCHEDULER_NAME
from pumice.api.plural import counted, part_of
from pumice.scheduler.engine import Evaluation
from pumice.scheduler.framework.network_topology import Purpose
from pumice.scheduler.framework.statement import Statement
from pumice.scheduler.kube.extenders import AttemptFailed
from pumice.scheduler.model import INQUEUE, HyperNode, Job, SubJob, Task, status
from pumice.scheduler.model.hypernodes import BELOW_ALL
from pumice.scheduler.placement.pending_tasks import PendingTasks


class Found(Struct, frozen=True):
    """A link of the chain, and a headline if this link holds the subject back."""

    link: ChainLink
    headline: Headline | None = None


class PodsTogether(NamedTuple):
    """Pods that must be in one HyperNode: those of a job, or of a part of it."""

    tasks: list[Task]
    wanted: int  #: how many of them
    tier: int  #: the highest tier of the HyperNode
    part: SubJob | None = None
    too_many: bool = False  #: no HyperNode has as much room as all of them request


class Blocked:
    """The chain of questions about a waiting job or pod. Its results are `links`, `headline` and `nearest`."""

    def __init__(self, look: Look, refused: Headline | None = None) -> None:
        """`refused`: a ResourceQuota keeps the controller from making its pods."""
        self.look = look
        self.refused = refused
        self.session = look.session
        self.cluster = look.session.cluster
        self.policy = look.session.policy
        self.waiter = look.waiter
        self.job = look.waiter.job
        self.whose = look.waiter.name
        self.nearest: tuple[Near, ...] = ()
        self.like = ""  #: the nearest node that would do if it were empty
        found = list(self._found())
        self.links = tuple(each.link for each in found)
        self.headline = next((each.headline for each in found if each.headline is not None), None)

    def _found(self) -> Iterator[Found]:
        is_held = False
        for question in (self._served, self._has_nodes, self._admitted, self._has_pods, self._gates, self._queue, self._quota, self._nodes):
            found = question()
            if found is not None:
                fine = is_held and found.headline is not None and found.headline.because is Because.UNKNOWN  # it never got to this question
                yield _yes(found.link.question, "there is room for it") if fine else found
                is_held |= found.headline is not None
                if found.headline is not None and found.headline.because in ENDS:
                    return

    # -- does a scheduler handle it?

    @property
    def _by_profile(self) -> bool:
        """Whether the loop of kube-scheduler's profiles places the subject."""
        profiles, waits = self.policy.profiles, self.waiter.tasks
        if profiles is None or not waits or waits[0].template.scheduler_name not in profiles.by_name:
            return False
        return self.job is None or self.job.group is None or not self.policy.has_placer

    def _served(self) -> Found | None:
        question, waits = "does a scheduler look at it?", self.waiter.tasks
        wanted = waits[0].template.scheduler_name if waits else ""
        if waits and wanted not in self.cluster.schedulers:
            served = sorted(self.cluster.schedulers)
            text = f'it asks for scheduler "{wanted}"; this one serves {", ".join(served)}'
            named = waits[0].annotations.get(GROUP_NAME)
            whose = f"podgroup/{waits[0].namespace}/{named}" if named else self.whose
            profiles = self.policy.profiles
            ours = self._own if named or profiles is None else min(profiles.by_name)  # the one that needs no PodGroup
            return _no(question, Headline(Because.OTHER_SCHEDULER, text, remedy=(AskScheduler(whose, ours),)))
        if self._by_profile:
            return _yes(question, f"scheduler {wanted}")
        if self.job is None or self.job.group is None:
            named = f"PodGroup {self.job.uid}, which it names, does not exist" if self.job is not None else "it has no PodGroup"
            whose = f"podgroup/{self.job.uid}" if self.job is not None else f"pod/{waits[0].key}"
            return _no(question, Headline(Because.NO_PODGROUP, named, remedy=(MakeGroup(whose),)))
        queue = self.job.queue
        if queue is None or not queue.exists:
            name = queue.name if queue is not None else self.cluster.default_queue
            return _no(question, Headline(Because.NO_QUEUE, f"queue {name} does not exist", remedy=(MakeQueue(name),)))
        return _yes(question, f"scheduler {self._own}, for queue {queue.name}")

    def _has_nodes(self) -> Found | None:
        return None if self.cluster.nodes.count else _no("are there nodes?", Headline(Because.NO_NODES, "there is no node"))

    # -- may it start at all?

    def _admitted(self) -> Found | None:
        job = self.job
        if job is None or job.queue is None or self._by_profile or not self.policy.has_action("enqueue"):
            return None
        question = "is it admitted?"
        if not job.is_pending:
            return _yes(question, "yes" if job.phase == INQUEUE else f"yes, its PodGroup is {job.phase}")
        why = self.session.not_admitted.get(job.uid, "")
        if not job.queue.open:
            text = f"queue {job.queue.name} is {job.queue.state or 'not open yet'}: it lets no job in"
            return _no(question, Headline(Because.QUEUE_CLOSED, text, remedy=(OpenQueue(job.queue.name),)))
        shortages = self.session.shortages.get(job.uid, ())
        headline = queue_quota.headline(self.session, job, shortages, promised=True) if shortages else None
        if headline is None and self.session.plugin("resourcequota") is not None:
            headline = pod_quota.of_minimum(self.cluster, job)
        return _no(question, headline or self._inner_queue(job) or Headline(Because.NOT_ADMITTED, why or "no action lets it in"))

    def _inner_queue(self, job: Job) -> Headline | None:
        assert job.queue is not None
        below = sorted(queue.name for queue in self.cluster.queues.values() if queue.exists and queue.parent == job.queue.name)
        if not below:
            return None
        text = f"queue {job.queue.name} has child queues ({', '.join(below)}), so it takes no jobs itself"
        return Headline(Because.NOT_ADMITTED, text, remedy=(OtherQueue(job.uid, below[0]),))

    def _has_pods(self) -> Found | None:
        job = self.job
        if job is None or self._by_profile:
            return None
        question = "are its pods there?"
        if self.refused is not None:
            return _no(question, self.refused)
        if not job.tasks:
            if theirs := self._asked_of_others(job):
                text = f'its pods ask for scheduler "{theirs}"; this one serves {", ".join(sorted(self.cluster.schedulers))}'
                return _no(question, Headline(Because.OTHER_SCHEDULER, text, remedy=(AskScheduler(f"podgroup/{job.uid}", self._own),)))
            text = f"none of its {counted(job.min_member, 'pod')} is there yet; its controller creates them"
            return _no(question, Headline(Because.NO_PODS, text, str(job.min_member), "0", str(job.min_member)))
        refusal = self.session.job_valid(job)
        if refusal is None:
            too_small = sub_group_too_small(job)
            return _yes(question, pods_there(job)) if too_small is None else _no(question, too_small)
        held = held_tasks(self.cluster, job)
        return _no(question, too_few(job, refusal.message) if not held else never_made(job, held))

    @property
    def _own(self) -> str:
        """The schedulerName with which pods of PodGroups are served here."""
        return SCHEDULER_NAME if SCHEDULER_NAME in self.cluster.schedulers else max(self.cluster.schedulers)

    def _asked_of_others(self, job: Job) -> str:
        """The scheduler that pods of the job's PodGroup request, if it is not served here; else empty."""
        asked = (
            task.template.scheduler_name
            for task in self.cluster.tasks.values()
            if task.namespace == job.namespace and task.annotations.get(GROUP_NAME) == job.name
        )
        return next((name for name in asked if name not in self.cluster.schedulers), "")

    def _gates(self) -> Found | None:
        gates = Counter(gate for task in self.waiter.tasks if not task.at_queue_gate for gate in task.template.gates)
        if not gates:
            return None
        question = "is it held by gates?"
        all_pods = len(self.waiter.tasks)
        text = ", ".join(f"scheduling gate {gate} holds {part_of(count, all_pods, 'pod')}" for gate, count in gates.items())
        free = [task for task in self.waiter.tasks if not task.gated or task.at_queue_gate]
        job = self.job
        enough = bool(free) if job is None or self._by_profile else bool(free) and job.ready_count + len(free) >= job.min_member
        if enough:
            return _yes(question, text)
        return _no(question, Headline(Because.GATED, text, remedy=(Ungate(self.whose, tuple(gates)),)))

    # -- may its queue take it?

    def _queue(self) -> Found | None:
        job = self.job
        if job is None or job.queue is None or self._by_profile:
            return None
        question = "does its queue serve it?"
        if not job.queue.serving and self.session.plugins.flat["allocatable"]:
            text = f"queue {job.queue.name} is {job.queue.state or 'not open yet'}: it serves no job"
            return _no(question, Headline(Because.QUEUE_CLOSED, text, remedy=(OpenQueue(job.queue.name),)))
        return _yes(question, f"queue {job.queue.name} is {job.queue.state or 'there'}")

    def _quota(self) -> Found | None:
        job = self.job
        if job is None or job.queue is None or self._by_profile or not self.waiter.tasks:
            return None
        question, session = "may its queue hold more?", self.session
        refused = [task for task in self._in_order if task.uid in session.refused_by_queue]
        if not refused and session.overused(job.queue) and self._in_order:
            refused = [self._in_order[0]]
            session.explain_not_allocatable(job.queue, refused[0])
        if refused and not self._errors:
            shortages = session.shortages.get(refused[0].uid, ())
            text = session.explain_not_allocatable(job.queue, refused[0]) or f"queue {job.queue.name} holds all that it may"
            headline = queue_quota.headline(session, job, shortages) if shortages else self._inner_queue(job)
            return _no(question, headline or Headline(Because.QUOTA, text))
        return _yes(question, queue_quota.format_amount(session, job.queue, self.waiter.tasks[0].template.columns.tolist()))

    @property
    def _in_order(self) -> list[Task]:
        """The pending tasks that the action allocate would try, in its order."""
        assert self.job is not None
        return PendingTasks.of(self.session, self.job, self.job.pending.values()).tasks[::-1]

    @property
    def _errors(self) -> list[Task]:
        return [task for task in self.waiter.tasks if task.uid in self.session.fit_errors]

    # -- is there a node?

    def _nodes(self) -> Found | None:
        if not self.waiter.tasks:
            return None
        question = "is there a node for it?"
        if lacking := self._no_action():
            return _no(question, Headline(Because.CONFIGURATION, f"the configuration has no action that places it: it lacks {lacking}"))
        return self._for_pod(question) if self._by_profile else self._for_gang(question)

    def _no_action(self) -> str:
        """The actions that would place the subject's pods, in words; empty if one of them is configured."""
        if self._by_profile:
            return ""
        placed_by = {"backfill": self.policy.has_action("backfill"), "allocate": self.policy.has_placer}
        needed = {"backfill" if task.best_effort else "allocate" for task in self.waiter.tasks}
        return "" if any(placed_by[name] for name in needed) else " and ".join(sorted(needed))

    def _for_pod(self, question: str) -> Found:
        task, loop = self.waiter.tasks[0], self.look.loop
        assert loop is not None, "a policy with profiles has the action schedule"
        if lacks := loop.lacks_claims(task):
            return _no(question, closed_nodes.rejected(self.cluster, task, self.whose, "DynamicResources", lacks))
        search = loop.searches[task.template.scheduler_name]
        evaluation = search.evaluation(task)
        if evaluation.rejected is not None:
            return _no(question, closed_nodes.rejected(self.cluster, task, self.whose, evaluation.rejected_by, evaluation.rejected.text))
        nodes = NodesFor(evaluation)
        if (nodes.open & nodes.roomy).any():
            return _no(question, self._beyond_rules(task))
        return self._by_nodes(question, task, nodes, Missing(1, 0, [task]))

    def _beyond_rules(self, task: Task) -> Headline:
        """The headline for a pod that got no node although one fits: an extender refused it, or its room is held for nominated pods."""
        loop = self.look.loop
        assert loop is not None
        others = [
            other for other in self.cluster.tasks.values() if other.nominated and other.status == status.PENDING and other is not task
        ]
        try:
            search = loop.searches[task.template.scheduler_name]
            feasible, _ = search.feasible(task, search.evaluation(task))
            if feasible.any():
                return Headline(Because.UNKNOWN, "a node has room for it, but it was not tried in this cycle")
        except AttemptFailed as error:
            return Headline(Because.RULE, str(error))
        if others:
            names = tuple(f"pod/{other.key}" for other in others)
            return Headline(Because.OUTRANKED, f"the room that there is is held for {', '.join(names)}", remedy=(Gone(names),))
        return Headline(Because.RULE, "an extender refuses all nodes that would do")

    def _for_gang(self, question: str) -> Found:
        session, job = self.session, self.job
        assert job is not None
        task = next(iter(self._errors), self.waiter.tasks[0])
        evaluation = session.evaluation(task)
        if evaluation.rejected is not None:
            return _no(question, closed_nodes.rejected(self.cluster, task, self.whose, evaluation.rejected_by, evaluation.rejected.text))
        if (stopped := session.pre_predicate(task)) is not None:
            return _no(question, Headline(Because.RULE, stopped.message))
        if trouble := job.asks_for_topology and session.topology.tree.trouble:
            return _no(question, Headline(Because.TOPOLOGY, f"no HyperNode can be used: {trouble}"))
        return self._with_those_placed(question, job, task, evaluation)

    def _with_those_placed(self, question: str, job: Job, task: Task, evaluation: Evaluation) -> Found:
        """Judge the nodes as the pod that found none met them: with the other pods of its gang on the nodes that they had found."""
        session, tasks = self.session, self._first_of_all(job, task)
        wanted = job.min_member if job.min_member > 1 and job.ready_count < job.min_member else 1
        together = self._together(job, tasks, wanted)
        domain, together = self._domain(job, evaluation, together) if together is not None else (None, None)
        with session.statement() as statement:
            self._place_again(statement, [other for other in tasks if other is not task])
            evaluation.refresh()
            left = [other for other in tasks if other.status == status.PENDING]
            found_none = not (evaluation.admitted & evaluation.fits_future).any()
            if together is None or (domain is session.topology.tree.root and not together.too_many) or found_none:
                return self._by_nodes(question, task, NodesFor(evaluation), Missing(wanted, job.ready_count if wanted > 1 else 0, left))
        evaluation.refresh()
        if domain is None:
            return _no(question, missing_room.no_domain(together.tier, WiderTopology(job.uid, self._next_tier(BELOW_ALL))))
        inside = NodesFor(evaluation, domain.rows)
        self._note(inside)
        missing, wider = Missing(together.wanted, 0, together.tasks), WiderTopology(job.uid, self._next_tier(together.tier))
        if domain is session.topology.tree.root:
            return _no(question, missing_room.in_cluster(inside, missing))
        return _no(question, missing_room.in_domain(inside, missing, domain.name, together.tier, wider))

    def _next_tier(self, tier: int) -> int | None:
        """The lowest tier above this one; None if there is none."""
        tree = self.session.topology.tree
        return min((each.tier for each in tree.all if each is not tree.root and each.tier > tier), default=None)

    def _together(self, job: Job, tasks: list[Task], wanted: int) -> PodsTogether | None:
        """The pods that must be in one HyperNode: those of the job, or of its first sub-group that waits. None if there are none."""
        topology = self.session.topology
        if topology.is_plain(job):
            return None
        if (tier := topology.limit(job)) is not None:
            return PodsTogether(tasks, max(wanted - job.ready_count, 1), tier)
        for part in job.subjobs:
            if (tier := topology.sub_limit(job, part)) is not None and part.pending:
                return PodsTogether(part.pending, max(-part.ready_margin, 1), tier, part)
        return None

    def _place_again(self, statement: Statement, tasks: list[Task]) -> None:
        """Place the tasks where they were placed until their statement was discarded."""
        for task in tasks:
            last = self.session.last_try.get(task.uid)
            row = self.session.nodes.rows.get(last.node) if last is not None and not last.evicted else None
            if row is not None and last is not None:
                (statement.allocate if last.status == status.ALLOCATED else statement.pipeline)(task, row)

    def _first_of_all(self, job: Job, first: Task) -> list[Task]:
        others = [task for task in self._in_order if task is not first] or [task for task in self.waiter.tasks if task is not first]
        return [first, *others]

    def _domain(self, job: Job, evaluation: Evaluation, together: PodsTogether) -> tuple[HyperNode | None, PodsTogether]:
        """The roomiest HyperNode that may hold the pods; the root if they may be anywhere, None if there is none of such a tier. And the
        pods for which there must be room: all of a part that wait, if these are too many for every HyperNode."""
        tree, session = self.session.topology.tree, self.session
        asked = tree.root, Purpose.ALLOCATE
        groups = session.gradients(job, *asked) if together.part is None else session.sub_gradients(job, together.part, *asked)
        within = [each for group in groups for each in group]
        part = together.part or next((each for each in job.subjobs if each.pending), None)
        if part is not None and not any(session.sub_gradients(job, part, each, Purpose.ALLOCATE) for each in within):
            together = PodsTogether(part.pending, len(part.pending), together.tier, together.part, too_many=True)
        if tree.root in within:
            return tree.root, together
        within = within or [each for each in tree.all if each.tier <= together.tier and each is not tree.root]
        roomiest = max(within, key=lambda domain: NodesFor(evaluation).copies(domain.rows & evaluation.admitted), default=None)
        return roomiest, together

    def _by_nodes(self, question: str, task: Task, nodes: NodesFor, missing: Missing) -> Found:
        self._note(nodes)
        if not (nodes.open & nodes.large).any() and (choice := closed_nodes.choose(nodes)) is not None:
            headline = closed_nodes.headline(self.cluster, task, self.whose, nodes, choice)
            return _no(question, missing_room.of_gang(missing, headline) if missing.is_gang and missing.found else headline)
        if (nodes.open & nodes.roomy).any():
            unknown = Headline(Because.UNKNOWN, "there is room for it, but a rule that gives no reason keeps it waiting")
            return _no(question, missing_room.for_a_part(nodes, missing) or unknown)
        return _no(question, missing_room.headline(nodes, missing, self.whose))

    def _note(self, nodes: NodesFor) -> None:
        names = nodes.table.names
        self.nearest = tuple(Near(names[row], nodes.lacks(row)) for row in nodes.nearest())
        would_do = nodes.alive & nodes.large & ~nodes.shut(but="NodeUnschedulable", lasting=True)
        self.like = names[int(nodes.distance(would_do).argmin())] if would_do.any() else ""


ENDS = frozenset(
    [Because.OTHER_SCHEDULER, Because.NO_PODGROUP, Because.NO_QUEUE, Because.NO_NODES]
)  #: reasons after which later questions have no answer


def _yes(question: str, answer: str) -> Found:
    return Found(ChainLink(question, True, answer))


def _no(question: str, headline: Headline) -> Found:
    return Found(ChainLink(question, False, headline.text, headline.needed, headline.available, headline.short), headline)
