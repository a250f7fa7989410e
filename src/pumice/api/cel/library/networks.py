"""CEL's functions on IP addresses, networks and URLs."""

import ipaddress
import re
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from pumice.api.cel.errors import EvaluationError
from pumice.api.cel.functions import by_size, by_twice_its_size, function, method, tenth
from pumice.api.cel.values import Address, Network, Url

_LONGEST = 100  #: the most characters of an address that are read
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_BAD_ESCAPE = re.compile(r"%(?![0-9a-fA-F]{2})")
_PATH = "/:@&=+$,;~!*'()[]-_."


def address(text: str, what: str = "IP Address") -> Address:
    """The IP address that the text means. Raises EvaluationError."""
    try:
        found = ipaddress.ip_address(text[:_LONGEST])
    except ValueError as error:
        raise EvaluationError(f'{what} "{text}" parse error during conversion from string: {error}') from None
    if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped:
        raise EvaluationError(f'IPv4-mapped IPv6 address "{text}" is not allowed')
    if "%" in text:
        raise EvaluationError(f'IP address "{text}" with zone value is not allowed')
    return Address(found)


def network(text: str) -> Network:
    """The network that the text means, in CIDR notation. Raises EvaluationError."""
    before, slash, bits = text[:_LONGEST].rpartition("/")
    try:
        found = address(before).ip
        if not slash or not re.fullmatch("0|[1-9][0-9]{0,2}", bits) or int(bits) > found.max_prefixlen:
            raise EvaluationError(f"netip.ParsePrefix({text[:_LONGEST]!r}): bad bits after slash")
    except EvaluationError as error:
        raise EvaluationError(f"network address parse error during conversion from string: {error}") from None
    return Network(found, int(bits))


def _can(read: Any, text: str) -> bool:
    try:
        read(text)
    except EvaluationError:
        return False
    return True


@function("ip(string) net.IP", price=by_size)
def ip(text: str) -> Address:
    return address(text)


@function("isIP(string) bool", price=by_size)
def is_ip(text: str) -> bool:
    return _can(address, text)


function("ip.isCanonical(string) bool", price=by_twice_its_size)(lambda text: str(address(text).ip) == text)
function("cidr(string) net.CIDR", price=by_size)(network)
function("isCIDR(string) bool", price=by_size)(lambda text: _can(network, text))
function("string(net.IP) string")(lambda value: str(value.ip))
function("string(net.CIDR) string")(lambda value: f"{value.ip}/{value.bits}")
method("family(net.IP) int")(lambda value: value.ip.version)
method("isUnspecified(net.IP) bool")(lambda value: value.ip.is_unspecified)
method("isLoopback(net.IP) bool")(lambda value: value.ip.is_loopback)
method("isLinkLocalUnicast(net.IP) bool")(lambda value: value.ip.is_link_local)


@method("isLinkLocalMulticast(net.IP) bool")
def is_link_local_multicast(value: Address) -> bool:
    ip = value.ip
    return (ip.packed[:3] == b"\xe0\x00\x00") if ip.version == 4 else (ip.packed[0] == 0xFF and ip.packed[1] & 0x0F == 2)


@method("isGlobalUnicast(net.IP) bool")
def is_global_unicast(value: Address) -> bool:
    ip = value.ip
    broadcast = ip.packed == b"\xff\xff\xff\xff"
    return not (broadcast or ip.is_unspecified or ip.is_loopback or ip.is_multicast or ip.is_link_local)


method("ip(net.CIDR) net.IP")(lambda value: Address(value.ip))
method("masked(net.CIDR) net.CIDR")(lambda value: Network(_range(value).network_address, value.bits))
method("prefixLength(net.CIDR) int")(lambda value: value.bits)


def _range(value: Network) -> Any:
    return ipaddress.ip_network((value.ip, value.bits), strict=False)


def _length(value: Any) -> int:
    return len(value) if isinstance(value, str) else 0


def _held(value: Network, other: Any) -> int:
    return tenth(2 * value.ip.max_prefixlen // 8) + tenth(_length(other))


@method("containsIP(net.CIDR, net.IP) bool", "containsIP(net.CIDR, string) bool", price=_held)
def contains_ip(value: Network, other: Any) -> bool:
    if isinstance(other, str) and not is_ip(other):
        raise EvaluationError("no such overload")
    found = address(other).ip if isinstance(other, str) else other.ip
    return found.version == value.ip.version and found in _range(value)


@method(
    "containsCIDR(net.CIDR, net.CIDR) bool",
    "containsCIDR(net.CIDR, string) bool",
    price=lambda value, other: _held(value, other) + tenth(value.ip.max_prefixlen // 8) + 1,
)
def contains_cidr(value: Network, other: Any) -> bool:
    found = network(other) if isinstance(other, str) else other
    if found.ip.version != value.ip.version or found.bits < value.bits:
        return False
    return found.ip in _range(value)


def address_of_web(text: str) -> Url:
    """The URL that the text means: an absolute one, or a path that begins with a slash. Raises EvaluationError."""
    scheme = _SCHEME.match(text)
    problem = "invalid URI for request" if not text or not (scheme or text[0] == "/" or text == "*") else ""
    if any(ord(letter) < 0x20 or ord(letter) == 0x7F for letter in text):
        problem = "net/url: invalid control character in URL"
    try:
        parts = urlsplit(text, allow_fragments=False)
        host = parts.netloc.rpartition("@")[2]
        if _BAD_ESCAPE.search(parts.path) or re.search(r'[\s<>"%]', host):
            problem = problem or "invalid URL escape"
        port = re.sub(r"^\[[^\[\]]*\]|^[^:\[\]]*", "", host, count=1)
        if port and not re.fullmatch(r":[0-9]*", port):
            problem = problem or f'invalid port "{port}" after host'
    except ValueError as error:
        problem = problem or str(error)
    if problem:
        raise EvaluationError(f'URL parse error during conversion from string: parse "{text}": {problem}')
    return Url(parts)


function("url(string) kubernetes.URL", price=by_size)(address_of_web)
function("isURL(string) bool")(lambda text: _can(address_of_web, text))


def host_and_port(value: Url) -> str:
    return value.parts.netloc.rpartition("@")[2]


@method("getScheme(kubernetes.URL) string")
def scheme(value: Url) -> str:
    return value.parts.scheme


@method("getHost(kubernetes.URL) string")
def host(value: Url) -> str:
    return host_and_port(value)


@method("getHostname(kubernetes.URL) string")
def hostname(value: Url) -> str:
    full = host_and_port(value)
    return full[1:].partition("]")[0] if full[:1] == "[" else full.partition(":")[0]


@method("getPort(kubernetes.URL) string")
def port(value: Url) -> str:
    full = host_and_port(value)
    return full.rpartition("]")[2].partition(":")[2]


@method("getEscapedPath(kubernetes.URL) string")
def escaped_path(value: Url) -> str:
    return quote(unquote(value.parts.path, errors="surrogateescape"), safe=_PATH, errors="surrogateescape")


@method("getQuery(kubernetes.URL) map<string, list<string>>")
def query(value: Url) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, one in parse_qsl(value.parts.query, keep_blank_values=True):
        found.setdefault(name, []).append(one)
    return found
