"""The entry point of the program: settings of the process that must be made before anything large is imported."""

import os
import sys

from pumice import garbage_collection


def main() -> None:
    _open_what_is_closed()
    garbage_collection.collect_nothing()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # for what numpy does here, starting threads costs more than they save
    from pumice.cli.main import main

    main()


def _open_what_is_closed() -> None:
    """A standard stream that is closed reads and writes nothing. Else the next file to be opened would take its place."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: PTH123, SIM115
