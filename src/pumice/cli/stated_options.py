"""Options that were stated on the command line, in contrast to those that stand at their default."""

import click
from click.core import ParameterSource


def is_stated(name: str) -> bool:
    """Whether the user has stated this option of the present command."""
    return click.get_current_context().get_parameter_source(name) is not ParameterSource.DEFAULT
