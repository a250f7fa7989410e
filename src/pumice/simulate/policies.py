"""Policies by name, as the configurations that they are; any file of either kind will do as well."""

from __future__ import annotations

from pathlib import Path

from pumice.api.errors import InputError, did_you_mean
from pumice.extensions import actions, plugins
from pumice.scheduler.config import KUBE_DEFAULT, config_text, read_configurations
from pumice.scheduler.config.volcano_conf import DEFAULT
from pumice.scheduler.framework.policy import Policy


def _conf(named: str, *chosen: str) -> str:
    listed = "\n".join(f"  - {plugin}" for plugin in chosen)
    return f'actions: "{named}"\ntiers:\n- plugins:\n{listed}\n'


def _in_order(backfill: str, *chosen: str) -> str:
    settings = f"configurations:\n- name: in-order\n  arguments: {{backfill: {backfill}}}\n"
    return settings + _conf("in-order", "name: gang", *chosen)


def _packing(name: str) -> str:
    return _conf("allocate", "name: gang", "name: predicates", f"name: {name}")


NAMED = {
    "volcano": DEFAULT,
    "kube-scheduler": KUBE_DEFAULT,
    "FIFO": _in_order("none"),
    "SJF": _in_order("none", "name: shortest-first"),
    "greedy": _in_order("greedy"),
    "EASY": _in_order("easy"),
    "conservative": _in_order("conservative"),
    "FGD": _packing("fgd"),
    "DotProd": _packing("dot-product"),
    "GpuPacking": _packing("gpu-packing"),
    "GpuClustering": _packing("gpu-clustering"),
    "BestFit": _packing("best-fit"),
    "Random": _packing("random-node"),
}


def read_policy(name: str, plugins_dir: str | None = None) -> tuple[Policy, list[str]]:
    """By name, whatever its case, else from a file; and warnings. Raises InputError."""
    known = {each.lower(): text for each, text in NAMED.items()}
    text = known.get(name.lower())
    if text is None:
        try:
            text = Path(name).read_text(encoding="utf-8")
        except OSError as error:
            near = did_you_mean(name, NAMED) or f"; known: {', '.join(NAMED)}"
            raise InputError(f"is neither a policy nor a file that can be read ({error.strerror}){near}", where=name) from None
        except UnicodeDecodeError:
            raise InputError("not UTF-8; save the file as UTF-8", where=name) from None
    return read_configurations([config_text(text, name)], plugins(plugins_dir), actions=actions(plugins_dir))
