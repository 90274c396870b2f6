"""Runs one module of ours on a host, from what the controller sends on standard input.

That is a line of JSON (module, key, check, arguments), then the sources, compressed. What they are compiled
to is kept until the next boot, by their key: compiling is most of what a short module costs.
"""

from __future__ import annotations

import json
import marshal
import os
import sys
import types
import zlib
from collections.abc import Callable
from importlib.machinery import ModuleSpec

#: Where root keeps compiled modules: gone with the next boot, and nobody else's to write.
KEPT = "/run/boxwright-code"
LEAST = (3, 9)
#: Whose modules are sent.
PACKAGES = ("ansible", "ansible.module_utils")

if sys.version_info < LEAST:
    print(json.dumps({"failed": True, "msg": "Python %d.%d or newer is needed" % LEAST}))
    sys.exit(1)

Code = dict[str, types.CodeType]
Texts = Callable[[], dict[str, str]]


class Sources:
    """Finds modules among those that were sent. code: by name; texts: their sources, rarely asked for."""

    def __init__(self, code: Code, texts: Texts) -> None:
        self.code, self.texts = code, texts

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Where a module comes from: here, or elsewhere."""
        if name in PACKAGES:
            return ModuleSpec(name, self, is_package=True)  # type: ignore[arg-type]
        if name in self.code:
            return ModuleSpec(name, self, origin=origin(name))  # type: ignore[arg-type]
        return None

    def create_module(self, spec: ModuleSpec) -> None:
        """As Python makes modules."""

    def exec_module(self, module: types.ModuleType) -> None:
        """Run a module's code; the packages have none."""
        if module.__name__ in self.code:
            exec(self.code[module.__name__], module.__dict__)

    def get_source(self, name: str) -> str:
        """The text of a module."""
        return self.texts()[name]


def origin(name: str) -> str:
    """What a traceback calls the file of a module."""
    return "boxwright:" + name


def compiled(key: str, texts: Texts) -> Code:
    """All modules that were sent, as code: kept from an earlier call of this boot, or made now."""
    path = os.path.join(KEPT, "%s-%s" % (key, sys.implementation.cache_tag))
    keeps = os.geteuid() == 0
    try:
        if keeps:
            with open(path, "rb") as stream:
                kept: Code = marshal.load(stream)
                return kept
    except (OSError, EOFError, ValueError, TypeError):
        pass
    code: Code = {name: compile(text, origin(name), "exec") for name, text in texts().items()}
    try:
        if keeps:
            keep(path, marshal.dumps(code))
    except OSError:
        pass  # full, or nobody's to write: it is compiled anew the next time
    return code


def keep(path: str, content: bytes) -> None:
    """Leave one file for each module: a new version takes the place of the one before. Raises OSError."""
    folder, name = os.path.split(path)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    state = os.lstat(folder)
    if state.st_uid != 0 or state.st_mode & 0o170077 != 0o040000:
        raise OSError("not root's own directory: %s" % folder)
    new = "%s.%d" % (path, os.getpid())
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
        stream.write(content)
    os.rename(new, path)
    for other in os.listdir(folder):
        if other != name and other.partition("-")[0] == name.partition("-")[0]:
            os.unlink(os.path.join(folder, other))


def main() -> None:
    """Run it. What is printed is its result, whatever became of it."""
    head = json.loads(sys.stdin.buffer.readline().decode("utf-8"))
    packed, unpacked = sys.stdin.buffer.read(), dict[str, str]()
    name = head["module"]

    def texts() -> dict[str, str]:
        if not unpacked:
            unpacked.update(json.loads(zlib.decompress(packed).decode("utf-8")))
        return unpacked

    try:
        code = compiled(head["key"], texts)
        sys.meta_path.insert(0, Sources(code, texts))
        from ansible.module_utils import basic

        basic.given = head
        module = types.ModuleType("__main__")
        sys.modules["__main__"] = module
        exec(code[name], module.__dict__)
    except Exception as error:
        import traceback

        told = "%s broke off: %s: %s" % (name, type(error).__name__, error)
        print(json.dumps({"failed": True, "msg": told, "exception": traceback.format_exc()}))
        sys.exit(1)


main()
