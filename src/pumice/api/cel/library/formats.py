"""CEL's named formats of strings, which the API server also uses for names, labels and other fields."""

import re
from collections.abc import Callable, Iterator
from math import ceil
from typing import Any, NamedTuple

from pumice.api.cel.errors import EvaluationError
from pumice.api.cel.functions import function, method, tenth
from pumice.api.cel.library.networks import address_of_web
from pumice.api.cel.library.times import instant
from pumice.api.cel.values import Format, Optional
from pumice.api.dns_names import LABEL, SUBDOMAIN

_LABEL_1035 = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)")
_UUID = re.compile(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}", re.IGNORECASE)
_BASE64 = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
Problems = Iterator[str]


class _Rule(NamedTuple):
    judge: Callable[[str], Problems]
    weight: int  #: the size of its regular expression that the cost is computed from


def _shaped(shape: re.Pattern[str], longest: int, problem: str) -> Callable[[str], Problems]:
    def judge(text: str) -> Problems:
        if len(text) > longest:
            yield f"must be no more than {longest} characters"
        if shape.fullmatch(text) is None:
            yield problem

    return judge


def _prefix(judge: Callable[[str], Problems]) -> Callable[[str], Problems]:
    """The check for the beginning of a longer name, which may end with a dash."""
    return lambda text: judge(text[:-1] + "a" if len(text) > 1 and text[-1] == "-" else text)


def _dns_label(text: str) -> Problems:
    if len(text) > 63:
        yield "must be no more than 63 characters"
    if LABEL.fullmatch(text) is None:
        dots = "." in text and SUBDOMAIN.fullmatch(text)
        yield (
            "must not contain dots"
            if dots
            else "a lowercase RFC 1123 label is letters, digits and '-', and begins and ends with a letter or digit"
        )


def _qualified_name(text: str) -> Problems:
    prefix, slash, name = text.rpartition("/")
    if "/" in prefix or (slash and not prefix):
        yield "a valid label key is a name of letters, digits, '-', '_' and '.', with an optional DNS subdomain and '/' before it"
        return
    if prefix:
        yield from (f"prefix part {problem}" for problem in _subdomain(prefix))
    if len(name) > 63 or _VALUE.fullmatch(name) is None:
        yield "name part must be at most 63 letters, digits, '-', '_' and '.', and begin and end with a letter or digit"


def _label_value(text: str) -> Problems:
    if len(text) > 63:
        yield "must be no more than 63 characters"
    if text and _VALUE.fullmatch(text) is None:
        yield "a valid label is empty, or letters, digits, '-', '_' and '.', and begins and ends with a letter or digit"


def _read_by(read: Callable[[str], Any], problem: str = "") -> Callable[[str], Problems]:
    def judge(text: str) -> Problems:
        try:
            read(text)
        except EvaluationError as error:
            yield problem or str(error).removeprefix("URL parse error during conversion from string: ")

    return judge


def _date(text: str) -> Any:
    if _DATE.fullmatch(text) is None:
        raise EvaluationError("invalid date")
    return instant(f"{text}T00:00:00Z")


def _like(shape: re.Pattern[str], problem: str) -> Callable[[str], Problems]:
    return lambda text: iter(()) if shape.fullmatch(text) else iter((problem,))


_subdomain = _shaped(
    SUBDOMAIN, 253, "a lowercase RFC 1123 subdomain is letters, digits, '-' and '.', and begins and ends with a letter or digit"
)
_dns_1035 = _shaped(_LABEL_1035, 63, "a DNS-1035 label is letters, digits and '-', begins with a letter and ends with a letter or digit")
RULES = {
    "dns1123Label": _Rule(_dns_label, 30),
    "dns1123Subdomain": _Rule(_subdomain, 60),
    "dns1035Label": _Rule(_dns_1035, 30),
    "qualifiedName": _Rule(_qualified_name, 60),
    "dns1123LabelPrefix": _Rule(_prefix(_dns_label), 30),
    "dns1123SubdomainPrefix": _Rule(_prefix(_subdomain), 60),
    "dns1035LabelPrefix": _Rule(_prefix(_dns_1035), 30),
    "labelValue": _Rule(_label_value, 40),
    "uri": _Rule(_read_by(address_of_web), 1000),
    "uuid": _Rule(_like(_UUID, "does not match the UUID format"), 70),
    "byte": _Rule(_like(_BASE64, "invalid base64"), 80),
    "date": _Rule(_read_by(_date, "invalid date"), 70),
    "datetime": _Rule(_read_by(instant, "invalid datetime"), 70),
}


def _named(name: str) -> None:
    @function(f"format.{name}() kubernetes.NamedFormat")
    def format_() -> Format:
        return Format(name)


for _name in RULES:
    _named(_name)


@function("format.named(string) optional_type<kubernetes.NamedFormat>")
def named(name: str) -> Optional:
    return Optional(True, Format(name)) if name in RULES else Optional(False)


def _weight(value: Format, text: str) -> int:
    return tenth(len(text) + 1) * ceil(RULES[value.name].weight / 4)


@method("validate(kubernetes.NamedFormat, string) optional_type<list<string>>", price=_weight)
def validate(value: Format, text: str) -> Optional:
    problems = list(RULES[value.name].judge(text))
    return Optional(True, problems) if problems else Optional(False)
