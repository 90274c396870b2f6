"""The public key that a package source is signed with: fetched, and its fingerprints checked."""

from __future__ import annotations

from typing import List, Optional

from ansible.module_utils.openpgp import KeyringError, dearmor, fingerprints, normal
from ansible.module_utils.web import Reader, WebError

#: Largest keyring that is taken, in bytes; the vendors' are a few KiB.
KEY_LIMIT = 4 << 20
HINTS = {
    "dns": " (the host's /etc/resolv.conf, or a proxy that has to be set)",
    "tls": " (a private CA belongs into box_ca, or on the host into %s; a wrong clock has the same effect)",
    "not-found": " (wrong address, or a distribution that the vendor does not serve)",
}


class SourceError(Exception):
    """The source cannot be made true; the text says why. Nothing was left changed."""


def fetched(url: str, proxy: Optional[str], wanted: List[str], authorities: str) -> bytes:
    """The key at `url`, as `checked`. authorities: where a private CA belongs on this host."""
    try:
        answer = Reader(timeout=30, deadline=60, proxy=proxy or "").get(url, limit=KEY_LIMIT)
    except WebError as error:
        hint = HINTS.get(error.kind, "").replace("%s", authorities)
        raise SourceError("the signing key %s cannot be fetched: %s%s" % (url, error, hint)) from None
    return checked(answer.body, wanted, url)


def checked(data: bytes, wanted: List[str], where: str) -> bytes:
    """The binary keyring, every primary key of it among the wanted ones. Raises SourceError."""
    try:
        keyring: bytes = dearmor(data)
        found = fingerprints(keyring)
    except KeyringError as error:
        raise SourceError("%s is no usable signing key: %s" % (where, error)) from None
    allowed = {normal(one) for one in wanted}
    strange = [one for one in found if allowed and one not in allowed]
    if strange:
        raise SourceError(
            "the key at %s is not the expected one: it has the fingerprint %s, expected was %s. If the "
            "vendor changed its key, take the new fingerprint from the vendor's documentation"
            % (where, ", ".join(strange), " or ".join(sorted(allowed)))
        )
    return keyring


def shown(path: str, data: bytes) -> str:
    """A file of a source for a person; a keyring is shown as its fingerprints."""
    if not data or not path.endswith((".gpg", ".asc")):
        return data.decode("utf-8", "replace")
    try:
        return "\n".join(fingerprints(dearmor(data))) + "\n"
    except KeyringError as error:
        return "unusable: %s\n" % error
