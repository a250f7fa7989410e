"""Columns as a simulation would write them, of any number of jobs: drawn at random, served first come first."""

from __future__ import annotations

from typing import Any

import numpy as np

from pumice.simulate.output_columns import DISTRIBUTIONS, PERCENTILES

CARDS = 64
Columns = dict[str, np.ndarray]


def run_of(count: int, queues: int = 4) -> tuple[dict[str, Any], list[Columns], Columns]:
    """summary, jobs in one part, series."""
    draw = np.random.default_rng(7)
    submit = np.round(np.sort(draw.uniform(0, 60.0 * count, count)), 1)
    gpu = draw.choice([1.0, 2.0, 4.0, 8.0], count, p=[0.6, 0.2, 0.1, 0.1])
    length = np.round(draw.exponential(1400.0, count) + 5, 1)
    wait = np.round(np.where(draw.random(count) < 0.6, 0.0, draw.exponential(900.0, count)), 1)
    start, end = submit + wait, submit + wait + length
    late = draw.random(count) < 0.02
    start[late], end[late] = np.nan, np.nan
    wait[late] = float(np.nanmax(end, initial=60.0)) - submit[late]
    evictions = (draw.random(count) < 0.05).astype(int)
    names = np.array([f"team-{chr(97 + index)}" for index in range(queues)])
    queue = names[draw.choice(queues, count, p=_falling(queues))] if count else names[:0]
    jobs: Columns = {
        "job": np.array([f"job-{index}" for index in range(count)], object),
        "queue": queue,
        "submit": submit,
        "start": start,
        "end": end,
        "wait": wait,
        "turnaround": end - submit,
        "slowdown": np.maximum(1.0, (end - submit) / np.maximum(length, 10)),
        "cpu": gpu * 8,
        "gpu": gpu,
        "evictions": evictions,
        "lost": evictions * np.round(length / 3, 1),
        "reason": np.where(wait > 0, "0/8 nodes are unavailable: 8 Insufficient nvidia.com/gpu.", "").astype(object),
    }
    return _summary(jobs), [jobs], _series(jobs, list(names))


def _falling(count: int) -> np.ndarray:
    weights = 1.0 / (1 + np.arange(count))
    return weights / weights.sum()


def _summary(jobs: Columns) -> dict[str, Any]:
    found = {name: _distribution(jobs[column]) for name, column in zip(DISTRIBUTIONS, ("wait", "turnaround", "slowdown"), strict=True)}
    numbers = {
        "utilisation": {"cpu": 0.51, "gpu": 0.734567},
        "evictions": int(jobs["evictions"].sum()),
        "jobs": len(jobs["job"]),
        "makespan": 86400.5,
    }
    longest = []
    for row in np.argsort(-jobs["wait"], kind="stable")[:10]:
        start = None if np.isnan(jobs["start"][row]) else float(jobs["start"][row])
        facts = {name: str(jobs[name][row]) for name in ("job", "queue", "reason")}
        longest.append(facts | {"submit": float(jobs["submit"][row]), "start": start, "wait": float(jobs["wait"][row])})
    return {
        "measures": found | numbers,
        "longest": longest,
        "left_out": {"asks for more than there is": 3},
        "workload": "yaml:made.yaml",
        "cluster": "8x8gpu",
        "policy": "default",
        "seed": 42,
    }


def _distribution(values: np.ndarray) -> dict[str, float]:
    known = values[~np.isnan(values)]
    if not len(known):
        return {}
    found = {f"p{share}": float(np.percentile(known, share)) for share in PERCENTILES}
    return {"mean": float(known.mean()), **found, "max": float(known.max())}


def _series(jobs: Columns, queues: list[str]) -> Columns:
    times = np.linspace(0, float(np.nanmax(jobs["end"], initial=60.0)), 200)
    rows: list[tuple[str, str, str, np.ndarray]] = []
    for resource, each in (("gpu", 1), ("cpu", 8)):
        capacity = np.full(200, float(CARDS * each))
        rows += [("capacity", resource, "", capacity), ("held", resource, "", np.minimum(capacity, _at(times, jobs, "start", resource)))]
        for queue in queues:
            mine = {name: column[jobs["queue"] == queue] for name, column in jobs.items()}
            rows.append(("held", resource, queue, _at(times, mine, "start", resource)))
            rows.append(("asked", resource, queue, _at(times, mine, "submit", resource)))
            rows.append(("deserved", resource, queue, capacity / len(queues)))
    rows.append(("fragmentation", "gpu", "", 3.0 + np.sin(times / 9000)))
    names = ("series", "resource", "queue")
    columns = {name: np.repeat([row[place] for row in rows], 200) for place, name in enumerate(names)}
    return columns | {"time": np.tile(times, len(rows)), "value": np.concatenate([row[3] for row in rows])}


def _at(times: np.ndarray, jobs: Columns, begin: str, resource: str) -> np.ndarray:
    """What jobs between their begin and their end come to at some times."""
    came, gone = jobs[begin], jobs["end"]

    def until(moments: np.ndarray) -> np.ndarray:
        order = np.argsort(moments)
        return np.concatenate(([0.0], np.cumsum(jobs[resource][order])))[np.searchsorted(moments[order], times, side="right")]

    return until(came) - until(gone)
