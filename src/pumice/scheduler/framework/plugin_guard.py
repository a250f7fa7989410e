"""Containment: a plugin that fails, or gives an invalid answer, spoils only the question that it was asked.

Hooks and rules of plugins from outside are called through a `Guard`, which checks each answer. Each failure becomes a value, `Failure`, in
the decisions; the answer in place of the failed one is a refusal, if the hook has one. Pumice's own plugins are called directly: a fault of
theirs ends the cycle, which is undone. The live scheduler guards them, too, in the cycles that follow.
"""

from __future__ import annotations

import re
import sys
import traceback
from collections.abc import Callable, Hashable, Sequence
from numbers import Real
from typing import Any, Protocol

import numpy as np
from msgspec import Struct

from pumice.api import did_you_mean
from pumice.scheduler.engine import Filter, Reach, Reason, Refused, Rejected, Rule, Scorer, Scores, View
from pumice.scheduler.engine.rules import Unscored
from pumice.scheduler.framework.hook_answers import UNSCHEDULABLE, Refusal, Vote
from pumice.scheduler.model import Job, Queue, Task

LONGEST = 300  #: characters that are kept of an exception's message


class Failure(Struct, frozen=True):
    """What went wrong in a plugin, and where. Equal values are the same fault."""

    plugin: str  #: or an action
    hook: str
    file: str
    line: int
    message: str
    kind: str = "plugin"

    def __str__(self) -> str:
        return f"{self.kind} {self.plugin} failed in {self.hook} ({self.file.rpartition('/')[2]}:{self.line}): {self.message}"


class WrongAnswer(Exception):
    """An answer that the hook does not allow. The text says what the hook must answer."""


class NamedPart(Protocol):
    """A plugin or an action."""

    @property
    def name(self) -> str: ...


class Guard:
    """Calls one plugin or action, and reports each failure to `tell`, with the job or task that it was asked about."""

    def __init__(self, plugin: NamedPart, tell: Callable[[Failure, Any], None], kind: str = "plugin") -> None:
        self.plugin = plugin
        self._kind = kind
        self._tell = tell

    def note(self, hook: str, error: Exception, method: Callable[..., Any], about: Any = None) -> Failure:
        file, line = _place(self.plugin, error, method)
        message = str(error) if isinstance(error, WrongAnswer) else f"{type(error).__name__}: {_meant(error) or error}"
        failure = Failure(self.plugin.name, hook, file, line, message[:LONGEST], self._kind)
        self._tell(failure, about)
        return failure

    def hook(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        """The method of a hook, wrapped: answers are checked, and a failure is noted and gives the answer that refuses."""
        read, refuse = ANSWERS.get(name, _ANYTHING)
        seen: list[Hashable] = []

        def asked(*question: Any) -> Any:
            try:
                answer = method(*question)
                return _key(answer, seen) if name in ORDERS else read(answer, *question)
            except Exception as error:
                return refuse(str(self.note(name, error, method, question[0] if question else None)), *question)

        asked.__self__ = self.plugin  # type: ignore[attr-defined]
        return asked

    def filter(self, rule: Filter) -> Filter:
        return _GuardedFilter(self, rule)

    def scorer(self, rule: Scorer) -> Scorer:
        return _GuardedScorer(self, rule)


def is_ours(outsider: type) -> bool:
    """Whether the plugin or action and all its base classes are Pumice's own."""
    return all(kind is object or kind.__module__.startswith("pumice.") for kind in outsider.__mro__)


def _place(plugin: NamedPart, error: Exception, method: Callable[..., Any]) -> tuple[str, int]:
    """File and line of the innermost frame of the exception in the plugin's own files. If there is none, or the answer was wrong, where
    the method begins."""
    code = getattr(getattr(method, "__func__", method), "__code__", None)
    files = {getattr(sys.modules.get(kind.__module__), "__file__", None) for kind in type(plugin).__mro__ if not _is_framework(kind)}
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if frame.filename in files]
    if code is not None and (isinstance(error, WrongAnswer) or not own):
        return code.co_filename, code.co_firstlineno
    last = (own or frames)[-1]
    return last.filename, last.lineno or 0


def _is_framework(kind: type) -> bool:
    return kind.__module__.startswith(("builtins", "pumice.scheduler.framework.", "pumice.live."))


#: names in the API and in Volcano's code, and the attributes here that they mean
OTHER_WORDS = {
    "min_available": "min_member",
    "min_task_member": "role_minimum",
    "pods": "tasks",
    "requests": "template.request",
    "request": "template.request",
    "resreq": "template.request",
    "limits": "template.limits",
    "scheduler_name": "template.scheduler_name",
    "allocated": "held",
}


def _meant(error: Exception) -> str:
    """For an AttributeError on an object that a plugin was given: the message with the attribute that was probably meant, which may be
    known by its name in the API; else an empty text."""
    if not isinstance(error, AttributeError) or not isinstance(error.obj, Task | Job | Queue | View):
        return ""
    name, known = str(error.name), [each for each in dir(error.obj) if not each.startswith("_")]
    plain = re.sub("(?<=[a-z])(?=[A-Z])", "_", name).lower()
    meant = OTHER_WORDS.get(plain, "")
    hint = f'; did you mean "{meant}"?' if meant.partition(".")[0] in known else did_you_mean(plain, known)
    return f"{type(error.obj).__name__} has no attribute {name!r}{hint}"


