"""Fingerprints of the keys in an OpenPGP keyring, without gpg: a minimal Debian has none, only a verifier.

Formats: RFC 9580 sections 4.2 (packet headers), 5.5.4 (fingerprints), 6 (ASCII armor).
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from typing import Iterator, List, Tuple

_ARMOR_BEGIN = b"-----BEGIN PGP PUBLIC KEY BLOCK-----"
_ARMOR_END = b"-----END PGP PUBLIC KEY BLOCK-----"
_PUBLIC_KEY = 6


class KeyringError(ValueError):
    """The bytes are no OpenPGP keyring; the text says what they look like instead."""


def dearmor(data: bytes) -> bytes:
    """The binary keyring, from a binary one or from one or more armored blocks. Raises KeyringError."""
    if _ARMOR_BEGIN not in data:
        return data
    keys = b""
    for part in data.split(_ARMOR_BEGIN)[1:]:
        body, end, _ = part.partition(_ARMOR_END)
        if not end:
            raise KeyringError("the armored key ends before its END line")
        lines = [line.strip() for line in body.splitlines()]
        # Armor headers ("Version: …") end at the first empty line; "=" begins the checksum.
        payload = lines[lines.index(b"", 1) if b"" in lines[1:] else 0 :]
        try:
            keys += base64.b64decode(
                b"".join(line for line in payload if line and not line.startswith(b"=")), validate=True
            )
        except binascii.Error as error:
            raise KeyringError("the armored key is damaged: %s" % error) from None
    return keys


def armor(keyring: bytes) -> bytes:
    """The ASCII form of a binary keyring, with the checksum that rpm wants (RFC 9580 section 6.1.1)."""
    crc = 0xB704CE
    for byte in keyring:
        crc ^= byte << 16
        for _ in range(8):
            crc = (crc << 1) ^ (0x1864CFB if crc & 0x800000 else 0)
    lines = [keyring[start : start + 48] for start in range(0, len(keyring), 48)]
    body = b"".join(base64.b64encode(line) + b"\n" for line in lines)
    checksum = base64.b64encode((crc & 0xFFFFFF).to_bytes(3, "big"))
    return _ARMOR_BEGIN + b"\n\n" + body + b"=" + checksum + b"\n" + _ARMOR_END + b"\n"


def fingerprints(keyring: bytes) -> List[str]:
    """Fingerprints (upper-case hex) of the primary keys in a binary keyring. Raises KeyringError."""
    found = []
    for tag, body in _packets(keyring):
        if tag == _PUBLIC_KEY:
            found.append(_fingerprint(body))
    if not found:
        raise KeyringError("there is no public key in it")
    return found


def normal(fingerprint: str) -> str:
    """A fingerprint as people write it ("0x", spaces, lower case) in the form of `fingerprints`."""
    text = "".join(fingerprint.split()).upper().replace(":", "")
    return text[2:] if text.startswith("0X") else text


def _fingerprint(body: bytes) -> str:
    version, size = body[0], len(body)
    if version == 4:
        return hashlib.sha1(b"\x99" + size.to_bytes(2, "big") + body).hexdigest().upper()
    if version in (5, 6):
        lead = b"\x9a" if version == 5 else b"\x9b"
        return hashlib.sha256(lead + size.to_bytes(4, "big") + body).hexdigest().upper()
    raise KeyringError("it holds a key of version %d, which cannot be checked" % version)


def _packets(data: bytes) -> Iterator[Tuple[int, bytes]]:
    position = 0
    while position < len(data):
        head = data[position]
        if not head & 0x80:
            raise KeyringError(
                "it is no OpenPGP keyring (begins with %r)" % data[:16]
                if position == 0
                else "the keyring is damaged at byte %d" % position
            )
        try:
            tag, start, size = _header(data, position, head)
        except IndexError:
            raise KeyringError("the keyring is cut short") from None
        if start + size > len(data) or size == 0:
            raise KeyringError("the keyring is cut short")
        yield tag, data[start : start + size]
        position = start + size


def _header(data: bytes, position: int, head: int) -> Tuple[int, int, int]:
    """Tag, where the body starts, and its size in bytes."""
    if not head & 0x40:
        width = {0: 1, 1: 2, 2: 4}.get(head & 3)
        if width is None:
            raise KeyringError("the keyring has a packet without a length")
        start = position + 1 + width
        data[start - 1]
        return (head >> 2) & 0x0F, start, int.from_bytes(data[position + 1 : start], "big")
    tag, first = head & 0x3F, data[position + 1]
    if first < 192:
        return tag, position + 2, first
    if first < 224:
        return tag, position + 3, ((first - 192) << 8) + data[position + 2] + 192
    if first == 255:
        data[position + 5]
        return tag, position + 6, int.from_bytes(data[position + 2 : position + 6], "big")
    raise KeyringError("the keyring has a packet of unknown length")
