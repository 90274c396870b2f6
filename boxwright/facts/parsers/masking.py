"""Taking secrets out of texts that are shown, kept or sent on."""

from __future__ import annotations

import re
from typing import Iterable

MASK = "***"
#: Shortest secret that is looked for literally; a shorter one would blank out half of a log.
SHORTEST = 6
_TOKENS = re.compile(
    r"\b(?:hf_[A-Za-z0-9]{8,200}|sk-[A-Za-z0-9_-]{8,200}|gh[pousr]_[A-Za-z0-9]{16,200}"
    r"|github_pat_[A-Za-z0-9_]{16,200}|AKIA[A-Z0-9]{12,40}|ms-[0-9a-f]{8}-[0-9a-f-]{20,40})"
)
_NAMED = re.compile(
    r"(?i)((?:\bauthorization|bearer|password|passwd|secret|[\w-]{0,40}api[-_]?key|(?<![a-z])(?:hf_)?token)"
    r"[\"']?\s{0,3}[:= ]\s{0,3}\[?[\"']?(?:Bearer\s{1,3}|Basic\s{1,3})?)([^\s\"',}\]&<>]{6,400})"
)
_IN_URL = re.compile(r"(\b[a-zA-Z][a-zA-Z0-9+.-]{1,20}://)[^\s/@:]{0,100}:[^\s/@]{1,200}@")
#: Values after a secret's name that are none: words that an error says about it.
_PLAIN = re.compile(
    r"(?i)^(?:required|invalid|missing|expired|provided|is|was|has|not|none|null|true|false|file)\b"
)


def mask(text: str, secrets: Iterable[str] = ()) -> str:
    """The text with tokens, keys, passwords and the given secrets replaced by `***`."""
    for secret in secrets:
        if len(secret) >= SHORTEST:
            text = text.replace(secret, MASK)
    text = _TOKENS.sub(MASK, text)
    text = _IN_URL.sub(r"\g<1>" + MASK + "@", text)
    return _NAMED.sub(_hide, text)


def _hide(found: "re.Match[str]") -> str:
    value = found.group(2)
    return found.group(0) if _PLAIN.match(value) else found.group(1) + MASK
