"""How often tests with drawn input are repeated. `make test` takes a sample; `PUMICE_TIMES` says how many times as many others take."""

from __future__ import annotations

import os


def times(sample: int) -> int:
    return sample * int(os.environ.get("PUMICE_TIMES", "1"))
