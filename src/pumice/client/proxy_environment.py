"""The proxy that the environment variables state, by Go's rules, since kubectl runs in the same pods and shells.

HTTPS_PROXY or HTTP_PROXY is used, by the URL's scheme, but never for localhost and loopback addresses. NO_PROXY lists exceptions: hosts,
domains (`.corp`, `corp`), addresses and networks (`10.0.0.0/8`), each with an optional port, or `*`.
"""

import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit


def from_environment(server: str, environ: Mapping[str, str]) -> str:
    """The URL of the proxy for a server; empty if there is none."""
    parts = urlsplit(server)
    host = (parts.hostname or "").rstrip(".")
    port = parts.port or (443 if parts.scheme == "https" else 80)
    proxy = _variable(environ, f"{parts.scheme}_proxy")
    if (
        not proxy
        or _loopback(host)
        or any(_matches(rule.strip().lower(), host, port) for rule in _variable(environ, "no_proxy").split(","))
    ):
        return ""
    return proxy if "://" in proxy else f"http://{proxy}"


def _variable(environ: Mapping[str, str], name: str) -> str:
    return environ.get(name.upper()) or environ.get(name, "")


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text.strip("[]"))
    except ValueError:
        return None


def _loopback(host: str) -> bool:
    address = _address(host)
    return host == "localhost" or (address is not None and address.is_loopback)


def _matches(rule: str, host: str, port: int) -> bool:
    if rule in ("", "*"):
        return rule == "*"
    address = _address(host)
    if "/" in rule:
        try:
            return address is not None and address in ipaddress.ip_network(rule, strict=False)
        except ValueError:
            return False
    name, colon, rule_port = rule.rpartition(":")
    if colon and rule_port.isdecimal() and _address(rule) is None:
        if int(rule_port) != port:
            return False
        rule = name
    if address is not None:
        return _address(rule) == address
    domain = rule.removeprefix("*").removeprefix(".")
    return host.endswith(f".{domain}") or (host == domain and not rule.startswith("."))
