"""The entry point of the program: settings of the process that must be made before anything large is imported."""

import os

from pumice import garbage_collection


def main() -> None:
    garbage_collection.collect_nothing()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # for what numpy does here, starting threads costs more than they save
    from pumice.cli.main import main

    main()
