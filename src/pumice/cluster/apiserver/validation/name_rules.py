"""What names may be, and Kubernetes' words for those that may not be.

The forms: long (subdomain), short (label of DNS), label (key of a label), prefixed (the same, with a prefix), foreign (with a prefix which
is not Kubernetes' own), segment (of a path), url (a path, perhaps with * at its end), caseless and anycase (subdomain, whatever the case of
its letters: newer and older words), pool (subdomains), value (of a label), port, host (a subdomain, perhaps with * for any label), path
(with a domain), key (of data), env, semver, uuid, identifier (of C).
"""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache

from pumice.cluster.apiserver.validation.field_rules import Causes, compact

_LABEL, _KEY_NAME = "[a-z0-9]([-a-z0-9]*[a-z0-9])?", "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_DATA_KEY = "[-._a-zA-Z0-9]+"
_WILDCARD = rf"\*\.{_SUBDOMAIN}"
_LONGEST_KEPT = 256  #: characters
_OWN_DOMAINS = (".k8s.io", ".kubernetes.io")
_ENDS = "and must start and end with an alphanumeric character"
_PRE_RELEASE = r"(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)"
_PATTERNS = {
    "value": f"({_KEY_NAME})?",
    "semver": rf"(0|[1-9]\d*)(\.(0|[1-9]\d*)){{2}}(-{_PRE_RELEASE}(\.{_PRE_RELEASE})*)?(\+[0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*)?",
    "identifier": "[A-Za-z_][A-Za-z0-9_]*",
    "uuid": "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}",
    "env": "[ -<>-~]+",
}
_RULES = {
    "long": f"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', {_ENDS} "
    f"(e.g. 'example.com', regex used for validation is '{_SUBDOMAIN}')",
    "short": f"a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', {_ENDS} "
    f"(e.g. 'my-name',  or '123-abc', regex used for validation is '{_LABEL}')",
    "caseless": f"an RFC 1123 subdomain must consist of alphanumeric characters, '-' or '.', {_ENDS} "
    f"(e.g. 'Example.com', regex used for validation is '{_SUBDOMAIN}')",
    "semver": "must be a string compatible with semver.org spec 2.0.0",
    "identifier": "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters or "
    f"'_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is '{_PATTERNS['identifier']}')",
    "env": "a valid environment variable name must consist only of printable ASCII characters other than '='",
    "uuid": "must be a lowercase UUID in 8-4-4-4-12 format",
    "value": f"a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', {_ENDS} "
    f"(e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '({_KEY_NAME})?')",
    "label": f"must consist of alphanumeric characters, '-', '_' or '.', {_ENDS} "
    f"(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{_KEY_NAME}')",
}


def kept(faults: Callable[[str, str], tuple[str, ...]]) -> Callable[[str, str], tuple[str, ...]]:
    """A function of a form or key and a text, which remembers what it found of those that are not too long."""
    known = lru_cache(maxsize=65536)(faults)

    def found(of: str, text: str) -> tuple[str, ...]:
        return known(of, text) if len(of) + len(text) < _LONGEST_KEPT else faults(of, text)

    return found


@kept
def misnamed(form: str, name: str) -> tuple[str, ...]:
    """Why a name is none of this form."""
    return tuple(_faults(form, name))


def named(form: str, name: str, place: str) -> Causes:
    """The causes for refusing a name if it is none of this form."""
    return [(place, f"Invalid value: {compact(name)}: {fault}") for fault in misnamed(form, name)]


def named_object(form: str, name: str, place: str) -> Causes:
    """The same, as the rules say it that are older than those of fields: they count characters, but for keys of labels."""
    unit = "bytes" if form == "label" else "characters"
    return [(place, f"Invalid value: {compact(name)}: {fault.replace('bytes', unit)}") for fault in misnamed(form, name)]


