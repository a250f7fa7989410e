"""Answers for people: first the one line that matters, then the chain, then what nearly fits."""

from __future__ import annotations

from collections.abc import Iterator

from pumice.answers.answer import Why
from pumice.answers.calibration import Calibration
from pumice.answers.difference import Difference
from pumice.answers.eta import Eta
from pumice.answers.forecast import HORIZON_S
from pumice.answers.whatif import Option, WhatIf
from pumice.api.times import span
from pumice.text_table import columns


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


def eta_page(answer: Eta) -> str:
    if answer.state != "waits":
        return f"{answer.subject} does not wait"
    moments = [(name, _within(seconds), at or "") for name, seconds, at in answer.moments]
    sources = [(source, str(count)) for source, count in sorted(answer.run_times.items(), key=lambda each: -each[1])]
    return "\n\n".join(
        (
            f"{answer.subject} starts {_within(answer.p50)}, and {_within(answer.p90)} with a chance of 90 %",
            columns(("", "STARTS", "BY"), moments),
            columns(("RUN TIMES BY", "JOBS"), sources),
            f"The {answer.arrivals} jobs that came in the last 24 hours are expected to come again each day.",
        )
    )


def brief_eta(answer: Eta) -> str:
    """P50 and P90 in one cell."""
    return " to ".join(span(seconds) if seconds is not None else f">{span(HORIZON_S)}" for _, seconds, _ in answer.moments)


def _within(seconds: float | None) -> str:
    return f"within {span(seconds)}" if seconds is not None else f"not within {span(HORIZON_S)}"


def calibration_page(found: Calibration) -> str:
    rows = [(f"P{percent}", f"{100 * share:.0f} %") for percent, share in ((50, found.within_p50), (90, found.within_p90))]
    return f"{len(found.told)} jobs that waited were told when they would start\n\n" + columns(("TOLD", "STARTED WITHIN"), rows)
