"""`pumice`: the group of all commands; and `pumice completion`, which prints the script for completion in a shell."""

from __future__ import annotations

import importlib
import os
import sys
from typing import TYPE_CHECKING

import click

from pumice import __version__, garbage_collection
from pumice.api import InputError, did_you_mean
from pumice.cli.tables import complain

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

#: for each command its module and a one-line summary, so that the help need not import the modules
COMMANDS = {
    "cycle": ("pumice.cli.cycle", "One scheduling cycle over files or a live cluster: what is bound and evicted, what waits, why."),
    "why": ("pumice.cli.why", "Why a job or pod waits, or runs where it does, in one line and in full."),
    "whatif": ("pumice.cli.whatif", "What would let a job start now; what a change would do: each tried in a rehearsed cycle."),
    "defrag": ("pumice.cli.defrag", "Which pods to move so that nodes become empty, what that gains and costs; and to carry it out."),
    "eta": ("pumice.cli.eta", "When a job will start, by rolling the scheduler forward; how far such forecasts hold."),
    "score": ("pumice.cli.score", "Each node's verdict and scores for a pod, at its turn in the cycle."),
    "check": ("pumice.cli.check", "Check objects and configuration."),
    "lint": ("pumice.cli.lint", "Find mistakes in the configuration, the queues and the cluster, and how to mend them."),
    "migrate": ("pumice.cli.migrate", "Print gangs in another dialect: Volcano's PodGroups as Kubernetes' own, or the other way round."),
    "plugins": ("pumice.cli.plugins", "The plugins with their hooks and arguments."),
    "up": ("pumice.cli.up", "Start a batch cluster on this machine: API server, controllers, simulated nodes, scheduler."),
    "down": ("pumice.cli.clusters", "End the cluster that `pumice up` started."),
    "clusters": ("pumice.cli.clusters", "List the clusters that `pumice up` runs."),
    "export": ("pumice.cli.clusters", "Write the cluster that `pumice up` runs, with everything in it, to a file."),
    "simulate": ("pumice.cli.simulate", "Play a workload on a simulated cluster: how long everybody would wait."),
    "compare": ("pumice.cli.compare", "Play a workload under several policies, and say which is better."),
    "tune": ("pumice.cli.tune", "Look for a configuration that would have served a workload better, and check it on other days."),
    "record": ("pumice.cli.record", "Record what a scheduler of a live cluster would see; take over recordings without their names."),
    "replay": ("pumice.cli.replay", "Decide the cycles of a recording anew: where that differs from then, and why."),
    "usage": ("pumice.cli.usage", "Who had what, by queue and user, from recordings: deserved, got, lent, borrowed, evicted, waited."),
    "scheduler": ("pumice.cli.scheduler", "Schedule the pods of a live cluster, in the place of vc-scheduler."),
    "controllers": ("pumice.cli.controllers", "Run Volcano's controllers, in the place of vc-controller-manager."),
    "webhooks": ("pumice.cli.webhooks", "Serve Volcano's admission webhooks, in the place of vc-webhook-manager."),
    "admission-secret": ("pumice.cli.admission_secret", "Make the Secret of the webhooks' certificates, where there is none."),
    "job": ("pumice.cli.job", "Run, look at, suspend, resume and delete Volcano's jobs."),
    "queue": ("pumice.cli.queue", "Create, look at, open, close and delete Volcano's queues."),
    "pod": ("pumice.cli.pod", "Look at the pods of Volcano's jobs."),
    "jobflow": ("pumice.cli.jobflow", "Create, look at and delete JobFlows, jobs that follow each other."),
    "jobtemplate": ("pumice.cli.jobflow", "Create, look at and delete JobTemplates, which JobFlows make jobs of."),
    "get": ("pumice.cli.get", "Show objects, as kubectl get does."),
    "apply": ("pumice.cli.apply", "Create or change objects so that they are as files say."),
    "completion": ("pumice.cli.main", "Print what a shell needs to complete commands, options, files, kinds."),
}

#: the commands that Volcano's short program names stand for
SHORT = {
    "vsub": ("job", "run"),
    "vjobs": ("job", "list"),
    "vqueues": ("queue", "list"),
    "vcancel": ("job", "delete"),
    "vsuspend": ("job", "suspend"),
    "vresume": ("job", "resume"),
}


class _Lazy(click.Group):
    """A group that imports the module of a command when the command is used."""

    def list_commands(self, context: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        module = importlib.import_module(COMMANDS[name][0])
        garbage_collection.imported()
        command: click.Command = getattr(module, name.replace("-", "_"))
        return command

    def resolve_command(self, context: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in COMMANDS and not args[0].startswith("-"):
            context.fail(f"there is no command {args[0]!r}{did_you_mean(args[0], COMMANDS)}")
        return super().resolve_command(context, args)

    def shell_complete(self, context: click.Context, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        commands = [CompletionItem(name, help=summary) for name, (_, summary) in COMMANDS.items() if name.startswith(incomplete)]
        return commands if commands and not incomplete.startswith("-") else super().shell_complete(context, incomplete)

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in COMMANDS.items()])


@click.group(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.version_option(__version__, prog_name="pumice")
def cli() -> None:
    """Pumice, a batch scheduler for Kubernetes."""


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print a script for SHELL, for instance: source <(pumice completion bash)."""
    from click.shell_completion import get_completion_class

    made = get_completion_class(shell)
    assert made is not None
    click.echo(made(context.find_root().command, {}, "pumice", "_PUMICE_COMPLETE").source())


def main() -> None:
    """Run the command line. Wrong input ends the program with one line and exit code 2."""
    try:
        short = SHORT.get(sys.argv[0].rpartition(os.sep)[2], ())
        code = cli.main(args=[*short, *sys.argv[1:]], prog_name="pumice", standalone_mode=False)
        sys.stdout.flush()
    except InputError as error:
        complain(str(error))
        sys.exit(2)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        sys.exit(error.exit_code)
    except click.UsageError as error:
        complain(_in_one_line(error))
        sys.exit(error.exit_code)
    except click.ClickException as error:
        complain(f"Error: {error.format_message()}")
        sys.exit(error.exit_code)
    except click.Abort:
        sys.exit("Aborted!")
    except BrokenPipeError:
        sys.exit(0)
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # to flush the rest of the output at exit would fail as well
        complain(f"Error: {error.filename or 'the output'}: {error.strerror or error}")
        sys.exit(1)
    garbage_collection.settle()  # the interpreter need not collect garbage at its end
    sys.exit(code if isinstance(code, int) else 0)


def _in_one_line(error: click.UsageError) -> str:
    """The message of the error in one line, with the command that shows the right usage."""
    command = error.ctx.command_path if error.ctx else "pumice"
    return f"Error: {' '.join(error.format_message().split())} (see {command} --help)"
