"""What addresses and networks may be."""

from collections.abc import Iterator
from ipaddress import ip_address, ip_network


def fault_of_ip(text: str) -> str:
    """Why a text is not the address of a machine; empty if it is one."""
    try:
        ip_address(text)
    except ValueError:
        return "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
    return ""


def fault_of_cidr(text: str) -> str:
    """Why a text is not a network; empty if it is one."""
    try:
        ip_network(text)
    except ValueError as error:
        is_spare = "host bits set" in str(error)
        return "must not have bits set beyond the prefix length" if is_spare else _NO_CIDR
    return "" if text.rpartition("/")[2].isdecimal() and "/" in text else _NO_CIDR


def is_within(inner: str, outer: str) -> bool:
    """Whether a network is a part of another one, and not all of it."""
    small, large = ip_network(inner), ip_network(outer)
    return small.version == large.version and small != large and small.subnet_of(large)  # type: ignore[arg-type]


def special_faults(text: str) -> Iterator[str]:
    """Why an address is none that others reach a machine by."""
    if fault_of_ip(text):
        return  # a rule of the field
    address = ip_address(text)
    if address.is_unspecified:
        yield f"may not be unspecified ({text})"
    if address.is_loopback:
        yield "may not be in the loopback range (127.0.0.0/8, ::1/128)"
    if address.is_link_local:
        yield "may not be in the link-local range (169.254.0.0/16, fe80::/10)"


_NO_CIDR = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
