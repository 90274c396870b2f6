"""Certificates as PEM texts: each by itself, in one form, and its fingerprint."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import ssl
import textwrap
from typing import List, Optional

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


def problem(certificate: str) -> str:
    """Why TLS cannot use one of `certificates`; "" where it can."""
    try:
        _alone(certificate)
    except (ssl.SSLError, ValueError) as error:
        return str(error)
    return ""


def until(certificate: str) -> Optional[int]:
    """The end of its validity, in seconds since 1970; None where it is no authority's."""
    for one in _alone(certificate).get_ca_certs():
        return int(ssl.cert_time_to_seconds(str(one["notAfter"])))
    return None


def _alone(certificate: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=certificate)
    return context


def whole(text: str) -> bool:
    """Whether all that begins as a certificate is one of `certificates`; one that is there twice is one."""
    begun = {"".join(part.split()) for part in text.split("-----BEGIN CERTIFICATE-----")[1:]}
    found = certificates(text)
    return len(found) >= len(begun) and bool(found or not text.strip())


def fingerprint(certificate: str) -> str:
    """SHA-256 of one of `certificates`, as openssl tells it, in small letters without colons."""
    return hashlib.sha256(base64.b64decode("".join(certificate.split("\n")[1:-2]))).hexdigest()


def fingerprints(text: str) -> List[str]:
    """Those of all certificates of a text."""
    return [fingerprint(one) for one in certificates(text)]


def _written(data: bytes) -> str:
    lines = textwrap.wrap(base64.b64encode(data).decode(), 64)
    return "\n".join(["-----BEGIN CERTIFICATE-----", *lines, "-----END CERTIFICATE-----", ""])
