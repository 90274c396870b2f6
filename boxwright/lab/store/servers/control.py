"""What a server of the depot is told at run time: faults to show, and who may read which repository.

The control file is JSON and is read again whenever it changes, so that a test can break a running server and
heal it. Everything in it is optional; without the file the server is healthy and every repository is public:

    {"faults": [{"kind": "drop", "path": "*/model.safetensors", "after_bytes": 1000000, "times": 2}],
     "users": {"hf_a_token": "ann"},
     "repositories": {"org/name": {"access": "private", "allowed": ["ann"]}}}
"""

from __future__ import annotations

import dataclasses
import fnmatch
import json
import os
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

#: Kinds of faults and the fields that each needs beside `path` and `times`.
KINDS: dict[str, tuple[str, ...]] = {
    "drop": ("after_bytes",),  # the body is cut after so many bytes and the connection closed
    "rate": ("bytes_per_s",),  # bodies are sent no faster than this, each for itself
    "line": ("bytes_per_s",),  # bodies are sent no faster than this, all together
    "status": ("status",),  # this HTTP status instead of an answer; 429 may say retry_after_s
    "corrupt": ("offset",),  # the byte at this offset of the file is sent with all bits turned
    "hang": ("seconds",),  # nothing is answered for so long, then the request goes on
    "down": (),  # nothing listens: connections are refused (path and times do not apply)
}
ACCESS = ("public", "private", "gated", "disabled")


class ControlError(ValueError):
    """The control file says something that no server understands."""


@dataclass(frozen=True)
class Fault:
    """One fault. path: shell-style pattern of the request's path; times: how often it shows (None: ever)."""

    kind: str
    path: str = "*"
    times: int | None = None
    after_bytes: int = 0
    bytes_per_s: int = 0
    status: int = 0
    retry_after_s: int | None = None
    offset: int = 0
    seconds: float = 0.0

    @classmethod
    def from_json(cls, value: object) -> Fault:
        """Check and take one entry of the file's list; ControlError names what is wrong with it."""
        if not isinstance(value, Mapping) or value.get("kind") not in KINDS:
            raise ControlError(f"fault {value!r}: kind must be one of {', '.join(KINDS)}")
        known = {each.name for each in dataclasses.fields(cls)}
        for name in value:
            if name not in known:
                raise ControlError(f"fault {value!r}: no field {name!r}")
        for name in KINDS[str(value["kind"])]:
            if name not in value:
                raise ControlError(f"fault {value!r}: {name} is missing")
        return cls(**value)


@dataclass(frozen=True)
class Access:
    """Who may read a repository. allowed: names of the users who may, where it is private or gated."""

    access: str = "public"
    allowed: tuple[str, ...] = ()

    @classmethod
    def from_json(cls, value: object) -> Access:
        """Check and take one repository's entry; ControlError names what is wrong with it."""
        if not isinstance(value, Mapping) or value.get("access", "public") not in ACCESS:
            raise ControlError(f"repository {value!r}: access must be one of {', '.join(ACCESS)}")
        return cls(str(value.get("access", "public")), tuple(str(name) for name in value.get("allowed", ())))


@dataclass(frozen=True)
class Settings:
    """The content of a control file. users: from token to user name."""

    faults: tuple[Fault, ...] = ()
    users: Mapping[str, str] = field(default_factory=dict)
    repositories: Mapping[str, Access] = field(default_factory=dict)

    @classmethod
    def from_json(cls, text: str) -> Settings:
        """Parse a control file's text; ControlError says what is wrong."""
        try:
            data = json.loads(text)
        except ValueError as error:
            raise ControlError(f"not JSON: {error}") from error
        if not isinstance(data, dict):
            raise ControlError("not a JSON object")
        return cls(
            tuple(Fault.from_json(each) for each in data.get("faults", ())),
            {str(token): str(name) for token, name in data.get("users", {}).items()},
            {str(repo): Access.from_json(each) for repo, each in data.get("repositories", {}).items()},
        )

    def to_json(self) -> str:
        """The text of a control file that says this."""
        return json.dumps(dataclasses.asdict(self), indent=1, default=dict)


def write(path: Path, settings: Settings) -> None:
    """Replace the control file at once; the server follows with its next request (`down`: in 0.5 s)."""
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
        stream.write(settings.to_json())
    Path(temporary).chmod(0o644)
    Path(temporary).replace(path)


class Control:
    """The control file as a running server sees it. Thread-safe."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._stamp: tuple[int, int, int] | None = None
        self._settings = Settings()
        self._error = ""
        self._left: dict[int, int] = {}  # faults with `times`: how often each still shows, by its place

    def settings(self) -> Settings:
        """What the file says now; ControlError when it cannot be understood."""
        with self._lock:
            self._refresh()
            if self._error:
                raise ControlError(self._error)
            return self._settings

    def down(self) -> bool:
        """Whether the server is to refuse connections. A file that cannot be understood does not stop it."""
        try:
            return any(fault.kind == "down" for fault in self.settings().faults)
        except ControlError:
            return False

    def fault(
        self, kind: str, path: str, applies: Callable[[Fault], bool] = lambda fault: True
    ) -> Fault | None:
        """The first fault of this kind for a request's path that `applies`; counts it as shown."""
        with self._lock:
            self._refresh()
            for place, fault in enumerate(self._settings.faults):
                if fault.kind != kind or not fnmatch.fnmatchcase(path, fault.path) or not applies(fault):
                    continue
                if fault.times is not None:
                    if self._left[place] <= 0:
                        continue
                    self._left[place] -= 1
                return fault
        return None

    def _refresh(self) -> None:
        if self.path is None:
            return
        try:
            stat = self.path.stat()
            stamp = (stat.st_ino, stat.st_mtime_ns, stat.st_size)
            if stamp == self._stamp:
                return
            text = self.path.read_text(encoding="utf-8")
        except FileNotFoundError:
            stamp, text = None, "{}"
            if self._stamp is None and not self._error:
                return
        self._stamp = stamp
        try:
            self._settings, self._error = Settings.from_json(text), ""
        except ControlError as error:
            self._settings, self._error = Settings(), f"{self.path}: {error}"
        self._left = _counts(self._settings.faults)


def _counts(faults: Sequence[Fault]) -> dict[int, int]:
    return {place: fault.times for place, fault in enumerate(faults) if fault.times is not None}
