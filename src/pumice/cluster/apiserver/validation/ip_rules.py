"""What addresses and networks may be."""

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


_NO_CIDR = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
