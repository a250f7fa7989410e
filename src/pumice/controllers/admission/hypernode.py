"""Rules for HyperNodes: there is at least one member, and each member has exactly one valid selector."""

from collections.abc import Iterator

from pumice.api import Object, spec_of
from pumice.api.dns_names import is_subdomain
from pumice.api.regular_expressions import PatternError, pattern
from pumice.controllers.admission.problem import Problem, Settings, not_negative, one_of
from pumice.controllers.controller import Lister

WAYS = ("exactMatch", "regexMatch", "labelMatch")


def validate(operation: str, new: Object | None, old: Object | None, lister: Lister, settings: Settings) -> list[Problem]:
    assert new is not None
    members = spec_of(new).get("members") or []
    problems = list(not_negative(spec_of(new).get("tier"), "spec.tier"))
    if not members:
        problems.append(Problem("spec.members", "a HyperNode without members holds nothing; name at least one Node or HyperNode"))
    for index, member in enumerate(members):
        problems.extend(_member(member, f"spec.members[{index}]"))
    return problems


def _member(member: Object, field: str) -> Iterator[Problem]:
    type_, selector = member.get("type"), member.get("selector") or {}
    yield from one_of(type_, ("Node", "HyperNode"), f"{field}.type")
    chosen = [way for way in WAYS if selector.get(way) is not None]
    if len(chosen) != 1:
        found = " and ".join(chosen) or "none"
        yield Problem(f"{field}.selector", f"{found} given; write exactly one of {', '.join(WAYS)}")
        return
    if "exactMatch" in chosen and not is_subdomain(selector["exactMatch"].get("name") or ""):
        found = selector["exactMatch"].get("name") or ""
        yield Problem(f"{field}.selector.exactMatch.name", f'"{found}" is not a name; write the name of a {type_}')
    if "regexMatch" in chosen:
        yield from _pattern(selector["regexMatch"].get("pattern") or "", f"{field}.selector.regexMatch.pattern")
    if "labelMatch" in chosen and type_ == "HyperNode":
        yield Problem(f"{field}.selector.labelMatch", "labels choose only members of type Node; write exactMatch or regexMatch")


def _pattern(text: str, field: str) -> Iterator[Problem]:
    if not text:
        yield Problem(field, 'the pattern is empty; write one such as "^node-[0-9]+$"')
        return
    try:
        pattern(text)
    except PatternError as error:
        yield Problem(field, f'"{text}" is not a regular expression: {error}')
