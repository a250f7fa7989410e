"""Answers as text for people: first the one line that matters, then the chain of questions, then the nodes that nearly fit.

`Naming` says how jobs are called: by the names that their users gave them (`subject.called`).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

from pumice.answers.answer import Near, Why
from pumice.answers.changes import ClusterChange
from pumice.answers.defrag import Defrag
from pumice.answers.difference import Difference
from pumice.answers.whatif import Option, WhatIf
from pumice.api import rfc3339
from pumice.api.plural import counted, plural
from pumice.text_table import columns

Naming = Callable[[str], str]


def page(answer: Why, naming: Naming = str) -> str:
    return "\n\n".join(_parts(answer, naming))


def _parts(answer: Why, naming: Naming) -> Iterator[str]:
    yield naming(f"{answer.subject} {answer.state}: {answer.line}")
    if answer.never:
        yield naming(f"It can never run here: {answer.never}.")
    if answer.note:
        yield naming(f"Note: {answer.note}.")
    if help_ := advice(answer):
        yield naming(help_)
    if answer.chain:
        yield _table(
            ("", "QUESTION", "ANSWER"), [("ok" if link.fine else "NO", link.question, link.answer) for link in answer.chain], naming
        )
    if nearest := [near for near in answer.nearest if near.lacks]:
        yield _table(("NEAREST NODE", "LACKS"), [_near(near) for near in nearest], naming)
    if answer.alternatives:
        rules = list(answer.alternatives[0].scores)
        rows = [(each.node, f"{each.total:g}", *(f"{each.scores[rule]:g}" for rule in rules)) for each in answer.alternatives]
        yield columns(("NODE", "TOTAL", *rules), rows)
    if answer.evictions and answer.state != "was evicted":
        yield _table(("EVICTED AT", "POD", "BECAUSE OF"), [(rfc3339(each.at), each.pod, each.cause) for each in answer.evictions], naming)
    if answer.parts:
        yield _table(("JOB", "STATE", "WHY"), [(part.subject, part.state, part.line) for part in answer.parts], naming)


def advice(answer: Why) -> str:
    """What would help, in one sentence: only what was rehearsed; else what is short, and what holds the subject back next. May be empty."""
    if answer.advice:
        return f"What would help: {_all(answer.advice)}"
    if answer.headline is None or not answer.then:
        return ""
    return f"{_all(answer.headline.remedy)} would not be enough: then {answer.then}"


def _near(near: Near) -> tuple[str, str]:
    return near.node, "; ".join(near.lacks)


def options(answer: WhatIf, naming: Naming = str) -> str:
    rows = [(option.change, what_then(option), str(option.others)) for option in answer.options]
    table = _table(("CHANGE", "THE JOB", "OTHERS"), rows, naming) if rows else naming(without_options(answer))
    return "\n\n".join(filter(None, (naming(f"{answer.subject} {answer.state}: {answer.line}"), table)))


def without_options(answer: WhatIf) -> str:
    """What is said where no change is named; may be empty."""
    if answer.options or answer.state != "waits":
        return ""
    if answer.itself is not None:
        return f"Nothing needs to be changed: it {what_then(answer.itself)}."
    then = f" If what is short were there, the next reason would be: {answer.then}." if answer.then else ""
    return f"None of the changes that were tried lets it start.{then}"


def what_then(option: Option) -> str:
    nodes = ", ".join(sorted(set(option.places.values())))
    return f"starts on {nodes}, once the pods that it evicts have left" if option.room_is_made else f"starts on {nodes}"


def differences(made: Difference, naming: Naming = str) -> str:
    rows = [(owner, verb, str(count)) for verb, counts in made.parts for owner, count in counts.items()]
    return _table(("JOB OR POD", "WITH THE CHANGE", "PODS"), rows, naming) if rows else "The change makes no difference."


def defragmentation(plan: Defrag) -> str:
    """The plan, and how idle room lies before and after it."""
    if not plan.steps:
        return "No node can be emptied by moves."
    rows = [(str(number), move.pod, step.node, move.node) for number, step in enumerate(plan.steps, 1) for move in step.moves]
    before, after = plan.before, plan.after
    measures = [
        ("empty nodes (could be switched off)", before.empty_nodes, after.empty_nodes),
        ("largest gang of pods that each take a whole node", before.largest_gang, after.largest_gang),
        ("idle GPUs in whole nodes", before.idle_gpus_in_whole_nodes, after.idle_gpus_in_whole_nodes),
        ("fragmentation (FGD), in GPUs", before.fragmentation, after.fragmentation),
        *(
            (f"pods of {size} {plural(float(size), 'GPU')} that find room", count, after.fits.get(size, 0))
            for size, count in before.fits.items()
        ),
    ]
    lost = sum(step.lost_gpu_s for step in plan.steps), sum(step.lost_pod_s for step in plan.steps)
    moved = counted(plan.moves, "pod is restarted; it loses", "pods are restarted; they lose")
    cost = f"{moved} {lost[0] / 3600:.1f} hours of GPUs, {lost[1] / 3600:.1f} hours of pods"
    gains = columns(("", "BEFORE", "AFTER"), [(what, f"{then:.4g}", f"{now:.4g}") for what, then, now in measures])
    return f"{columns(('STEP', 'POD', 'FROM', 'TO'), rows)}\n\n{gains}\n\nWhat it costs: {cost}."


def _all(changes: Iterable[ClusterChange]) -> str:
    return "; ".join(map(str, changes))


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], naming: Naming) -> str:
    return columns(head, [[naming(cell) for cell in row] for row in rows])
