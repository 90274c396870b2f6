"""Certificates as PEM texts: each by itself, in one form, and its fingerprint."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import textwrap
from typing import List

_BLOCK = re.compile(r"-----BEGIN CERTIFICATE-----(.*?)-----END CERTIFICATE-----", re.DOTALL)


def certificates(text: str) -> List[str]:
    """The certificates of a text, each once, written alike; what is no base64 is none."""
    found = []
    for body in _BLOCK.findall(text):
        try:
            data = base64.b64decode("".join(body.split()), validate=True)
        except (binascii.Error, ValueError):
            continue
        if data:
            found.append(_written(data))
    return list(dict.fromkeys(found))


def fingerprint(certificate: str) -> str:
    """SHA-256 of one of `certificates`, as openssl tells it, in small letters without colons."""
    return hashlib.sha256(base64.b64decode("".join(certificate.split("\n")[1:-2]))).hexdigest()


def fingerprints(text: str) -> List[str]:
    """Those of all certificates of a text."""
    return [fingerprint(one) for one in certificates(text)]


def _written(data: bytes) -> str:
    lines = textwrap.wrap(base64.b64encode(data).decode(), 64)
    return "\n".join(["-----BEGIN CERTIFICATE-----", *lines, "-----END CERTIFICATE-----", ""])
