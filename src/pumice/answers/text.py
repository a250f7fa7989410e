"""Answers as text for people: first the one line that matters, then the chain of questions, then the nodes that nearly fit."""

from __future__ import annotations

from collections.abc import Iterator

from pumice.answers.answer import Why
from pumice.answers.whatif import Difference, Option, WhatIf
from pumice.api.times import rfc3339
from pumice.text_table import columns


def page(answer: Why) -> str:
    return "\n\n".join(_parts(answer))


def _parts(answer: Why) -> Iterator[str]:
    yield f"{answer.subject} {answer.state}: {answer.line}"
    if answer.never:
        yield f"It can never run here: {answer.never}"
    if answer.headline is not None and answer.headline.remedy:
        yield "What would help: " + "; ".join(map(str, answer.headline.remedy))
    if answer.chain:
        yield columns(("", "QUESTION", "ANSWER"), [("ok" if link.fine else "NO", link.question, link.answer) for link in answer.chain])
    if answer.nearest:
        yield columns(("NEAREST NODE", "LACKS"), [(near.node, "; ".join(near.lacks) or "nothing") for near in answer.nearest])
    if answer.alternatives:
        rules = list(answer.alternatives[0].scores)
        rows = [(each.node, f"{each.total:g}", *(f"{each.scores[rule]:g}" for rule in rules)) for each in answer.alternatives]
        yield columns(("NODE", "TOTAL", *rules), rows)
    if answer.evictions and answer.state != "was evicted":
        yield columns(("EVICTED AT", "POD", "BECAUSE OF"), [(rfc3339(each.at), each.pod, each.words) for each in answer.evictions])
    if answer.parts:
        yield columns(("WHO", "STATE", "WHY"), [(part.subject, part.state, part.line) for part in answer.parts])


def options(answer: WhatIf) -> str:
    if not answer.options:
        return f"{answer.subject}: {answer.line}\n\nNo single change that is tried lets it start now."
    rows = [(option.change, what_then(option), option.others) for option in answer.options]
    return f"{answer.subject}: {answer.line}\n\n{columns(('WITH', 'IT', 'AND THEN'), rows)}"


def what_then(option: Option) -> str:
    nodes = ", ".join(sorted(set(option.places.values())))
    return f"waits on {nodes} for those who are evicted" if option.room_is_made else f"starts on {nodes}"


def differences(made: Difference) -> str:
    rows = [(owner, verb, str(count)) for verb, counts in made.parts for owner, count in counts.items()]
    return columns(("WHO", "IN THE NEXT CYCLE", "PODS"), rows) if rows else "The next cycle decides the same."
