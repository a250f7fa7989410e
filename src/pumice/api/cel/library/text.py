"""CEL's functions on strings."""

from typing import Any

from pumice.api.cel.cost import CostBudget
from pumice.api.cel.errors import EvaluationError
from pumice.api.cel.functions import by_size, by_twice_its_size, free, function, method, tenth
from pumice.api.regular_expressions import Pattern, PatternError, pattern

_LOWER = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")
_UPPER = str.maketrans("abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ")
_SPACES = "\t\n\v\f\r \u0085\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
_CONTROLS = {"\a": "a", "\b": "b", "\f": "f", "\n": "n", "\r": "r", "\t": "t", "\v": "v"}
_QUOTED = str.maketrans({letter: f"\\{name}" for letter, name in {**_CONTROLS, "\\": "\\", '"': '"'}.items()})


function("jsonpatch.escapeKey(string) string")(lambda key: key.replace("~", "~0").replace("/", "~1"))
function("size(string) int", "size(bytes) int", "size(list<A>) int", "size(map<A, B>) int")(len)
method("size(string) int", "size(bytes) int", "size(list<A>) int", "size(map<A, B>) int")(len)
method("contains(string, string) bool", price=lambda text, part: tenth(len(text)) * tenth(len(part)))(lambda text, part: part in text)


method("startsWith(string, string) bool", price=by_size)(str.startswith)
method("endsWith(string, string) bool", price=by_size)(str.endswith)


method("lowerAscii(string) string", price=by_size)(lambda text: text.translate(_LOWER))
method("upperAscii(string) string", price=by_size)(lambda text: text.translate(_UPPER))
method("trim(string) string", price=by_size)(lambda text: text.strip(_SPACES))


@method("charAt(string, int) string")
def char_at(text: str, index: int) -> str:
    if not 0 <= index <= len(text):
        raise EvaluationError(f"index out of range: {index}")
    return text[index : index + 1]


@method("substring(string, int) string", "substring(string, int, int) string", price=by_size)
def substring(text: str, start: int, end: int | None = None) -> str:
    last = len(text) if end is None else end
    for index in (start, last):
        if not 0 <= index <= len(text):
            raise EvaluationError(f"index out of range: {index}")
    if start > last:
        raise EvaluationError(f"invalid substring range. start: {start}, end: {last}")
    return text[start:last]


@method("indexOf(string, string) int", "indexOf(string, string, int) int", price=by_size)
def index_of(text: str, part: str, start: int = 0) -> int:
    if start < 0:
        raise EvaluationError(f"index out of range: {start}")
    return start if not part else text.find(part, start)


@method("lastIndexOf(string, string) int", "lastIndexOf(string, string, int) int", price=by_size)
def last_index_of(text: str, part: str, last: int | None = None) -> int:
    if last is None:
        return text.rfind(part)
    if last < 0:
        raise EvaluationError(f"index out of range: {last}")
    if not part:
        return last
    return -1 if last > len(text) else text.rfind(part, 0, last + len(part))


@method("replace(string, string, string) string", "replace(string, string, string, int) string", price=by_twice_its_size, pays=True)
def replace(budget: CostBudget, text: str, old: str, new: str, count: int = -1) -> str:
    found = text.count(old)
    places = found if count < 0 else min(count, found)
    budget.pay(tenth(max(0, places * (len(new) - len(old)))))
    return text.replace(old, new, places)


@method("split(string, string) list<string>", "split(string, string, int) list<string>", price=by_twice_its_size, pays=True)
def split(budget: CostBudget, text: str, mark: str, limit: int = -1) -> list[str]:
    if limit == 0:
        return []
    most = text.count(mark) + (1 if mark else -1)
    budget.pay(most if limit < 0 else min(limit, most))
    if mark:
        return text.split(mark, limit - 1 if limit > 0 else -1)
    return list(text) if limit < 0 or limit >= len(text) else [*text[: limit - 1], text[limit - 1 :]]


@method("join(list<string>) string", "join(list<string>, string) string", pays=True, price=free)
def join(budget: CostBudget, items: list[Any], mark: str = "") -> str:
    if not all(isinstance(item, str) for item in items):
        raise EvaluationError("no such overload: join(list, string)")
    total = sum(map(len, items)) + len(mark) * max(0, len(items) - 1)
    budget.pay(-(-total // 5))
    return mark.join(items)


@function("strings.quote(string) string", price=by_size)
def quote(text: str) -> str:
    return f'"{text.translate(_QUOTED)}"'


def pattern_of(text: str) -> Pattern:
    """The compiled pattern. Raises EvaluationError."""
    try:
        return pattern(text)
    except PatternError as error:
        raise EvaluationError(f"error parsing regexp: {error}") from None


def _matching(budget: CostBudget, text: str, wanted: str) -> Pattern:
    """The compiled pattern, after paying for a match with this text. Raises EvaluationError."""
    made = pattern_of(wanted)
    budget.pay(max(tenth(len(text) + 1) * -(-len(wanted) // 4), len(text) * made.size // 128))
    return made


@function("matches(string, string) bool", price=free, pays=True)
@method("matches(string, string) bool", price=free, pays=True)
def matches(budget: CostBudget, text: str, wanted: str) -> bool:
    try:
        return _matching(budget, text, wanted).found_in(text)
    except PatternError as error:
        raise EvaluationError(str(error)) from None


@method("find(string, string) string", price=free, pays=True)
def find(budget: CostBudget, text: str, wanted: str) -> str:
    try:
        return _matching(budget, text, wanted).first(text) or ""
    except PatternError as error:
        raise EvaluationError(str(error)) from None


@method("findAll(string, string) list<string>", "findAll(string, string, int) list<string>", price=free, pays=True)
def find_all(budget: CostBudget, text: str, wanted: str, limit: int = -1) -> list[str]:
    made = _matching(budget, text, wanted)
    try:
        found = made.each(text, limit, budget.pay)
    except PatternError as error:
        raise EvaluationError(str(error)) from None
    return found
