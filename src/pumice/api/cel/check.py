"""The type check of an expression before it is evaluated: whether its types (here called kinds) agree, and the kind of its value.

It works as upstream's checker: overloads are tried in turn with fresh type variables, and those that fit bind variables for what follows.
A literal list or map holds items of one kind.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from pumice.api.cel import tree
from pumice.api.cel.errors import CompileError
from pumice.api.cel.functions import FUNCTIONS, METHODS, ORDERED, Function
from pumice.api.cel.syntax import RESERVED
from pumice.api.cel.values import (
    BOOL,
    DYN,
    INT,
    STRING,
    TYPE_KINDS,
    CelType,
    KnownKinds,
    fits,
    kind,
    kind_of,
    list_of,
    map_of,
    more_general,
    optional_of,
    settled,
    with_fresh,
)

Scope = Mapping[str, CelType]
Signature = tuple[tuple[CelType, ...], CelType]
_SHOWN = {"in": "@in", "!_": "!_", "-_": "-_"}


class Environment(NamedTuple):
    """The names that expressions in one place may use, and the functions that only these expressions may call."""

    names: dict[str, CelType]
    fields: dict[str, dict[str, CelType]]  #: the declared fields, of the kinds that declare any
    extras: frozenset[str] = frozenset()  #: functions not allowed everywhere: `cel.bind`, `includes`


def _signatures(*texts: str) -> list[Signature]:
    return [(kind(f"list<{takes}>").of, kind(gives)) for takes, _, gives in (text.partition(" -> ") for text in texts)]


_INDEX = _signatures(
    "list<A>, int -> A",
    "map<A, B>, A -> B",
    "optional_type<list<A>>, int -> optional_type<A>",
    "optional_type<map<A, B>>, A -> optional_type<B>",
)
_OPTIONAL_INDEX = [(takes, gives if gives.name == "optional_type" else optional_of(gives)) for takes, gives in _INDEX]
_CHOICE = _signatures("bool, A, A -> A")


def check(node: tree.Node, environment: Environment) -> CelType:
    """The kind of the expression's value. Raises CompileError."""
    checker = _Checker(environment)
    found = settled(checker.kind(node, environment.names), checker.known, DYN)
    for first, other in checker.equal_kinds:
        left, right = settled(first, checker.known, DYN), settled(other, checker.known, DYN)
        if left != right:
            raise CompileError(f"expected type '{left}' but found '{right}'")
    return found


def type_named(node: tree.Node, scope: Scope) -> str | None:
    """The full dotted name of a type, if the node names a type and no variable; else None."""
    parts: list[str] = []
    while isinstance(node, tree.Select) and not node.optional:
        parts.append(node.name)
        node = node.target
    if not isinstance(node, tree.Name) or node.name in scope:
        return None
    name = ".".join([node.name, *reversed(parts)])
    return name if name in TYPE_KINDS else None


