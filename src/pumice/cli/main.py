"""`pumice`: the group of all commands."""

from __future__ import annotations

import importlib
import os
import sys

import click

from pumice import __version__, memory
from pumice.api.errors import InputError

#: command to the module that has it
COMMANDS = {
    "cycle": "pumice.cli.cycle",
    "score": "pumice.cli.score",
    "check": "pumice.cli.check",
    "plugins": "pumice.cli.plugins",
    "scheduler": "pumice.cli.scheduler",
    "controllers": "pumice.cli.controllers",
    "webhooks": "pumice.cli.webhooks",
    "admission-secret": "pumice.cli.admission_secret",
    "up": "pumice.cli.up",
    "down": "pumice.cli.down",
    "clusters": "pumice.cli.clusters",
    "export": "pumice.cli.export",
    "job": "pumice.cli.job",
    "queue": "pumice.cli.queue",
    "pod": "pumice.cli.pod",
    "jobflow": "pumice.cli.flows",
    "jobtemplate": "pumice.cli.flows",
    "apply": "pumice.cli.apply",
    "get": "pumice.cli.get",
    "completion": "pumice.cli.completion",
}


class _Lazy(click.Group):
    """Imports a command's module when it is used."""

    def list_commands(self, context: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        module = importlib.import_module(COMMANDS[name])
        command: click.Command = getattr(module, name.replace("-", "_"))
        return command


@click.group(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="pumice")
def cli() -> None:
    """Pumice, a batch scheduler for Kubernetes."""


def main() -> None:
    """Wrong input ends with one line and exit code 2."""
    memory.collect_seldom()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # to start threads for what numpy does here costs more than they could save
    try:
        code = cli.main(prog_name="pumice", standalone_mode=False)
    except InputError as error:
        click.echo(str(error), err=True)
        sys.exit(2)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        sys.exit(error.exit_code)
    except click.UsageError as error:
        click.echo(_in_one_line(error), err=True)
        sys.exit(error.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except click.Abort:
        sys.exit("Aborted!")
    except BrokenPipeError:
        sys.exit(0)
    sys.exit(code if isinstance(code, int) else 0)


def _in_one_line(error: click.UsageError) -> str:
    """What is wrong and where it is told what is right."""
    command = error.ctx.command_path if error.ctx else "pumice"
    return f"Error: {' '.join(error.format_message().split())} (see {command} --help)"
