"""DefaultPreemption: a pod that fits nowhere takes the place of less important ones.

Only nodes whose refusal evictions could cure are tried. The pod is not bound but nominated: its victims need time to leave, and it
comes again. It holds the room against pods that are not more important; less important nominations on the node are taken back.
"""

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from pumice.scheduler.engine import Reach, Scores
from pumice.scheduler.eviction.disruption_budgets import BudgetsByNamespace
from pumice.scheduler.eviction.pick_node import Candidate, cheapest, cost, searched
from pumice.scheduler.framework.decisions import PreemptionTry
from pumice.scheduler.framework.fit_errors import kube_sentence
from pumice.scheduler.framework.observer import Stage
from pumice.scheduler.framework.profiles import DefaultPreemptionArgs
from pumice.scheduler.framework.session import Session
from pumice.scheduler.kube.diagnosis import WithNominated, run_filters
from pumice.scheduler.kube.extenders import AttemptFailed, Extender
from pumice.scheduler.kube.find_node import FitError
from pumice.scheduler.kube.node_sampling import NodeSampling
from pumice.scheduler.kube.nominator import Nominator
from pumice.scheduler.kube.pipelined_room import PipelinedRoom
from pumice.scheduler.kube.preemption_by_resources import ResourceDryRun
from pumice.scheduler.kube.preemption_dry_run import NO_VICTIMS, PreemptionDryRun
from pumice.scheduler.kube.preemption_units import POD, Units
from pumice.scheduler.kube.victims_table import UnitsTable, VictimsTable
from pumice.scheduler.model import PODS, Mask, Rows, Task, status
from pumice.scheduler.plugins.kube.node_resources_fit import FitFilter

NOT_HELPFUL = "Preemption is not helpful for scheduling"


@dataclass
class PreemptionVerdict:
    """The result of preemption. Without a candidate: the reason, and whether an old nomination is taken back (`clear`)."""

    candidate: Candidate | None = None
    text: str = ""
    clear: bool = False


@dataclass
class DryRunResults:
    """The candidates as extenders get them, and the counts of reasons on nodes that are no candidates."""

    candidates: list[Candidate] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    errors: list[str] = field(default_factory=list)


