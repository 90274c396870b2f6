"""What is sent to a host to run a module of ours: the module, what it imports, and its arguments."""

from __future__ import annotations

import hashlib
import json
import re
import zlib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[3]
MODULES = ROOT / "boxwright/ansible/modules"
#: Where modules on hosts find what they import from ansible.module_utils, as ansible.cfg has it.
UTILS = (ROOT / "boxwright/ansible/module_utils", ROOT / "boxwright/facts/parsers")
HOST = Path(__file__).with_name("host")
PACKAGE = "ansible.module_utils"
BASIC = f"{PACKAGE}.basic"
_IMPORT = re.compile(
    r"^\s*(?:from ansible\.module_utils import (\([^)]*\)|[^\n]*)"
    r"|from ansible\.module_utils\.(\w+) import|import ansible\.module_utils\.(\w+))",
    re.MULTILINE,
)


class Payload(NamedTuple):
    """key: of the sources, by name and contents. packed: all of them, compressed."""

    module: str
    key: str
    packed: bytes


def place(module: str) -> Path:
    """The file of a module of ours."""
    return MODULES / f"{module}.py"


def known(module: str) -> bool:
    """Whether it is a module of ours."""
    return module.isidentifier() and place(module).is_file()


@cache
def of(module: str) -> Payload:
    """The payload of a module of ours."""
    sources = {module: place(module).read_text(encoding="utf-8")}
    due = list(imported(sources[module]))
    while due:
        name = due.pop()
        full = f"{PACKAGE}.{name}"
        if full not in sources:
            sources[full] = _source(name)
            due += imported(sources[full])
    text = json.dumps(sources, sort_keys=True).encode()
    return Payload(module, f"{module}-{hashlib.sha256(text).hexdigest()[:16]}", zlib.compress(text, 6))


def imported(source: str) -> Iterator[str]:
    """The names below ansible.module_utils that a source imports."""
    for several, one, other in _IMPORT.findall(source):
        if several:
            names = re.sub(r"#[^\n]*|[()]", "", several).split(",")
            yield from (name.split()[0] for name in names if name.strip())
        else:
            yield one or other


def _source(name: str) -> str:
    if f"{PACKAGE}.{name}" == BASIC:
        return (HOST / "basic.py").read_text(encoding="utf-8")
    found = next(path for folder in UTILS if (path := folder / f"{name}.py").is_file())
    return found.read_text(encoding="utf-8")


@cache
def entry() -> bytes:
    """The program that runs a payload."""
    return (HOST / "entry.py").read_bytes()


def words() -> list[str]:
    """The arguments of a host's Python: it takes the program, then what that reads, from its input."""
    start = "import sys; exec(sys.stdin.buffer.read(int(sys.argv[1])))"
    return ["-I", "-c", start, str(len(entry()))]


def sent(module: str, arguments: Mapping[str, Any], *, check: bool) -> bytes:
    """All that a host gets on standard input to run a module."""
    found = of(module)
    head = {"module": module, "key": found.key, "arguments": arguments, "check": check}
    return entry() + json.dumps(head).encode() + b"\n" + found.packed
