"""Facts that were recorded with `invoke facts --json`, for a plan without a connection."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from boxwright.errors import EXIT_BAD_INPUT, UserError
from boxwright.facts import HostFacts
from boxwright.facts.model import FORMAT
from boxwright.texts import printable


def facts_of(path: str, names: Sequence[str]) -> dict[str, HostFacts]:
    """The facts of these hosts in a file that `invoke facts --json` gave.

    Raises UserError for a file that is none, of another format, or without one of the hosts.
    """
    documents = _documents(path)
    return {name: _facts(path, name, documents) for name in names}


def facts_of_one(path: str) -> HostFacts:
    """The facts of the one host in a file that `invoke facts --json` gave, whatever its name was.

    Raises UserError for a file that is none, of another format, or of several hosts.
    """
    documents = _documents(path)
    if len(documents) > 1:
        raise _refused(path, names=(), what=f"holds the facts of {len(documents)} hosts, not of one")
    return _facts(path, str(documents[0].get("host")), documents)


def _documents(path: str) -> list[Mapping[str, Any]]:
    """Every host's facts in the file, unread."""
    try:
        found = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise _refused(path, names=(), what=f"cannot be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise _refused(path, names=(), what=f"is no JSON: {error}") from error
    one = isinstance(found, dict) and "host" in found and "os" in found
    documents = [found] if one else list(found.values()) if isinstance(found, dict) else []
    if not documents or not all(
        isinstance(each, dict) and ("os" in each or each.get("failure")) for each in documents
    ):
        why = "an error that a verb told" if isinstance(found, dict) and "error" in found else None
        raise _refused(path, names=(), what="is not what `invoke facts --json` prints", why=why)
    return documents


def _facts(path: str, name: str, documents: Sequence[Mapping[str, Any]]) -> HostFacts:
    document = next((one for one in documents if one.get("host") == name), None)
    if document is not None:
        # Of several boxes each says whether it could be asked.
        document = {key: value for key, value in document.items() if key != "failure"}
    if document is None:
        read = [one for one in documents if "os" in one]
        hosts = (
            ", ".join(printable(str(one.get("host") or "a host without a name")) for one in read) or "no host"
        )
        raise _refused(path, (name,), what=f"holds the facts of {hosts}, not of {name}")
    made = document.get("format", 1)
    if made != FORMAT:
        age = "a newer" if isinstance(made, int) and made > FORMAT else "an older"
        why = f"it has format {printable(str(made))}, and this one reads format {FORMAT}"
        raise _refused(path, (name,), what=f"was recorded by {age} Boxwright", why=why)
    try:
        return HostFacts.from_json(document)
    except ValueError as error:
        raise _refused(path, (name,), what="holds facts that make no sense", why=str(error)) from error


def _refused(path: str, names: Sequence[str], what: str, why: str | None = None) -> UserError:
    host = names[0] if names else "NAME"
    return UserError(
        what,
        where=printable(path) or "--facts",
        why=why,
        status=EXIT_BAD_INPUT,
        ways_out=(f"record them anew: ./invoke facts --host {host} --json > facts.json",),
    )