def _expect(condition: bool, answer: Any, wanted: str) -> Any:
    if not condition:
        raise WrongAnswer(f"answered {_shown(answer)}; it must be {wanted}")
    return answer


def _shown(answer: Any) -> str:
    text = repr(answer)
    return text if len(text) <= 60 else f"{type(answer).__name__} {text[:60]}..."


def _yes_or_no(answer: Any, *_: Any) -> bool:
    return bool(_expect(isinstance(answer, bool | np.bool_), answer, "True or False"))


def _vote(answer: Any, *_: Any) -> Any:
    return _expect(isinstance(answer, Vote), answer, "a Vote")


def _refusal(answer: Any, *_: Any) -> Any:
    return _expect(answer is None or isinstance(answer, Refusal), answer, "None or a Refusal")


def _victims(answer: Any, *_: Any) -> Any:
    if answer is None or answer is Vote.REJECT:
        return answer
    return _tasks(answer)


def _tasks(answer: Any, *_: Any) -> list[Task]:
    listed = list(answer) if isinstance(answer, list | tuple | set | frozenset) else answer
    return list(_expect(isinstance(listed, list) and all(isinstance(each, Task) for each in listed), answer, "a list of tasks"))


def _order(answer: Any, *_: Any) -> int:
    return int(_expect(isinstance(answer, Real | np.bool_) and answer == answer, answer, "a number below, at or above 0"))


def _text(answer: Any, *_: Any) -> str:
    return str(_expect(isinstance(answer, str), answer, "a text"))


def _row(answer: Any, task: Task, totals: Scores) -> int | None:
    whole = isinstance(answer, int | np.integer) and not isinstance(answer, bool)
    _expect(answer is None or (whole and -1 <= answer < len(totals)), answer, "None or the row of a node")
    return None if answer is None else int(answer)


def _number_each(answer: Any, subject: Any, candidates: Sequence[Any]) -> list[float]:
    numbers = list(answer)
    fine = len(numbers) == len(candidates) and all(isinstance(each, Real) and np.isfinite(float(each)) for each in numbers)
    return list(_expect(fine, answer, "a finite number for each candidate"))


def _groups(answer: Any, *_: Any) -> Any:
    return _expect(isinstance(answer, list) and all(isinstance(group, list) for group in answer), answer, "a list of lists of HyperNodes")


def _hashable(answer: Any, *_: Any) -> Any:
    hash(answer)
    return answer


def _as_is(answer: Any, *_: Any) -> Any:
    return answer


def _always(value: Any) -> Callable[..., Any]:
    return lambda why, *question: value


Read = Callable[..., Any]
_ANYTHING: tuple[Read, Read] = (_as_is, _always(None))
_REFUSED = _always(False)
ORDERS = frozenset(["job_order", "queue_order", "task_order", "sub_job_order"])
ANSWERS: dict[str, tuple[Read, Read]] = {  # how an answer is checked, and the answer in place of an invalid one
    **dict.fromkeys(ORDERS, (_as_is, _always((1,)))),  # an object for which a plugin fails to give a key comes last
    "compare_queues": (_order, _always(0)),
    "victim_queue_order": (_order, _always(0)),
    "job_valid": (_refusal, lambda why, *_: Refusal(UNSCHEDULABLE, why)),
    "pre_predicate": (_refusal, lambda why, *_: Refusal(UNSCHEDULABLE, why)),
    **dict.fromkeys(("job_enqueueable", "job_pipelined", "sub_job_pipelined"), (_vote, _always(Vote.REJECT))),
    **dict.fromkeys(("job_ready", "job_starving", "sub_job_ready", "allocatable", "preemptive"), (_yes_or_no, _REFUSED)),
    "overused": (_yes_or_no, _always(True)),
    "explain_not_allocatable": (_text, lambda why, *_: why),
    "best_node": (_row, _always(-1)),
    "hyper_node_order": (_number_each, lambda why, subject, candidates: [0.0] * len(candidates)),
    **dict.fromkeys(("hyper_node_gradient_for_job", "hyper_node_gradient_for_sub_job"), (_groups, lambda why, *_: [])),
    **dict.fromkeys(("preemptable", "reclaimable", "unified_evictable"), (_victims, _always(Vote.REJECT))),
    "eviction_cache_key": (_hashable, lambda why, evictor: evictor.uid),
    "victim_tasks": (_tasks, lambda why, *_: []),
}


def _key(answer: Any, seen: list[Hashable]) -> tuple[int, Any]:
    """A sort key that can be compared with all other keys of the hook, and is less than the key in place of an invalid one."""
    kind = _expect(_kind(answer) is not None, answer, "a number, a text, or a tuple of them, by which to sort") and _kind(answer)
    if not seen:
        seen.append(kind)
    _expect(kind == seen[0], answer, "of the same kind as its other keys")
    return (0, answer)


