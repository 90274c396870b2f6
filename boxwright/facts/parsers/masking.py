"""Taking secrets out of texts that are shown, kept or sent on."""

from __future__ import annotations

import json
import re
from typing import Iterable, Set
from urllib.parse import quote

MASK = "***"
#: Shortest secret that is looked for literally; a shorter one would blank out half of a log.
SHORTEST = 6
_TOKENS = re.compile(
    r"\b(?:hf_[A-Za-z0-9]{8,200}|sk-[A-Za-z0-9_-]{8,200}|gh[pousr]_[A-Za-z0-9]{16,200}"
    r"|github_pat_[A-Za-z0-9_]{16,200}|AKIA[A-Z0-9]{12,40}|ms-[0-9a-f]{8}-[0-9a-f-]{20,40})"
)
_VALUE = r"((?:[^\s\"',}\]&<>\\]|\\(?![\"'])){6,400})"
#: A quote, also one of a text within a text.
_QUOTE = r"(?:\\{0,4}[\"'])"
_NAMED = re.compile(
    r"(?i)((?:\bauthorization|bearer|password|passwd|secret|[\w-]{0,40}api[-_]?key|(?<![a-z])(?:hf_)?token)"
    + (_QUOTE + r"?\s{0,3}[:= ]\s{0,3}\[?" + _QUOTE + r"?(?:Bearer\s{1,3}|Basic\s{1,3})?)")
    + _VALUE
)
#: An option and its value as two words of an argument list.
_OPTION = re.compile(
    r"(?i)(?<![\w-])(--[\w-]{0,40}(?:key|password|token|secret)"
    + _QUOTE
    + r",\s{0,3}"
    + _QUOTE
    + r")"
    + _VALUE
)
_IN_URL = re.compile(r"(\b[a-zA-Z][a-zA-Z0-9+.-]{1,20}://)[^\s/@:]{0,100}:[^\s/@]{1,200}@")
#: Values after a secret's name that are none: words that an error says about it.
_PLAIN = re.compile(
    r"(?i)^(?:required|invalid|missing|expired|provided|is|was|has|not|none|null|true|false|file)\b"
)


def mask(text: str, secrets: Iterable[str] = ()) -> str:
    """The text with tokens, keys, passwords and the given secrets replaced by `***`."""
    known = {one for secret in secrets if len(secret) >= SHORTEST for one in _spellings(secret)}
    # The longest first: of one that holds another nothing is to be left.
    for one in sorted(known, key=len, reverse=True):
        text = text.replace(one, MASK)
    text = _TOKENS.sub(MASK, text)
    text = _IN_URL.sub(r"\g<1>" + MASK + "@", text)
    return _OPTION.sub(_hide, _NAMED.sub(_hide, text))


def _spellings(secret: str) -> Set[str]:
    """A secret as it is, and as it stands within a JSON text, one within another, and an address."""
    inner = json.dumps(secret)[1:-1]
    plain = json.dumps(secret, ensure_ascii=False)[1:-1]
    address = quote(secret, safe="", errors="replace")
    return {secret, inner, plain, json.dumps(inner)[1:-1], json.dumps(plain)[1:-1], address}


def _hide(found: "re.Match[str]") -> str:
    value = found.group(2)
    return found.group(0) if _PLAIN.match(value) else found.group(1) + MASK
