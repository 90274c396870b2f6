"""What looks like a secret: names that say so, and values in the forms that services give their tokens."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

#: Names of variables that hold secrets (`HF_TOKEN`, `AWS_SECRET_ACCESS_KEY`).
_NAME = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS)$")
#: Forms of tokens: Hugging Face, OpenAI-like keys, GitHub, GitLab, Slack, AWS, JWT, private keys, a URL's
#: password.
_VALUE = re.compile(
    r"\bhf_[A-Za-z0-9]{16,}|\bsk-[A-Za-z0-9_-]{16,}|\bgh[pousr]_[A-Za-z0-9]{20,}|\bgithub_pat_\w{20,}"
    r"|\bglpat-[\w-]{16,}|\bxox[abprs]-[\w-]{10,}|\bAKIA[0-9A-Z]{16}\b|-----BEGIN [A-Z ]*PRIVATE KEY"
    r"|\beyJ[\w-]{10,}\.[\w-]{10,}\.|\bBearer\s+\S{8,}|://[^/\s:@]+:[^/\s@]+@"
)


def secret_name(name: str) -> bool:
    """Whether a variable of this name holds a secret."""
    return bool(_NAME.search(name.upper()))


def secret_value(value: object) -> bool:
    """Whether a secret stands somewhere in a value."""
    return any(_VALUE.search(text) for text in _texts(value))


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield str(key)
            yield from _texts(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _texts(item)