def _faults(form: str, name: str) -> Iterator[str]:
    if form in _PATTERNS:
        if form == "value" and len(name.encode()) > 63:
            yield "must be no more than 63 bytes"
        if not re.fullmatch(_PATTERNS[form], name):
            yield _RULES[form]
    elif form in _OTHERS:
        yield from _OTHERS[form](name)
    else:
        most, pattern = (63, _LABEL) if form == "short" else (253, _SUBDOMAIN)
        name, form = (name.lower(), form.replace("anycase", "long")) if form in ("caseless", "anycase") else (name, form)
        if len(name.encode()) > most:
            yield f"must be no more than {most} bytes"
        if not re.fullmatch(pattern, name):
            yield "must not contain dots" if form == "short" and re.fullmatch(_SUBDOMAIN, name) else _RULES[form]


def _segment(name: str) -> list[str]:
    return [f"may not be '{name}'"] if name in (".", "..") else [f"may not contain '{each}'" for each in "/%" if each in name]


def _foreign(name: str) -> list[str]:
    domain = name.partition("/")[0].lower().strip().rstrip(".")
    is_own = f".{domain}".endswith(_OWN_DOMAINS)
    return [f"domain names {', '.join(f'*{own}' for own in _OWN_DOMAINS)} are reserved"] if is_own else []


def _pool(name: str) -> Iterator[str]:
    for number, part in enumerate(name.split("/")):
        yield from (f"segment {number}: {text}" for text in (misnamed("long", part) if part else ["must not be empty"]))


def _prefixed(name: str) -> Iterable[str]:
    return misnamed("label", name) or ([] if "/" in name else ["must include a prefix (e.g. 'example.com/key')"])


def _key(name: str) -> Iterator[str]:
    prefix, slash, rest = name.partition("/")
    if "/" in rest:
        yield f"a valid label key {_RULES['label']} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return
    if slash:
        yield from (f"prefix part {text}" for text in (misnamed("long", prefix) if prefix else ["must be non-empty"]))
    rest = rest if slash else name
    if not rest or len(rest.encode()) > 63:
        yield f"name part {'must be no more than 63 bytes' if rest else 'must be non-empty'}"
    if not re.fullmatch(_KEY_NAME, rest):
        yield f"name part {_RULES['label']}"


def _port(name: str) -> Iterator[str]:
    if len(name) > 15:
        yield "must be no more than 15 characters"
    if not re.fullmatch("[-a-z0-9]+", name):
        yield "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)"
    if not re.search("[a-z]", name):
        yield "must contain at least one letter (a-z)"
    if "--" in name:
        yield "must not contain consecutive hyphens"
    if "-" in (name[:1], name[-1:]):
        yield "must not begin or end with a hyphen"


def _host(name: str) -> Iterable[str]:
    if "*" not in name:
        return misnamed("long", name)
    rule = "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case "
    rule += (
        "alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', regex used for validation is "
    )
    return [] if re.fullmatch(_WILDCARD, name) else [f"{rule}'{_WILDCARD}')"]


def _data_key(name: str) -> Iterator[str]:
    if len(name) > 253:
        yield "must be no more than 253 characters"
    if not re.fullmatch(_DATA_KEY, name):
        yield (
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', "
            f"regex used for validation is '{_DATA_KEY}')"
        )
    if name.startswith("..") or name == ".":
        yield f"must not be '{name}'" if name in (".", "..") else "must not start with '..'"


def _path(name: str) -> Iterable[str]:
    domain, _, path = name.partition("/")
    return misnamed("long", domain) if domain and path else ['must be a domain-prefixed path (such as "acme.io/foo")']


def _url(name: str) -> Iterator[str]:
    if not name.startswith("/"):
        yield "must start with slash" if name else "must not be empty"
    elif " " in name:
        yield "must not contain white-space"
    elif "//" in name:
        yield "must not contain double slash"
    elif "*" in name.removesuffix("/*"):
        yield "wildcard can only do suffix matching"


_OTHERS: dict[str, Callable[[str], Iterable[str]]] = {
    "segment": _segment,
    "foreign": _foreign,
    "pool": _pool,
    "prefixed": _prefixed,
    "label": _key,
    "port": _port,
    "host": _host,
    "key": _data_key,
    "path": _path,
    "url": _url,
}