def _kind(answer: Any) -> Hashable:
    """The kind of a sort key: keys of equal kinds can be compared. None for a value that cannot be a key."""
    if isinstance(answer, Real | np.bool_):
        return "number" if answer == answer else None
    if isinstance(answer, tuple):
        kinds = tuple(map(_kind, answer))
        return None if None in kinds else kinds
    return "text" if isinstance(answer, str) else None


class _GuardedFilter(Filter):
    """A filter behind a guard. Where it fails, it refuses all the nodes that it was asked about."""

    def __init__(self, guard: Guard, rule: Filter) -> None:
        self._guard, self._rule = guard, rule
        self.name, self.reach, self.reports_all, self.plannable = rule.name, rule.reach, rule.reports_all, rule.plannable

    def prepare(self, task: Task) -> Any:
        try:
            return self._rule.prepare(task)
        except Exception as error:
            return Rejected(_reason(self._guard.note("prepare", error, _method_of(self._rule, "prepare"))))

    def key(self, task: Task) -> Hashable:
        return _own_key(self._guard, self._rule, task)

    def refuse(self, state: Any, nodes: View) -> Sequence[Refused]:
        try:
            refusals = list(self._rule.refuse(state, nodes))
            for each in refusals:
                _expect(isinstance(each, Refused) and isinstance(each.reason, Reason), each, "a Refused with a Reason")
                _mask(each.where, nodes)
            return refusals
        except Exception as error:
            failure = self._guard.note(_hook_of(self._rule, "refuse"), error, _method_of(self._rule, "refuse"))
            return [Refused(np.ones(len(nodes), bool), _reason(failure))]


class _GuardedScorer(Scorer):
    """A scorer behind a guard. Where it fails, it raises Unscored, and the task is refused. It is never planned ahead, since a plan cannot
    be refused half way."""

    def __init__(self, guard: Guard, rule: Scorer) -> None:
        self._guard, self._rule = guard, rule
        self.name, self.reach, self.weight = rule.name, _cautious(rule.reach), rule.weight
        self.normalizes, self.relative = rule.normalizes, rule.relative

    def prepare(self, task: Task) -> Any:
        return self._asked("prepare", None, task)

    def key(self, task: Task) -> Hashable:
        return _own_key(self._guard, self._rule, task)

    def score(self, state: Any, nodes: View) -> Scores:
        return self._asked("score", len(nodes), state, nodes)  # type: ignore[no-any-return]

    def normalize(self, scores: Scores) -> Scores:
        return self._asked("normalize", len(scores), scores)  # type: ignore[no-any-return]

    def _asked(self, name: str, numbers: int | None, *question: Any) -> Any:
        try:
            answer = getattr(self._rule, name)(*question)
            return answer if numbers is None else _finite(answer, numbers)
        except Exception as error:
            failure = self._guard.note(_hook_of(self._rule, name), error, _method_of(self._rule, name))
            raise Unscored(_reason(failure)) from error


def _cautious(reach: Reach) -> Reach:
    return Reach.CLUSTER if reach is Reach.CLUSTER else Reach.NODE


def _reason(failure: Failure) -> Reason:
    return Reason(str(failure))


def _method_of(rule: Rule, name: str) -> Callable[..., Any]:
    """The method that the author of the plugin wrote for this rule."""
    method: Callable[..., Any] = getattr(rule, "method", None) or getattr(type(rule), name)
    return method


def _hook_of(rule: Rule, name: str) -> str:
    return str(getattr(getattr(rule, "method", None), "__name__", name))


def _own_key(guard: Guard, rule: Rule, task: Task) -> Hashable:
    try:
        key = rule.key(task)
        hash(key)
        return key
    except Exception as error:
        guard.note("key", error, _method_of(rule, "key"))
        return task.uid


def _mask(where: Any, nodes: View) -> None:
    fine = isinstance(where, np.ndarray) and where.dtype == bool and where.shape == (len(nodes),)
    _expect(fine, where, f"an array of {len(nodes)} booleans, one for each node")


def _finite(answer: Any, count: int) -> Scores:
    fine = isinstance(answer, np.ndarray) and answer.dtype.kind in "fiu" and answer.shape == (count,) and bool(np.isfinite(answer).all())
    scores: Scores = _expect(fine, answer, f"an array of {count} finite numbers, one for each node").astype(float)
    return scores


class Broken(Filter):
    """The filter in place of a plugin that failed to open: what the plugin would have refused is not known, so all tasks are refused."""

    def __init__(self, failure: Failure) -> None:
        self.name, self._failure = failure.plugin, failure

    def prepare(self, task: Task) -> Any:
        return Rejected(_reason(self._failure))


class BrokenScorer(Scorer):
    """The scorer in place of the scorers of a plugin that failed to give them: all tasks are refused."""

    def __init__(self, failure: Failure) -> None:
        self.name, self._failure = failure.plugin, failure

    def prepare(self, task: Task) -> Any:
        raise Unscored(_reason(self._failure))
