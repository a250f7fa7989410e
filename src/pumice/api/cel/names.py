"""What can be called, and with how many arguments."""

from __future__ import annotations

Counts = dict[str, tuple[int, ...]]

#: of the variable and what follows it
MACROS: Counts = {"all": (2,), "exists": (2,), "exists_one": (2,), "existsOne": (2,), "filter": (2,), "map": (2, 3)}
LIBRARIES = frozenset({"sets", "math", "optional"})  #: names that only go before a function
FUNCTIONS: Counts = {
    **dict.fromkeys(["has", "size", "quantity", "isQuantity", "semver", "isSemver"], (1,)),
    **dict.fromkeys(["string", "int", "uint", "double", "bool", "dyn", "type", "timestamp", "duration"], (1,)),
    **dict.fromkeys(["isURL", "isIP", "isCIDR"], (1,)),
    **dict.fromkeys(["sets.contains", "sets.equivalent", "sets.intersects"], (2,)),
    **dict.fromkeys(["math.greatest", "math.least"], (1, 2, 3, 4, 5)),
    "optional.of": (1,),
    "optional.none": (0,),
}
METHODS: Counts = {
    **dict.fromkeys(["startsWith", "endsWith", "contains", "matches", "compareTo", "isGreaterThan", "isLessThan", "find"], (1,)),
    **dict.fromkeys(["size", "lowerAscii", "upperAscii", "trim", "isInteger", "asInteger", "asApproximateFloat", "sign"], (0,)),
    **dict.fromkeys(["major", "minor", "patch", "isSorted", "sum", "min", "max", "hasValue", "value"], (0,)),
    **dict.fromkeys(["add", "sub", "charAt", "or", "orValue"], (1,)),
    **dict.fromkeys(["getFullYear", "getMonth", "getDayOfMonth", "getHours", "getMinutes", "getSeconds"], (0,)),
    **dict.fromkeys(["indexOf", "lastIndexOf", "split", "findAll", "substring"], (1, 2)),
    "replace": (2, 3),
    "join": (0, 1),
}
