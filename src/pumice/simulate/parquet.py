"""The tables of a simulation as Parquet instead of CSV, where pyarrow is installed."""

from importlib import import_module
from pathlib import Path
from typing import Any

from pumice.api import InputError
from pumice.simulate.outputs import TEXTS

TABLES = ("jobs", "events", "series")


def pyarrow(part: str) -> Any:
    """A module of pyarrow. Raises InputError."""
    try:
        return import_module(f"pyarrow.{part}")
    except ImportError:
        raise InputError("parquet is written by pyarrow; install it, or leave this out for CSV", where="--format") from None


def as_parquet(folder: Path) -> None:
    """Replace the CSV files of a folder by Parquet files. Unknown values are null."""
    csv, parquet, types = pyarrow("csv"), pyarrow("parquet"), pyarrow("types")
    kinds = dict.fromkeys(TEXTS, types.lib.string())
    options = csv.ConvertOptions(column_types=kinds, strings_can_be_null=False)
    for name in TABLES:
        path = folder / f"{name}.csv"
        parquet.write_table(csv.read_csv(path, convert_options=options), folder / f"{name}.parquet")
        path.unlink()
