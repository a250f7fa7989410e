"""One extender service: what it is asked, and what its answers mean. Whatever it does wrong is a `Failure`, for the caller to weigh."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pumice.engine.rules import Reason
from pumice.framework.world import Extender

MAX_BYTES = 10 * 1024 * 1024  #: a longer answer is none
UNSCHEDULABLE = 2  #: the one status code, of those that are not success (0), that an eviction might change


class Failure(Exception):
    """The service could not be asked, or did not answer as it should."""


class Service:
    """See the module. Without a connection every call fails."""

    def __init__(self, connection: Extender | None) -> None:
        self._connection = connection

    def ask(self, verb: str, body: dict[str, Any]) -> Mapping[str, Any]:
        """Raises Failure."""
        if self._connection is None:
            raise Failure("there is no connection to extenders here")
        try:
            answer = self._connection.call(verb, body)
        except (OSError, ValueError) as error:
            raise Failure(str(error)) from error
        if not isinstance(answer, Mapping):
            raise Failure(f"{verb}: the answer is no mapping")
        return answer

    def flag(self, verb: str, body: dict[str, Any], field: str) -> bool:
        return bool(self.ask(verb, body).get(field))

    def vote(self, verb: str, body: dict[str, Any]) -> float:
        return _number(verb, self.ask(verb, body).get("status", 0))

    def verdict(self, verb: str, body: dict[str, Any]) -> Reason | None:
        """Of a node: None if it will do. A text with a code, or a list of codes and reasons, as older services answer."""
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
        """By node name."""
        answer = self.ask(verb, body)
        if answer.get("errorMessage"):
            raise Failure(str(answer["errorMessage"]))
        given = answer.get("nodeScore") or {}
        if not isinstance(given, Mapping):
            raise Failure(f"{verb}: nodeScore is no mapping")
        return {str(node): _number(verb, score) for node, score in given.items()}

    def victims(self, verb: str, body: dict[str, Any]) -> tuple[float, set[str]]:
        """The vote, and the uids of those who may go."""
        answer = self.ask(verb, body)
        named = answer.get("victims") or []
        if not isinstance(named, list):
            raise Failure(f"{verb}: victims are no list")
        uids = {str(victim.get("UID") if isinstance(victim, Mapping) else victim) for victim in named}
        return _number(verb, answer.get("status", 0)), uids


def _number(verb: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Failure(f"{verb}: {value!r} is no number")
    return value
