"""Where a program begins: what holds for the process, said before anything large is imported."""

from __future__ import annotations

import os

from pumice import interpreter


def main() -> None:
    interpreter.collect_nothing()
    interpreter.install()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # to start threads for what numpy does here costs more than they could save
    from pumice.cli.main import main

    main()
