"""Names and namespaces are given to every command as to kubectl."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from pumice.cli.live_cluster import name_option, namespace_option
from pumice.cli.main import cli

NAMED = {"SUBJECT", "[POD]", "[NAME]", "KIND[/NAME] [NAME]..."}  #: arguments that name an object of a cluster


def commands(group: click.Command = cli, path: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    if not isinstance(group, click.Group):
        yield " ".join(path), group
        return
    for name in group.list_commands(click.Context(group)):
        found = group.get_command(click.Context(group), name)
        assert found is not None
        yield from commands(found, (*path, name))


ALL = dict(commands())


def flags(command: click.Command) -> set[str]:
    return {flag for each in command.params for flag in each.opts}


def names_something(command: click.Command) -> bool:
    return any(isinstance(each, click.Argument) and each.human_readable_name in NAMED for each in command.params)


@pytest.mark.parametrize("name", [name for name, command in ALL.items() if names_something(command) and not name.startswith("queue ")])
def test_who_is_named_may_be_in_any_namespace(name: str) -> None:
    assert {"-n", "--namespace"} <= flags(ALL[name])
    told = CliRunner().invoke(cli, [*name.split(), "--help"]).output
    assert "NAMESPACE/NAME" in told or name == "get"
    assert {"job/NAME", "pod/NAME", "KIND[/NAME]"} & set(told.replace(",", " ").replace(";", " ").split())


@pytest.mark.parametrize("name", [name for name in ALL if name.endswith(" list") and name != "queue list"] + ["get", "eta", "lint"])
def test_all_namespaces_are_listed_where_kubectl_does(name: str) -> None:
    assert {"-n", "--namespace", "-A", "--all-namespaces"} <= flags(ALL[name])


@click.command()
@namespace_option
@name_option("-N", "the job")
def said(namespace: str | None, name: str) -> None:
    click.echo(f"{namespace} {name}")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["train"], "None train"),
        (["-N", "train", "-n", "team"], "team train"),
        (["job/train"], "None train"),
        (["vcjob/train", "-n", "team"], "team train"),
        (["team/train"], "team train"),
        (["job/team/train"], "team train"),
    ],
)
def test_a_job_may_have_kind_and_namespace_before_its_name(words: list[str], told: str) -> None:
    assert CliRunner().invoke(said, words).output == f"{told}\n"


def test_a_queue_has_no_namespace() -> None:
    @click.command()
    @name_option("-n", "the queue")
    def one(name: str) -> None:
        click.echo(name)

    assert CliRunner().invoke(one, ["queue/research"]).output == "research\n"
    assert '"team/research" is no queue' in CliRunner().invoke(one, ["team/research"]).output
