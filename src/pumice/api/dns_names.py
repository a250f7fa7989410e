"""Names as DNS has them (RFC 1123), which most objects have: labels and subdomains."""

import re

LABEL = re.compile("[a-z0-9]([-a-z0-9]*[a-z0-9])?")
SUBDOMAIN = re.compile(rf"{LABEL.pattern}(\.{LABEL.pattern})*")


def is_label(text: str) -> bool:
    return len(text) <= 63 and LABEL.fullmatch(text) is not None


def is_subdomain(text: str) -> bool:
    return len(text) <= 253 and SUBDOMAIN.fullmatch(text) is not None
