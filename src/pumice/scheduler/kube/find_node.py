"""Looking for a node for one pod, by the rules of its profile.

A pod's nominated node is tried first and alone. Otherwise every node is asked (or as many as the profile wants); where other pods
are nominated the pod must fit both with and without them. Then extenders filter what is left, and the highest total score wins.
"""

from collections import Counter
from collections.abc import Hashable, Sequence

import numpy as np
from msgspec import Struct

from pumice.scheduler.engine import Evaluation, Reason, Scores, View
from pumice.scheduler.engine.evaluations import Evaluations
from pumice.scheduler.framework.fit_errors import kube_sentence
from pumice.scheduler.framework.profiles import Profile
from pumice.scheduler.framework.session import Session
from pumice.scheduler.kube.diagnosis import NodeStatuses, PreparedFilters, WithNominated, run_filters, sees_columns_only, speaking
from pumice.scheduler.kube.extenders import AttemptFailed, Extender
from pumice.scheduler.kube.node_sampling import NodeSampling, enough
from pumice.scheduler.kube.nominator import Nominator
from pumice.scheduler.kube.pipelined_room import pipelined_room
from pumice.scheduler.kube.preemption_dry_run import Trial
from pumice.scheduler.model import Mask, Task
from pumice.scheduler.plugins.kube.node_resources_fit import IGNORES, FitFilter

CLAIM = "ResourceClaim"

ExtenderRefusals = dict[int, tuple[str, bool]]  #: by row: why an extender refused it, and whether that is final


class NoNodes(AttemptFailed):
    """There is no node to try."""


class FitError(Struct, frozen=True):
    """Why no node fits, of those that were tried. `resolvable`: nodes whose reason evictions might remove."""

    evaluation: Evaluation
    nodes: int
    counts: Counter[str]
    resolvable: Mask
    by: frozenset[str]  #: the rules that refused any node, and extenders
    rejected: Reason | None = None

    def is_rejected_before(self, plugin: str) -> bool:
        """Whether a rule that comes before this one has refused the pod whatever the node."""
        return self.rejected is not None and self.evaluation.rejected_by != plugin

    @property
    def text(self) -> str:
        return f"0/{self.nodes} nodes are available: {self.rejected.text}." if self.rejected else kube_sentence(self.nodes, self.counts)


