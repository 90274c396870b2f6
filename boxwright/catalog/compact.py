"""Turn a full manifest of vLLM's options by release into the catalog's compact table.

    python -m boxwright.catalog.compact MANIFEST > boxwright/catalog/data/vllm.json

The manifest is read from each release's real argument parser: per option the definition from a release on
(`since`), or that it is gone (`absent`). The table drops what can be derived and keeps one entry a line, so
that a new release is a small difference to review.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

#: Parts of the manifest that say only in which releases a name is known.
NAMES = (
    "attention_backends",
    "speculative_methods",
    "tool_parsers",
    "reasoning_parsers",
    "quantization",
    "env_vars",
)


def compact(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The compact table of a manifest."""
    table: dict[str, Any] = {"source": str(manifest["about"]), "releases": list(manifest["versions"])}
    table["options"] = {
        name.removeprefix("--"): [_form(form) for form in option["history"]]
        for name, option in sorted(manifest["flags"].items())
        if name.startswith("--")
    }
    for part in NAMES:
        table[part] = dict(sorted(manifest[part].items()))
    return table


def _form(form: Mapping[str, Any]) -> dict[str, Any]:
    """One definition, without what says nothing (a default of null, one argument)."""
    return {
        key: value for key, value in form.items() if value is not None and not (key == "nargs" and value == 1)
    }


def lines(table: Mapping[str, Any]) -> Iterator[str]:
    """The table as JSON with one entry a line."""
    yield "{"
    parts = list(table.items())
    for place, (part, value) in enumerate(parts):
        comma = "," if place + 1 < len(parts) else ""
        if not isinstance(value, Mapping):
            yield f'"{part}":{_dump(value)}{comma}'
            continue
        yield f'"{part}":{{'
        entries = list(value.items())
        for n, (name, entry) in enumerate(entries):
            yield f"{_dump(name)}:{_dump(entry)}{',' if n + 1 < len(entries) else ''}"
        yield f"}}{comma}"
    yield "}"


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def main(arguments: list[str]) -> int:
    """The command: the manifest's path in, the table on standard output."""
    if len(arguments) != 1:
        sys.stderr.write("usage: python -m boxwright.catalog.compact MANIFEST\n")
        return 2
    sys.stdout.writelines(f"{line}\n" for line in lines(compact(json.loads(Path(arguments[0]).read_text()))))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