class Preemption:
    """The search for victims. One for each session; `extenders` are all that are configured."""

    def __init__(
        self, session: Session, nominations: Nominator, extenders: Sequence[Extender], sampling: NodeSampling, units: Units | None = None
    ) -> None:
        self.session = session
        self.cluster = session.cluster
        self.table = session.nodes
        self.nominations = nominations
        self.extenders = extenders
        self.sampling = sampling
        self.units = units or Units(None)
        self._promised: Mask = np.logical_or.reduce(self.table.pipelined, axis=0)  #: rows where gangs are pipelined; they are left alone
        self._runs: dict[Hashable, ResourceDryRun] = {}

    @cached_property
    def budgets(self) -> BudgetsByNamespace:
        return BudgetsByNamespace(self.cluster)

    def consider(self, task: Task, fit_error: FitError, args: DefaultPreemptionArgs) -> PreemptionVerdict:
        """The node where evictions would make room, with the victims, or why there is none. Raises AttemptFailed."""
        self.session.observer.begins(Stage.EVALUATION, task)
        tried = PreemptionTry("pod", "Error")
        try:
            verdict = self._consider(task, fit_error, args)
            tried = self._tried(verdict.candidate) if verdict.candidate is not None else PreemptionTry("pod", "Unschedulable")
            return verdict
        finally:
            self.session.decisions.preemption_tries.append(tried)
            self.session.observer.ends(Stage.EVALUATION, tried)

    def _tried(self, chosen: Candidate) -> PreemptionTry:
        units = self.units.of(chosen.victims) if self.units.matter(self.cluster) else ()
        disruptions = sum(unit.kind != POD for unit in units)
        return PreemptionTry("pod", "Success", len(chosen.victims), disruptions, chosen.violations)

    def _consider(self, task: Task, fit_error: FitError, args: DefaultPreemptionArgs) -> PreemptionVerdict:
        if reason := self._ineligible(task, fit_error):
            return PreemptionVerdict(text=reason)
        order = self.sampling.order
        potential = order[(fit_error.resolvable & ~self._promised)[order]]
        share = len(potential) * args.min_candidate_nodes_percentage // 100
        wanted = min(max(share, args.min_candidate_nodes_absolute), len(potential))
        run = self._dry_run(task, fit_error)
        asked = [e for e in self.extenders if e.spec.preempt_verb and e.interested(task)]
        if run is not None:
            run.refresh(task, self.nominations)
            if run.success[potential].any() and not asked:
                return PreemptionVerdict(self._cheapest(run, potential, wanted))
            found = self._all_at_once(run, potential, wanted, task, fit_error)
        else:
            found = self._one_by_one(potential, wanted, task, fit_error)
        return self._decide(found, asked, task, len(potential))

    def spares(self, task: Task, fit_error: FitError) -> bool:
        """Whether less important pods whose eviction might help are spared, because gangs are pipelined on their nodes in this session."""
        return not task.template.never_preempts and bool((fit_error.resolvable & (self._least_spared < task.pod_priority)).any())

    @cached_property
    def _least_spared(self) -> Scores:
        """The lowest priority of the pods on each row where gangs are pipelined; infinite elsewhere."""
        least = np.full(len(self.table), np.inf)
        for row in np.flatnonzero(self._promised).tolist():
            least[row] = min((task.pod_priority for task in self.table.tasks[row].values()), default=np.inf)
        return least

    def _ineligible(self, task: Task, fit_error: FitError) -> str:
        if task.template.never_preempts:
            return "not eligible due to preemptionPolicy=Never."
        row = self.table.rows.get(task.nominated, -1) if task.nominated else -1
        if row >= 0 and fit_error.resolvable[row]:
            on_node = self.table.tasks[row].values()
            if any(t.deleting and t.disrupted and self.units.priority(t) < task.pod_priority for t in on_node):
                return "not eligible due to a terminating pod on the nominated node."
        return ""

    # -- candidates

    def _dry_run(self, task: Task, fit_error: FitError) -> ResourceDryRun | None:
        """The dry run on many nodes at once, if resources alone decide; else None."""
        if not self.session.policy.shortcuts:
            return None
        rules = [rule for rule, _ in fit_error.evaluation.filters if rule.reach is not Reach.STATIC and not isinstance(rule, PipelinedRoom)]
        if len(rules) != 1 or not isinstance(rules[0], FitFilter) or fit_error.evaluation.rejected is not None:
            return None
        victims_table = self._victims_table()
        if victims_table is None:
            return None
        run = self._runs.get((task.template, victims_table))
        if run is None:
            columns = checked_columns(rules[0], task, self.cluster.dimensions.names)
            need = task.template.request[columns]
            run = ResourceDryRun(self.cluster, victims_table, need, columns, task.pod_priority, self.budgets, self.session.now)
            self._runs[task.template, victims_table] = run
        return run

    def _victims_table(self) -> VictimsTable | None:
        """The pods on each node, up to date: one by one, or by units where groups run; None if these cannot be compared by numbers."""
        if not self.units.matter(self.cluster):
            return self.cluster.index(VictimsTable)
        if self.budgets:
            return None
        table = self.cluster.index(UnitsTable)
        table.read_by(self.units)
        return None if table.uneven else table

    def _cheapest(self, run: ResourceDryRun, potential: Rows, wanted: int) -> Candidate:
        rows = potential[searched(run.clean[potential], run.success[potential], wanted)]
        return run.candidate(int(rows[cheapest(run.costs.at(rows))]))

    def _all_at_once(self, run: ResourceDryRun, potential: Rows, wanted: int, task: Task, fit_error: FitError) -> DryRunResults:
        found = DryRunResults()
        rows = potential[searched(run.clean[potential], run.success[potential], wanted)]
        found.candidates = [run.candidate(row) for row in rows.tolist()]
        if found.candidates:
            return found
        empty, unfit = ~run.has_lower[potential], run.has_lower[potential] & ~run.fits[potential]
        found.counts[NO_VICTIMS] += int(empty.sum())
        found.counts += self._refusals(run, potential[unfit], task, fit_error)
        needless = potential[~empty & ~unfit]
        found.errors = [self._needless(row) for row in needless.tolist()]
        return found

    def _refusals(self, run: ResourceDryRun, rows: Rows, task: Task, fit_error: FitError) -> Counter[str]:
        """The counts of reasons on nodes where the pod would not fit even if all less important pods went."""
        nominated, held = self.nominations.against(task)
        crowd = np.zeros((len(held), len(self.table)))
        crowd[:, nominated] = held
        gone = run.walk(rows, crowd[np.ix_(run.columns, rows)]).gone
        return run_filters(
            fit_error.evaluation.filters, WithNominated(self.table, rows, crowd[:, rows] - gone), np.ones(len(rows), bool)
        ).counts

    def _needless(self, row: int) -> str:
        return f'expected at least one victim pod on node "{self.table.names[row]}"'

    def _one_by_one(self, potential: Rows, wanted: int, task: Task, fit_error: FitError) -> DryRunResults:
        found = DryRunResults()
        run = PreemptionDryRun(self.cluster, task, fit_error.evaluation, self.nominations, self.budgets, self.units, self.session.now)
        clean: list[Candidate] = []
        others: list[Candidate] = []
        for row in potential.tolist():
            try:
                result = run.on(row) if fit_error.rejected is None else (fit_error.rejected.text,)
            except AttemptFailed as error:
                found.errors.append(str(error))
                continue
            if not isinstance(result, Candidate):
                found.counts.update(result)
            elif not result.victims:
                found.errors.append(self._needless(row))
            else:
                (others if result.violations else clean).append(result)
                if clean and len(clean) + len(others) >= wanted:
                    break
        found.candidates = [*clean[:wanted], *others[:wanted]]
        return found

    # -- the choice

    def _decide(self, found: DryRunResults, asked: Sequence[Extender], task: Task, potential: int) -> PreemptionVerdict:
        if not found.candidates:
            if found.errors:
                texts = list(dict.fromkeys(found.errors))
                raise AttemptFailed(texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]")
            others = Counter({NOT_HELPFUL: self.table.count - potential})
            return PreemptionVerdict(text=kube_sentence(self.table.count, found.counts + others), clear=True)
        candidates = self._extended(found.candidates, asked, task)
        if not candidates:
            return PreemptionVerdict(text="no candidate node for preemption")
        return PreemptionVerdict(min(candidates, key=lambda each: cost(each, self.session.now)))

    def _extended(self, candidates: list[Candidate], asked: Sequence[Extender], task: Task) -> list[Candidate]:
        """The candidates that extenders accept, with the victims that they name."""
        victims = {c.row: (c.victims, c.violations) for c in candidates}
        for extender in asked:
            if victims:
                victims = extender.preempt(task, victims)
        if not asked:
            return candidates
        return [Candidate(row, pods, violations) for row, (pods, violations) in victims.items()]

    # -- carrying it out

    def carry_out(self, task: Task, candidate: Candidate) -> None:
        """Evict the victims, take back less important nominations to the node, and nominate the pod."""
        tried = self.session.decisions.preemption_tries[-1]
        self.session.observer.begins(Stage.EXECUTION, tried)
        self.evict(candidate.victims, task.key)
        self.session.observer.ends(Stage.EXECUTION, tried)
        for other in self.nominations.on(candidate.row):
            if other.pod_priority < task.pod_priority:
                self.nominate(other, -1)
        self.nominate(task, candidate.row)

    def evict(self, victims: Sequence[Task], beneficiary: str) -> None:
        """Evict the victims that are not leaving yet, in favour of a pod or group."""
        with self.session.statement() as statement:
            fresh = [victim for victim in victims if not victim.deleting and victim.status != status.RELEASING]
            for victim in fresh:
                statement.terminate(victim, "schedule", beneficiary)
            statement.commit()
            for victim in fresh:
                self.session.before.set(victim, deleting=True, disrupted=True)

    def nominate(self, task: Task, row: int) -> None:
        """Nominate the pod to a row; -1 takes its nomination back."""
        name = self.table.names[row] if row >= 0 else ""
        if row >= 0:
            self.nominations.add(task, row)
        else:
            self.nominations.drop(task)
        if name != task.nominated:
            self.session.scheduling_queue.nomination_ended(task)
            self.session.before.set(task, nominated=name)
            self.session.decisions.nominations[task] = name


def checked_columns(fit: FitFilter, task: Task, names: Sequence[str]) -> Rows:
    """The columns of the resources that NodeResourcesFit compares for the pod."""
    columns = [column for column in task.template.columns.tolist() if column == PODS or not fit.ignores(names[column])]
    return np.array(columns, np.intp)
