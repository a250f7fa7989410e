"""A file with an object of any kind that lacks a field which it must have: each command over files ends, and says at most one line.

All commands read files alike: `cycle` takes each object, the others take turns.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from click.testing import CliRunner

from pumice.api.errors import InputError
from pumice.api.kinds import group_of
from pumice.api.structs import KINDS, WORKLOADS
from pumice.cli.main import cli
from pumice.cluster.apiserver import StatusError
from pumice.cluster.apiserver.scheme.builtin_kinds import builtin_kinds
from pumice.cluster.apiserver.scheme.kinds import ServedKind
from pumice.cluster.apiserver.scheme.schema import Shape
from tests.apiserver.made import store
from tests.hostile.mutations import Object, Steps, examples, places

SCALARS = {"string": "x", "bytes": "eA==", "bool": True, "Quantity": "1", "any": {}, "Time": "2026-01-01T00:00:00Z"}
SCALARS |= {"MicroTime": "2026-01-01T00:00:00.000000Z"}
ALSO = {"metadata", "spec", "template", "jobTemplate", "selector", "containers", "labels", "matchLabels"}  #: filled, though not required
OF_VOLCANO = {each["kind"]: each for each in examples() if "volcano.sh" in each["apiVersion"]}
NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "one"}, "status": {"allocatable": {"cpu": "4", "pods": "9"}}}
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
CYCLE = ("cycle",)
OTHERS = (("score", "--pod", "p"), ("check",), ("why", "pod/p"))


def filled(shape: Shape) -> Any:
    match shape.kind:
        case "struct":
            return {name: filled(inner) for name, inner in shape.fields.items() if name in shape.required or name in ALSO}
        case "list" | "map":
            assert shape.element is not None
            return [filled(shape.element)] if shape.kind == "list" else {"x": filled(shape.element)}
    return SCALARS.get(shape.kind, 2)


def whole(kind: ServedKind) -> Object:
    obj: Object = filled(kind.shape) | {"apiVersion": kind.api_version, "kind": kind.kind}
    return obj | {"metadata": {"name": "w"}}


def without(subject: Any, place: Steps) -> Any:
    """The value without what is at the place."""
    step, *further = place
    if isinstance(subject, list):
        return [without(each, tuple(further)) if number == step else each for number, each in enumerate(subject)]
    if further:
        return {**subject, step: without(subject[step], tuple(further))}
    return {key: value for key, value in subject.items() if key != step}


def lacking(subject: Object) -> Iterator[Object]:
    for place in places(subject):
        if isinstance(place[-1], str):
            yield without(subject, place)


def said(command: tuple[str, ...], path: Path) -> list[str]:
    """The lines on standard error, as `main` writes them."""
    result = CliRunner().invoke(cli, [*command, "-f", str(path)], standalone_mode=False)
    error = result.exception
    if error is None or isinstance(error, SystemExit):
        return result.stderr.splitlines()
    assert isinstance(error, InputError | click.ClickException), (path.read_text(), command, result.exc_info)
    return [*result.stderr.splitlines(), *str(error).splitlines()]


def is_read(subject: Object) -> bool:
    """Whether scheduling reads objects of this kind; others are passed over by one reader for all commands."""
    kind = (group_of(subject["apiVersion"]), subject["kind"])
    return kind in KINDS or kind in WORKLOADS


@pytest.mark.parametrize(
    "whole", [*map(whole, builtin_kinds()), *OF_VOLCANO.values()], ids=lambda obj: f"{obj['apiVersion']}-{obj['kind']}"
)
def test_whatever_an_object_lacks_every_command_ends_with_at_most_one_line(whole: Object, tmp_path: Path) -> None:
    path = tmp_path / "input.yaml"
    for number, subject in enumerate(lacking(whole)):
        path.write_text(yaml.dump_all([NODE, POD, subject]))
        for command in (CYCLE, OTHERS[number % len(OTHERS)]) if is_read(whole) else (CYCLE,):
            assert len(said(command, path)) <= 1, (subject, command, said(command, path))


MADE = store()


@pytest.mark.parametrize("kind", list(builtin_kinds()), ids=lambda kind: f"{kind.api_version}-{kind.kind}")
def test_whatever_an_object_lacks_the_api_server_takes_it_or_says_what_it_lacks(kind: ServedKind) -> None:
    for number, subject in enumerate([{}, {"spec": None, "metadata": None}, {"spec": {}}, *lacking(whole(kind))]):
        named = {**subject, "metadata": {"generateName": "w-", **(subject.get("metadata") or {}), "name": f"w{number}"}}
        try:
            MADE.create(kind.resource, named, "default" if kind.namespaced else "")
        except StatusError as error:
            assert 400 <= error.code < 500, (named, error)