class NodeFinder:
    """The search for a node. One for each profile and session."""

    def __init__(
        self, session: Session, profile: Profile, nominations: Nominator, extenders: Sequence[Extender], sampling: NodeSampling
    ) -> None:
        self.session = session
        self.profile = profile
        self.nominations = nominations
        self.extenders = extenders
        self.sampling = sampling
        self.table = session.nodes
        self.filters = [rule for make in profile.filters for rule in make(session)] + pipelined_room(session)
        session.memory(IGNORES).update((profile.name, rule.may_lack) for rule in self.filters if isinstance(rule, FitFilter))
        self.scorers = [rule for make in profile.scorers for rule in make(session)]
        prioritized = any(extender.spec.prioritize_verb for extender in extenders)
        self._chooses = bool(self.scorers) or prioritized
        self._first_will_do = not self._chooses and not any(extender.spec.filter_verb for extender in extenders)
        self._evaluations = Evaluations(
            session.cluster, self.filters, self.scorers, session.observer.asking, shortcuts=session.policy.shortcuts
        )
        self._claims = session.cluster.versions.get(CLAIM, 0)  #: the device claims that the evaluations have seen
        self._last_fit_error: tuple[Hashable, FitError] | None = None
        self.placement: Mask | None = None  #: the rows among which a node is searched; None: all

    def evaluation(self, task: Task) -> Evaluation:
        """The up-to-date answers of the profile's rules for a pod. Claims that a group gives back count for all that are tried after it."""
        claims = self.session.cluster.versions.get(CLAIM, 0)
        if self._claims != claims:
            self._claims = claims
            self._evaluations.keep_lasting()
        found = self._evaluations.of(task)
        if found.rejected is None:
            found.refresh()
        return found

    def find(self, task: Task) -> int | FitError:
        """The row of the node for the pod, or why there is none. Raises AttemptFailed."""
        if not self._tried:
            raise NoNodes("no nodes available to schedule pods")
        evaluation = self.evaluation(task)
        if evaluation.rejected is not None:
            return self._rejected(evaluation, evaluation.rejected)
        return self._find(task, evaluation)

    @property
    def _tried(self) -> int:
        return self.table.count if self.placement is None else int(np.count_nonzero(self.placement))

    @property
    def _among(self) -> Mask:
        return self.table.alive if self.placement is None else self.placement

    def _find(self, task: Task, evaluation: Evaluation) -> int | FitError:
        feasible, statuses = self.feasible(task, evaluation)
        found = np.count_nonzero(feasible)
        if not found:
            return self._fit_error(task, evaluation, statuses)
        return int(feasible.argmax()) if found == 1 else self.choose(task, evaluation, feasible)

    # -- feasible nodes

    def feasible(self, task: Task, evaluation: Evaluation) -> tuple[Mask, ExtenderRefusals]:
        """The rows to choose among, and the reasons of extenders for other rows. A nominated node that fits is the only row."""
        fitting = self.fitting(task, evaluation)
        nominated = self.table.rows.get(task.nominated, -1) if task.nominated else -1
        if nominated >= 0 and fitting[nominated]:
            alone = np.zeros(len(fitting), bool)
            alone[nominated] = True
            alone, statuses = self._extended(task, alone)
            if alone[nominated]:
                return alone, statuses
        self._fail(evaluation)
        return self._extended(task, self._sampled(evaluation, fitting))

    def _fail(self, evaluation: Evaluation) -> None:
        """Raise AttemptFailed if a filter could not judge a row that the filters before it admit."""
        rows = evaluation.failing
        if self.placement is not None:
            rows = rows[self.placement[rows]]
        if not len(rows):
            return
        statuses = run_filters(evaluation.filters, View(self.table, rows), self.table.alive[rows])
        if statuses.failure:
            raise AttemptFailed(statuses.failure)

    def fitting(self, task: Task, evaluation: Evaluation) -> Mask:
        """The rows that no filter refuses, neither with the pods nominated there nor without."""
        fitting = evaluation.admitted if self.placement is None else evaluation.admitted & self.placement
        if self.nominations:
            rows, statuses = self._with_nominated(task, evaluation, fitting)
            if len(rows):
                fitting = fitting.copy()
                fitting[rows[statuses.refused]] = False
        return fitting

    def _with_nominated(self, task: Task, evaluation: Evaluation, among: Mask) -> tuple[np.ndarray, NodeStatuses]:
        """The rows with nominated pods that count against the task, and what filters say there as if these were placed."""
        rows, held = self.nominations.against(task)
        held, rows = held[:, among[rows]], rows[among[rows]]
        if not len(rows):
            return rows, together([])
        if sees_columns_only(evaluation):
            return rows, run_filters(evaluation.filters, WithNominated(self.table, rows, held), np.ones(len(rows), bool))
        filters = speaking(evaluation)
        return rows, together([self._on_trial(task, filters, row) for row in rows.tolist()])

    def _on_trial(self, task: Task, filters: PreparedFilters, row: int) -> NodeStatuses:
        with Trial(self.session.cluster) as trial:
            for other in self.nominations.held_against(task, row):
                trial.place(other, row)
            return run_filters(filters, View(self.table, np.array([row])), np.ones(1, bool))

    def _sampled(self, evaluation: Evaluation, fitting: Mask) -> Mask:
        """As many of the feasible nodes as the profile wants to look at."""
        percentage = self.profile.percentage
        if not self._first_will_do and not 0 < percentage < 100:
            return fitting
        among = self._not_narrowed(evaluation)
        wanted = 1 if self._first_will_do else enough(percentage, int(among.sum()))
        return self.sampling.pick(fitting, among, wanted)

    def _not_narrowed(self, evaluation: Evaluation) -> Mask:
        among = self._among.copy()
        for refused in evaluation.refusals():
            if refused.reason.from_prefilter:
                among &= ~refused.where
        return among

    def _extended(self, task: Task, feasible: Mask) -> tuple[Mask, ExtenderRefusals]:
        """The nodes that extenders keep, and their reasons for the others."""
        statuses: ExtenderRefusals = {}
        for extender in self.extenders:
            if extender.spec.filter_verb and extender.interested(task) and feasible.any():
                feasible, more = extender.filter(task, feasible)
                statuses |= more
        return feasible, statuses

    # -- the best of them

    def choose(self, task: Task, evaluation: Evaluation, feasible: Mask) -> int:
        """The row of the highest total score, the first of equal ones. Raises AttemptFailed."""
        if not self._chooses:
            return int(np.flatnonzero(feasible)[0])
        row = -1 if self.extenders else evaluation.best(feasible)
        totals = evaluation.totals(feasible) if row < 0 else None
        if evaluation.rejected is not None:
            raise AttemptFailed(evaluation.rejected.text)
        if totals is None:
            return row
        for extender, scores in self.extra_scores(task, feasible):
            totals += scores * extender.spec.weight
        return int(totals.argmax())

    def extra_scores(self, task: Task, feasible: Mask) -> list[tuple[Extender, Scores]]:
        """The extenders that are asked about the pod and answer, each with its scores."""
        asked = [e for e in self.extenders if e.spec.prioritize_verb and e.interested(task)]
        return [(e, scores) for e in asked if (scores := e.prioritize(task, feasible)) is not None]

    @property
    def foreseeable(self) -> bool:
        """Whether equal pods that follow one another may be planned ahead: all nodes are looked at, by rules alone."""
        return self.session.policy.shortcuts and bool(self.scorers) and not self.extenders and not 0 < self.profile.percentage < 100

    # -- why not

    def _rejected(self, evaluation: Evaluation, reason: Reason) -> FitError:
        tried = self._tried
        resolvable = self._among & (not reason.final)
        return FitError(evaluation, tried, Counter({reason.text: tried}), resolvable, frozenset([evaluation.rejected_by]), reason)

    def _fit_error(self, task: Task, evaluation: Evaluation, extended: ExtenderRefusals) -> FitError:
        """Why each node refuses the pod. Equal pods in an unchanged cluster get the same answer."""
        among = b"" if self.placement is None else self.placement.tobytes()
        nominated = task.uid if self.nominations else ""
        key = (evaluation, self.session.cluster.log.position, int(self.nominations.stamp.sum()), nominated, among)
        if self._last_fit_error is not None and self._last_fit_error[0] == key and not extended:
            return self._last_fit_error[1]
        statuses = self.statuses(task, evaluation)
        counts, final = statuses.counts, statuses.final | ~statuses.refused  # evictions do not help where an extender drops a node silently
        for row, (text, is_final) in extended.items():
            counts[text] += 1
            final[row] = is_final
        extenders = frozenset(e.spec.name for e in self.extenders) if extended else frozenset()
        fit_error = FitError(evaluation, self._tried, counts, ~final & self._among, statuses.by | extenders)
        if not extended:
            self._last_fit_error = (key, fit_error)
        return fit_error

    def statuses(self, task: Task, evaluation: Evaluation) -> NodeStatuses:
        """What filters say about every node: with the pods nominated there if filters refuse it then, else without them."""
        among = self._among.copy()
        rows, crowded = self._with_nominated(task, evaluation, among) if self.nominations else (np.zeros(0, np.intp), None)
        if crowded is not None:
            among[rows[crowded.refused]] = False
        plain = run_filters(evaluation.filters, View(self.table), among)
        statuses = plain if crowded is None else plain.joined(crowded, rows)
        return self._with_nominated_asked_first(task, evaluation, statuses)

    def _with_nominated_asked_first(self, task: Task, evaluation: Evaluation, statuses: NodeStatuses) -> NodeStatuses:
        """The statuses with the nominated node judged before PreFilter drops nodes. The plugin refusing it is named as one of PreFilter."""
        row = self.table.rows.get(task.nominated, -1) if task.nominated else -1
        if row >= 0 and not self._among[row]:
            row = -1
        narrowing = {refused.reason.text for refused in evaluation.refusals() if refused.reason.from_prefilter} if row >= 0 else set()
        if not narrowing:
            return statuses
        where = np.array([row])
        own = run_filters(evaluation.filters, View(self.table, where), np.ones(1, bool), narrowed=False)
        others = statuses.without(row)
        reasons = [(_joined_by(text, own.by) if text in narrowing else text, mask) for text, mask in others.reasons]
        return others._replace(reasons=reasons).joined(own, where)


def _joined_by(text: str, plugins: frozenset[str]) -> str:
    """The text `... plugin(s) [A]` with more plugins in the brackets."""
    before, _, named = text.removesuffix("]").rpartition("[")
    return f"{before}[{' '.join(sorted({*named.split(), *plugins}))}]"


def together(statuses: Sequence[NodeStatuses]) -> NodeStatuses:
    """The statuses of single rows as one status of all of them."""
    size = len(statuses)
    refused, final = np.zeros(size, bool), np.zeros(size, bool)
    reasons: dict[str, Mask] = {}
    for position, word in enumerate(statuses):
        refused[position], final[position] = word.refused[0], word.final[0]
        for text, where in word.reasons:
            reasons.setdefault(text, np.zeros(size, bool))[position] |= where[0]
    return NodeStatuses(refused, final, list(reasons.items()), frozenset(name for word in statuses for name in word.by))


def compares_all(evaluation: Evaluation) -> bool:
    """Whether a filter compares all resources of a node. Only then is a plan right, which compares them all."""
    return any(isinstance(rule, FitFilter) and not rule.ignored and not rule.ignored_groups for rule, _ in evaluation.filters)
