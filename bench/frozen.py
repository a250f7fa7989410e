"""What a redesign must not change, as digests: `python -m bench.frozen FILE` writes them, `--against FILE` names what differs.

The file has a line for each case and example (`cycle` with three seeds, `score`, `check`, and `check` of inputs with one value spoilt, so
that error texts are covered too), for `pumice plugins`, for the names of all metrics, and for what each live story wrote to each object.
The script uses only commands and tests, so that the same script runs before and after a redesign.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from click.testing import CliRunner

from pumice.api.kinds import EVENTS, Kind
from pumice.cli.main import cli
from tests.cases.compare import LOADER, Case, cases
from tests.cases.extender_server import served

ROOT = Path(__file__).parents[1]
SEEDS = (None, 1, 2)
SPOILT: tuple[Any, ...] = ("2 cores", -1, [], {"a": []}, None)
SPOILT_TIMES = 3
FLEETING = {"resourceVersion", "uid", "transitionID", "shareID", "count"}
#: Stories that no two runs tell alike, as "FILE TEST" or a beginning of it, with the reason.
LEFT_OUT = {
    "test_slow_cycles.py": "a thread decides while virtual time leaps: how often a lease is renewed meanwhile depends on the machine",
    "test_hints_suffice.py": "Hypothesis draws what happens",
    "test_forecasts.py": "forecasts are made in the machine's spare time",
    "test_canary.py test_who_compares_follows": "it ends as soon as a changed file is read, in the machine's time",
    "test_gathering.py test_three_elastic_jobs": "three users write at the same moment of virtual time",
    "test_narrow_roles.py test_a_replica_is_not_ready": "it ends as soon as the replica is ready, in the machine's time",
    "test_narrow_roles.py test_nothing_waits_long": "it runs in the machine's time",
    "test_faults.py test_it_ends_as_without_faults": "Hypothesis draws the faults",
    "test_faults.py test_promises_hold_under_faults": "Hypothesis draws the faults",
    "test_faults.py test_two_schedulers_fight": "Hypothesis draws the faults",
}
#: Stories in which a job that allocate has passed over, as it was at rest, is woken by an action that evicts for it: why its pods wait is
#: then found out with the jobs at rest (`job_status.conclude`), some seconds later at most; without shortcuts it is written at once.
REPORTED_AGAIN = {
    "test_the_loop.py test_an_eviction_that_fails_is_taken_back",
    "test_the_loop.py test_victims_are_chosen_anew_when_some_evictions_fail",
    "test_faults.py test_a_gang_whose_binds_fail_for_a_while_keeps_its_room",
}


def said(*words: str) -> str:
    """What a command prints, with its exit code and the exception that ended it, if any."""
    result = CliRunner().invoke(cli, list(words))
    ended = "" if result.exception is None else f"{type(result.exception).__name__}: {result.exception}"
    return f"{result.exit_code}\n{result.stdout}\n{result.stderr}\n{ended}"


def inputs() -> list[Case]:
    found = [case for folder in ("volcano", "kube-scheduler") for case in cases(ROOT / "tests/cases" / folder)]
    return found + [Case(f"examples/{path.stem}", path.read_text(), {}) for path in sorted((ROOT / "examples").glob("*.yaml"))]


def digest(case: Case, *more: str) -> tuple[str, str]:
    """The name of an input, and the digest of all that the commands print for it. `more`: options of `cycle`."""
    moment = case.expect.get("now") or "2026-01-01T12:00:00Z"
    now = moment if isinstance(moment, str) else moment.strftime("%Y-%m-%dT%H:%M:%SZ")
    cycles = str(case.expect.get("cycles", 1))
    texts = []
    with served(case.text) as text, tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "case.yaml")
        path.write_text(text)
        told = ["-f", str(path), "--now", now, "-o", "json"]
        texts += [said("cycle", *told, *more, "--cycles", cycles, *([] if seed is None else ["--seed", str(seed)])) for seed in SEEDS]
        texts.append(said("score", *told, "--pod", case.expect.get("scoredPod", "default/p")))
        texts.append(said("check", "-f", str(path)))
        for spoilt in spoiled(case):
            path.write_text(spoilt)
            texts.append(said("check", "-f", str(path)))
        whole = "\n".join(texts).replace(folder, "FOLDER")
    for line in {part for part in text.split('"') if part.startswith("http://127.0.0.1:")}:
        whole = whole.replace(line, "http://extender.test")
    return f"case {case.name}", hashlib.sha256(whole.encode()).hexdigest()[:16]


def _digest(more: tuple[str, ...], case: Case) -> tuple[str, str]:
    return digest(case, *more)


def spoiled(case: Case) -> Iterator[str]:
    """Several copies of the input, each with one value at a random place made wrong."""
    chance = random.Random(case.name)
    for _ in range(SPOILT_TIMES):
        documents = [document for document in yaml.load_all(case.text, LOADER) if document]
        holder, key = chance.choice([place for document in documents for place in places(document)])
        holder[key] = chance.choice(SPOILT)
        yield yaml.dump_all(documents, Dumper=getattr(yaml, "CSafeDumper", yaml.SafeDumper), sort_keys=False)


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield value, key
        yield from places(value[key])


class Writes:
    """A pytest plugin that keeps, for each test of the live loop, a digest of the writes that its servers received.

    For each object its writes are digested in their order: who was bound where, who was deleted, phases, conditions, messages. Not the
    times, versions and counters in them, nor which object's turn came first: several senders share the work.
    """

    def __init__(self, *, shortcuts: bool) -> None:
        self.found: dict[str, str] = {}
        self._shortcuts = shortcuts
        self._written: dict[str, list[Any]] = {}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        passed_over = (*LEFT_OUT, *(() if self._shortcuts else REPORTED_AGAIN))
        items[:] = [item for item in items if not f"{item.path.name} {item.name}".startswith(passed_over)]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        from pumice.live.scheduler.loop import Scheduler
        from tests.live.memory import MemoryServer

        begin, arrive = Scheduler.__init__, MemoryServer._arrived
        self._written = {}

        def begun(scheduler: Any, transport: Any, policy: Any, *arguments: Any, **options: Any) -> None:
            begin(scheduler, transport, msgspec.structs.replace(policy, shortcuts=self._shortcuts), *arguments, **options)

        async def arrived(server: Any, verb: str, resource: Kind, subresource: str, name: str, body: Any = None) -> None:
            await arrive(server, verb, resource, subresource, name, body)
            whose = f"{resource.plural} {name.rpartition('.')[0] if resource == EVENTS else name}"
            self._written.setdefault(whose, []).append([verb, subresource, lasting(body)])

        Scheduler.__init__, MemoryServer._arrived = begun, arrived  # type: ignore[method-assign]
        try:
            yield
        finally:
            Scheduler.__init__, MemoryServer._arrived = begin, arrive  # type: ignore[method-assign]
        if self._written and not hasattr(getattr(item, "function", None), "hypothesis"):
            writes = json.dumps(self._written, sort_keys=True)
            self.found[f"story {item.path.name} {item.name}"] = hashlib.sha256(writes.encode()).hexdigest()[:16]


def lasting(value: Any) -> Any:
    """What counts of an object that was written: all but times, versions, counts of an event, and ids that are made up for a cycle."""
    if isinstance(value, list):
        return [lasting(each) for each in value]
    if not isinstance(value, dict):
        return value
    event = {"metadata"} if value.get("kind") == "Event" else set()
    return {key: lasting(each) for key, each in value.items() if key not in FLEETING | event and not key.endswith(("Time", "Timestamp"))}


def stories(*, shortcuts: bool) -> dict[str, str]:
    writes = Writes(shortcuts=shortcuts)
    failed = pytest.main(["-q", "-m", "not nightly and not cluster", str(ROOT / "tests/live")], plugins=[writes])
    if failed:
        sys.exit("the stories do not pass; what they write tells nothing")
    return writes.found


def metrics() -> str:
    """The digest of all metrics: their names, help texts and types, without their values."""
    from pumice.live.scheduler.metrics import LiveMetrics

    lines = [line if line.startswith("#") else line.rpartition(" ")[0] for line in LiveMetrics().page().splitlines()]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


def frozen(with_stories: bool, shortcuts: bool) -> dict[str, str]:
    more = () if shortcuts else ("--no-shortcuts",)
    with ProcessPoolExecutor() as pool:
        found = dict(pool.map(partial(_digest, more), inputs(), chunksize=8))
    found["plugins"] = hashlib.sha256(said("plugins", "-o", "json").encode()).hexdigest()[:16]
    return found | {"metrics": metrics()} | (stories(shortcuts=shortcuts) if with_stories else {})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path, nargs="?", help="where the digests go")
    parser.add_argument("--against", type=Path, help="digests made before")
    parser.add_argument("--no-stories", action="store_true", help="leave out the live stories, which take as long as the rest")
    parser.add_argument("--no-shortcuts", action="store_true", help="cycles compute everything anew; the digests are the same")
    options = parser.parse_args()
    found = frozen(not options.no_stories, not options.no_shortcuts)
    if options.file:
        options.file.write_text("".join(f"{value} {name}\n" for name, value in sorted(found.items())))
    if options.against:
        before = {name: value for value, _, name in (line.partition(" ") for line in options.against.read_text().splitlines())}
        compared = found.keys() if options.no_stories or options.no_shortcuts else before.keys() | found.keys()
        differing = sorted(name for name in compared if before.get(name) != found.get(name))
        print("\n".join(differing))
        sys.exit(f"{len(differing)} of {len(before)} differ" if differing else 0)
    print(f"{len(found)} digests")


if __name__ == "__main__":
    main()