class _Checker:
    def __init__(self, environment: Environment) -> None:
        self.environment = environment
        self.known = KnownKinds()
        self.uses = 0
        self.equal_kinds: list[tuple[CelType, CelType]] = []
        self.mixed = 0  #: the number of enclosing calls that take lists of mixed kinds

    def fresh(self, *kinds: CelType) -> list[CelType]:
        self.uses += 1
        return [with_fresh(each, str(self.uses)) for each in kinds]

    def settled(self, found: CelType) -> CelType:
        return settled(found, self.known)

    def fits(self, found: CelType, wanted: CelType) -> bool:
        mark = self.known.mark()
        if fits(found, wanted, self.known):
            return True
        self.known.forget(mark)
        return False

    def want(self, found: CelType, wanted: CelType) -> None:
        if not self.fits(found, wanted):
            raise CompileError(f"expected type '{self.settled(wanted)}' but found '{self.settled(found)}'")

    def kind(self, node: tree.Node, scope: Scope) -> CelType:
        match node:
            case tree.Literal(value):
                return _kind_of(value)
            case tree.Name(name) if name in scope:
                return scope[name]
            case tree.Name() | tree.Select() if (type_name := type_named(node, scope)) is not None:
                return TYPE_KINDS[type_name]
            case tree.Name(name):
                raise _undeclared(name)
            case tree.Select(target, name, optional):
                return self.member(self.kind(target, scope), name, optional)
            case tree.Has(target, name, optional):
                self.member(self.kind(target, scope), name, optional)
                return BOOL
            case tree.Subscript():
                return self.index(node, scope)
            case tree.Call():
                return self.call(node, scope)
            case tree.Items() | tree.Construct():
                return self.written(node, scope)
            case tree.Logic(_, sides):
                for side in sides:
                    self.want(self.kind(side, scope), BOOL)
                return BOOL
            case tree.Ternary(condition, yes, no):
                return self.chosen("_?_:_", _CHOICE, [self.kind(each, scope) for each in (condition, yes, no)])
            case tree.BindMacro():
                return self.bind(node, scope)
            case tree.Each():
                return self.each(node, scope)

    def written(self, node: tree.Items | tree.Construct, scope: Scope) -> CelType:
        if isinstance(node, tree.Items):
            return list_of(self.joined(((item, index in node.optional) for index, item in enumerate(node.items)), scope))
        keys = self.joined(((key, False) for key, _ in node.entries), scope)
        values = ((value, index in node.optional) for index, (_, value) in enumerate(node.entries))
        return map_of(keys, self.joined(values, scope))

    def index(self, node: tree.Subscript, scope: Scope) -> CelType:
        found = [self.kind(node.target, scope), self.kind(node.key, scope)]
        return self.chosen("_[?_]", _OPTIONAL_INDEX, found) if node.optional else self.chosen("_[_]", _INDEX, found)

    def member(self, target: CelType, name: str, optional: bool) -> CelType:
        held = self.settled(target)
        is_optional = held.name == "optional_type"
        held = self.settled(held.of[0]) if is_optional else held
        if held.is_variable:
            self.fits(DYN, held)
            found = DYN
        elif held.is_open:
            found = DYN
        elif held.name == "map":
            found = held.of[1]
        elif held.name in self.environment.fields:
            fields = self.environment.fields[held.name]
            declared = f"__{name}__" if name in RESERVED else name  # such a field may be written with its escape and without
            if declared not in fields:
                raise CompileError(f"undefined field '{name}'")
            found = fields[declared]
        else:
            raise CompileError(f"type '{held}' does not support field selection")
        return optional_of(found) if optional or is_optional else found

    def call(self, node: tree.Call, scope: Scope) -> CelType:
        table = METHODS if node.is_method else FUNCTIONS
        function = table.get(node.name)
        known_at_all = function or (FUNCTIONS if node.is_method else METHODS).get(node.name)
        if known_at_all is None or (node.name == "includes" and node.name not in self.environment.extras):
            if node.is_method:
                self.kind(node.arguments[0], scope)
            raise _undeclared(node.name)
        self.mixed += node.name == "format"
        found = [self.kind(argument, scope) for argument in node.arguments]
        self.mixed -= node.name == "format"
        signatures = [(each.takes, each.gives) for each in (function or Function("", [], {})).overloads]
        return self.chosen(
            _SHOWN.get(node.name, node.name if node.name[0].isalpha() else f"_{node.name}_"), signatures, found, node.is_method
        )

    def chosen(self, name: str, signatures: Sequence[Signature], found: list[CelType], is_method: bool = False) -> CelType:
        """The kind that the matching overloads return; `dyn` if they differ. Raises CompileError if none matches."""
        answer: CelType | None = None
        for takes, gives in signatures:
            if len(takes) != len(found):
                continue
            *wanted, result = self.fresh(*takes, gives)
            mark = self.known.mark()
            if not all(fits(one, other, self.known) for one, other in zip(found, wanted, strict=True)):
                self.known.forget(mark)
                continue
            result = self.settled(result)
            if answer is None:
                answer = result
            elif not answer.is_open and answer != result:
                answer = DYN
        if answer is None:
            shown = [str(settled(each, self.known, DYN)) for each in found]
            of = f"{shown[0]}.({', '.join(shown[1:])})" if is_method else f"({', '.join(shown)})"
            raise CompileError(f"found no matching overload for '{name}' applied to '{of}'")
        return answer

    def joined(self, nodes: Iterable[tuple[tree.Node, bool]], scope: Scope) -> CelType:
        """The kind that these nodes have in common; a fresh variable if there are none. Raises CompileError if they differ."""
        before: CelType | None = None
        for node, optional in nodes:
            found = self.kind(node, scope)
            if optional:
                held = self.settled(found)
                if held.name != "optional_type" and not held.is_open:
                    raise CompileError(f"expected type '{optional_of(held)}' but found '{held}'")
                found = held.of[0] if held.of else DYN
            if before is not None:
                if self.mixed:
                    found = more_general(before, found, self.known) if self.fits(found, before) else DYN
                else:
                    self.want(found, before)
                    self.equal_kinds.append((before, found))
                    found = more_general(self.settled(before), self.settled(found), self.known)
            before = found
        return before or self.fresh(CelType("$"))[0]

    def bind(self, node: tree.BindMacro, scope: Scope) -> CelType:
        if node.macro == "cel.bind":
            if node.macro not in self.environment.extras:
                raise _undeclared("cel")
            return self.kind(node.body, {**scope, node.variable: self.kind(node.value, scope)})
        held = self.fresh(CelType("$"))[0]
        value = self.kind(node.value, scope)
        if not self.fits(value, optional_of(held)):
            raise CompileError(f"found no matching overload for 'hasValue' applied to '{self.settled(value)}.()'")
        body = self.kind(node.body, {**scope, node.variable: self.settled(held)})
        if node.macro == "optMap":
            return optional_of(body)
        return self.chosen("_?_:_", _CHOICE, [BOOL, body, optional_of(self.fresh(CelType("$"))[0])])

    def each(self, node: tree.Each, scope: Scope) -> CelType:
        held = self.settled(self.kind(node.target, scope))
        if held.is_variable:
            self.fits(DYN, held)
            held = DYN
        if not held.is_open and held.name not in ("list", "map"):
            raise CompileError(f"expression of type '{held}' cannot be range of a comprehension (must be list, map, or dynamic)")
        key, value = (DYN, DYN) if held.is_open else (INT, held.of[0]) if held.name == "list" else held.of
        single = value if held.name != "map" else key
        inner = {**scope, **dict(zip(node.variables, (key, value) if len(node.variables) == 2 else (single,), strict=True))}
        *conditions, last = [self.kind(part, inner) for part in node.parts]
        if node.macro in ("all", "exists", "exists_one", "existsOne", "filter"):
            conditions.append(last)
        for condition in conditions:
            self.want(condition, BOOL)
        match node.macro:
            case "map" | "transformList":
                return list_of(last)
            case "filter":
                return list_of(single)
            case "transformMap":
                return map_of(key, last)
            case "transformMapEntry":
                return self.chosen("cel.@mapInsert", _signatures("map<A, B> -> map<A, B>"), [last])
            case "sortBy":
                keys = _signatures(*(f"{each} -> dyn" for each in ORDERED))
                self.chosen("@sortByAssociatedKeys", keys, [last])
                return list_of(single)
        return BOOL


def _undeclared(name: str) -> CompileError:
    return CompileError(f"undeclared reference to '{name}' (in container '')")


def _kind_of(value: Any) -> CelType:
    if isinstance(value, list):
        return list_of(_kind_of(value[0]) if value else DYN)
    return STRING if isinstance(value, str) else CelType(kind_of(value))
