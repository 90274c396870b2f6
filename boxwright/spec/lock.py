"""The lock file beside an inventory: what was resolved, so that the same lock gives the same box.

`.boxwright.lock.json` holds, a host and a deployment, the commit of the weights and the digest of the image,
each with the name it was resolved from: an entry counts only as long as the declaration still says that name.
"""

from __future__ import annotations

import fcntl
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from boxwright.errors import EXIT_BAD_INPUT, UserError

FILE_NAME = ".boxwright.lock.json"
FORMAT = 1


@dataclass(frozen=True)
class Entry:
    """What was resolved for one deployment.

    model: `repo` or `repo@revision` as declared; revision: the commit, 40 hexadecimal digits. drafter,
    drafter_revision: the same of its draft model. image: as declared; image_digest: `sha256:…` of its
    manifest.
    """

    model: str | None = None
    revision: str | None = None
    image: str | None = None
    image_digest: str | None = None
    drafter: str | None = None
    drafter_revision: str | None = None

    def revision_of(self, model: str) -> str | None:
        """The locked commit, if it was resolved from this very model."""
        return self.revision if self.model == model else None

    def drafter_revision_of(self, drafter: str) -> str | None:
        """The locked commit of the draft model, if it was resolved from this very one."""
        return self.drafter_revision if self.drafter == drafter else None

    def digest_of(self, image: str) -> str | None:
        """The locked digest, if it was resolved from this very image reference."""
        return self.image_digest if self.image == image else None


@dataclass(frozen=True)
class Lock:
    """A lock file's content: host -> deployment -> Entry."""

    hosts: Mapping[str, Mapping[str, Entry]] = field(default_factory=dict)

    def entry(self, host: str, deployment: str) -> Entry:
        """What is locked for a deployment; an empty Entry when nothing is."""
        return self.hosts.get(host, {}).get(deployment, Entry())

    def with_entry(self, host: str, deployment: str, entry: Entry) -> Lock:
        """The lock with this entry in its place."""
        return Lock({**self.hosts, host: {**self.hosts.get(host, {}), deployment: entry}})

    def to_json(self) -> dict[str, object]:
        """The file's content, in a steady order: a change of one entry changes only its lines."""
        hosts = {
            host: {
                name: {key: value for key, value in asdict(entry).items() if value is not None}
                for name, entry in sorted(entries.items())
            }
            for host, entries in sorted(self.hosts.items())
        }
        return {"format": FORMAT, "hosts": hosts}


def path_of(inventory_dir: str | Path) -> Path:
    """Where the lock of an inventory lies. inventory_dir: the directory, or a file in it."""
    place = Path(inventory_dir)
    return (place if place.is_dir() else place.parent) / FILE_NAME


def read(path: Path) -> Lock:
    """The lock file's content, an empty Lock when there is none. Raises UserError when it cannot be read."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return Lock()
    except (OSError, UnicodeDecodeError) as error:
        raise _unreadable(path, None, f"{error}") from error
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        raise _unreadable(path, error.lineno, f"not JSON: {error.msg}") from error
    return _parse(path, document)


def update(
    path: Path,
    host: str,
    deployment: str,
    *,
    model: str | None = None,
    revision: str | None = None,
    image: str | None = None,
    image_digest: str | None = None,
    drafter: str | None = None,
    drafter_revision: str | None = None,
) -> Lock:
    """Record what was resolved for a deployment; gives the new content.

    The revision goes with the model that it was resolved from, the digest with its image; the pair that is
    not given stays as it was, and a model or image that changed loses what was resolved for the former one.
    Safe beside other processes that update the same file, and the file is never seen half-written. A file
    whose content would stay the same is not touched. Raises UserError when it can be neither read nor
    written.
    """
    try:
        with _alone(path.parent):
            before = read(path)
            entry = before.entry(host, deployment)
            if model is not None:
                entry = replace(entry, model=model, revision=revision or entry.revision_of(model))
            if drafter is not None:
                drafter_revision = drafter_revision or entry.drafter_revision_of(drafter)
                entry = replace(entry, drafter=drafter, drafter_revision=drafter_revision)
            if image is not None:
                entry = replace(entry, image=image, image_digest=image_digest or entry.digest_of(image))
            after = before.with_entry(host, deployment, entry)
            if after != before:
                _write(path, after)
            return after
    except OSError as error:
        raise UserError(
            f"cannot write the lock file: {error.strerror}",
            where=str(path),
            ways_out=(f"make {path.parent} writable",),
        ) from error


def _parse(path: Path, document: object) -> Lock:
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise _unreadable(path, None, f'"format" is not {FORMAT}: written by another version of Boxwright')
    hosts: dict[str, dict[str, Entry]] = {}
    names = set(Entry.__dataclass_fields__)
    for host, deployments in _mapping(path, "hosts", document.get("hosts", {})).items():
        for name, values in _mapping(path, host, deployments).items():
            entry = _mapping(path, f"{host}.{name}", values)
            if set(entry) - names or not all(isinstance(value, str) for value in entry.values()):
                raise _unreadable(path, None, f"{host}.{name}: not strings {', '.join(sorted(names))}")
            hosts.setdefault(host, {})[name] = Entry(**{key: str(value) for key, value in entry.items()})
    return Lock(hosts)


def _mapping(path: Path, what: str, value: object) -> dict[str, object]:
    if not isinstance(value, dict):
        raise _unreadable(path, None, f"{what} is no mapping")
    return value


def _unreadable(path: Path, line: int | None, why: str) -> UserError:
    return UserError(
        "the lock file cannot be used",
        where=str(path) if line is None else f"{path}:{line}",
        why=why,
        ways_out=(
            "mend it, or take it back from version control",
            "delete it: the next run resolves images and weights anew",
        ),
        status=EXIT_BAD_INPUT,
    )


@contextmanager
def _alone(directory: Path) -> Iterator[None]:
    """Hold the directory's lock, so that two runs do not lose each other's entries."""
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _write(path: Path, lock: Lock) -> None:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            json.dump(lock.to_json(), stream, indent=2, ensure_ascii=False)
            stream.write("\n")
            os.fchmod(stream.fileno(), 0o644)
            stream.flush()
            os.fsync(stream.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
