"""The client of one extender service: its calls, and what the answers mean.

All errors are raised as `ServiceFailure`; callers handle it.
"""

from collections.abc import Mapping
from sys import float_info
from typing import Any

from pumice.scheduler.engine import Reason
from pumice.scheduler.framework.world import ExtenderService

MAX_BYTES = 10 * 1024 * 1024  #: a longer answer is a failure
LONGEST_REASON = 300
UNSCHEDULABLE = 2  #: the status code of refusals that an eviction might change; 0 is success


class ServiceFailure(Exception):
    """The service could not be called, or its answer is not valid."""


class ExtenderClient:
    """The calls of one session to an extender. Without a connection every call fails."""

    def __init__(self, connection: ExtenderService | None) -> None:
        self._connection = connection

    def ask(self, verb: str, body: dict[str, Any]) -> Mapping[str, Any]:
        """The service's answer. Raises ServiceFailure."""
        if self._connection is None:
            raise ServiceFailure("there is no connection to extenders here")
        try:
            answer = self._connection.call(verb, body)
        except (OSError, ValueError) as error:
            raise ServiceFailure(str(error)) from error
        if not isinstance(answer, Mapping):
            raise ServiceFailure(f"{verb}: the answer is no mapping")
        return answer

    def flag(self, verb: str, body: dict[str, Any], field: str) -> bool:
        return bool(self.ask(verb, body).get(field))

    def vote(self, verb: str, body: dict[str, Any]) -> tuple[float, str]:
        """The vote, and the reason if the answer gives one. Raises ServiceFailure."""
        answer = self.ask(verb, body)
        return _number(verb, answer.get("status", 0)), str(answer.get("reason") or "")[:LONGEST_REASON]

    def verdict(self, verb: str, body: dict[str, Any]) -> Reason | None:
        """The reason why the service refuses a node; None if it does not. The answer is a text with a code, or a list of codes and reasons,
        as older services give it. Raises ServiceFailure."""
        answer = self.ask(verb, body)
        status = answer.get("status")
        if isinstance(status, list):
            entries = [entry for entry in status if isinstance(entry, Mapping) and entry.get("Code")]
            code, text = (_number(verb, entries[0]["Code"]), str(entries[0].get("Reason") or "")) if entries else (0, "")
        else:
            code, text = _number(verb, answer.get("code", 0)), str(status or "")
            entries = [answer] if text else []
        return Reason(text or f"refused by the extender with code {code:g}", final=code != UNSCHEDULABLE) if entries else None

    def scores(self, verb: str, body: dict[str, Any]) -> dict[str, float]:
        """The scores by node name. Raises ServiceFailure."""
        answer = self.ask(verb, body)
        if answer.get("errorMessage"):
            raise ServiceFailure(str(answer["errorMessage"]))
        given = answer.get("nodeScore") or {}
        if not isinstance(given, Mapping):
            raise ServiceFailure(f"{verb}: nodeScore is no mapping")
        return {str(node): _number(verb, score) for node, score in given.items()}

    def victims(self, verb: str, body: dict[str, Any]) -> tuple[float, set[str]]:
        """The vote, and the uids of the tasks that may be evicted. Raises ServiceFailure."""
        answer = self.ask(verb, body)
        named = answer.get("victims") or []
        if not isinstance(named, list):
            raise ServiceFailure(f"{verb}: victims are no list")
        uids = {str(victim.get("UID") if isinstance(victim, Mapping) else victim) for victim in named}
        return _number(verb, answer.get("status", 0)), uids


def _number(verb: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > float_info.max:
        raise ServiceFailure(f"{verb}: {value!r:.40} is no number")
    return float(value)
