"""Where a lab keeps what it knows: the directory .lab of the checkout, its state file and its locks."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from boxwright.errors import UserError

#: The label that everything of a lab carries in the engine; its value is the lab's id.
LABEL = "boxwright.lab"
#: What a label boxwright.lab.role can say.
ROLE_HOST, ROLE_DEPOT = "host", "depot"
LABEL_ROLE, LABEL_NAME, LABEL_RIG, LABEL_SUITE, LABEL_RECIPE = (
    f"{LABEL}.{word}" for word in ("role", "name", "rig", "suite", "recipe")
)
STATE_VERSION = 1

Report = Callable[[str], None]


@dataclass(frozen=True)
class Lab:
    """One lab: a checkout has one. root: the checkout; cache: shared by all checkouts of the user."""

    root: Path
    cache: Path

    @property
    def id(self) -> str:
        """Six hex digits made from the checkout's path."""
        return hashlib.sha256(str(self.root).encode()).hexdigest()[:6]

    @property
    def directory(self) -> Path:
        """The directory with the key, the ssh configuration and the state: .lab in the checkout."""
        return self.root / ".lab"

    @property
    def state_file(self) -> Path:
        """The file with subnet, ports and hosts."""
        return self.directory / "state.json"

    @property
    def network(self) -> str:
        """The name of the lab's network in the engine."""
        return f"bw-{self.id}-net"

    def container(self, name: str) -> str:
        """The engine's name of the host (or depot) called `name`."""
        return f"bw-{self.id}-{name}"

    def labels(self, **extra: str) -> dict[str, str]:
        """The labels of something that belongs to this lab."""
        return {LABEL: self.id} | {f"{LABEL}.{key}": value for key, value in extra.items()}

    @classmethod
    def here(cls) -> Lab:
        """The lab of this checkout, with the user's cache (XDG_CACHE_HOME or ~/.cache)."""
        base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
        return cls(root=Path(__file__).resolve().parents[2], cache=Path(base) / "boxwright" / "lab")


@dataclass
class HostState:
    """What is kept of one host. address: its IPv4 address in the lab's network."""

    rig: str
    suite: str
    address: str


@dataclass
class State:
    """What a lab remembers between commands.

    subnet: "a.b.c.0/24"; ports: the ports on 127.0.0.1 at which the depot's services are published, by name.
    """

    subnet: str = ""
    depot_address: str = ""
    ports: dict[str, int] = field(default_factory=dict)
    hosts: dict[str, HostState] = field(default_factory=dict)

    @classmethod
    def load(cls, lab: Lab) -> State:
        """Read the state; an empty one where there is none. Raises UserError for a damaged file."""
        try:
            values = json.loads(lab.state_file.read_text(encoding="utf-8"))
            if values["version"] != STATE_VERSION:
                raise ValueError(f"version {values['version']} is not {STATE_VERSION}")
            return cls(
                subnet=values["subnet"],
                depot_address=values["depot_address"],
                ports={name: int(port) for name, port in values["ports"].items()},
                hosts={name: HostState(**host) for name, host in values["hosts"].items()},
            )
        except FileNotFoundError:
            return cls()
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise UserError(
                "the lab's state cannot be read",
                where=str(lab.state_file),
                why=str(error),
                ways_out=("remove that file: the next `up` writes it from what runs",),
            ) from error

    def save(self, lab: Lab) -> None:
        """Write the state whole: a reader never sees half of it."""
        values: dict[str, Any] = {"version": STATE_VERSION, "id": lab.id, **asdict(self)}
        write_atomically(lab.state_file, json.dumps(values, indent=2, sort_keys=True) + "\n")


def write_atomically(path: Path, text: str, mode: int = 0o644) -> None:
    """Replace a file whole: written beside it, then renamed over it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(text, encoding="utf-8")
    temporary.chmod(mode)
    temporary.replace(path)


@contextmanager
def locked(path: Path, report: Report, what: str) -> Iterator[None]:
    """Hold the lock file `path`; say once that another command is waited for, which does `what`."""
    said = False
    while True:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w") as handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if not said:
                    report(f"lab: waiting for another command to finish {what}")
                    said = True
                fcntl.flock(handle, fcntl.LOCK_EX)
            # Whoever held it may have removed the directory: others look for the lock on the file there now.
            if path.exists() and path.stat().st_ino == os.fstat(handle.fileno()).st_ino:
                yield
                return


class Stopwatch:
    """Seconds since it was made, for lines like "made in 17 s"."""

    def __init__(self) -> None:
        self.start = time.monotonic()

    def __str__(self) -> str:
        return f"{time.monotonic() - self.start:.0f} s"
