"""Whether the programs serve, by their URLs: metrics with their families, webhooks with a certificate. Ends with 1 if one does not.

It runs in the image, as `helm test` starts it, so it needs no more than Python.
"""

import ssl
import sys
import time
import urllib.error
import urllib.request

WITHIN_S = 60


def told(url: str) -> str:
    """What is wrong; empty if nothing is."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # the authority is in a Secret that this pod may not read
    try:
        with urllib.request.urlopen(url, timeout=5, context=context) as answer:
            text = answer.read().decode()
    except urllib.error.HTTPError as error:
        return "" if url.startswith("https:") else str(error)  # no path of a webhook was asked for, and the server said so
    except OSError as error:
        return str(error)
    return "" if url.startswith("https:") or "\npumice_" in text else "no metrics of Pumice"


def main(urls: list[str]) -> int:
    until = time.monotonic() + WITHIN_S
    while (wrong := {url: why for url in urls if (why := told(url))}) and time.monotonic() < until:
        time.sleep(1)
    for url in urls:
        print(url, wrong.get(url, "serves"))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
