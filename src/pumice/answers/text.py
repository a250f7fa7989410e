"""Answers for people: first the one line that matters, then the chain, then what nearly fits."""

from __future__ import annotations

from collections.abc import Iterator

from pumice.answers.answer import Why
from pumice.report.columns import columns


def page(answer: Why) -> str:
    return "\n\n".join(_parts(answer))


def _parts(answer: Why) -> Iterator[str]:
    yield f"{answer.subject} {answer.state}: {answer.line}"
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
    if answer.parts:
        yield columns(("WHO", "STATE", "WHY"), [(part.subject, part.state, part.line) for part in answer.parts])
