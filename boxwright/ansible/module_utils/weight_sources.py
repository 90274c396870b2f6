"""Where the bytes of a revision come from: the hub (by its client), other boxes, mirrors, directories."""

from __future__ import annotations

import errno
import json
import os
import stat
import threading
import time
from typing import Any, Callable, Dict, List, NamedTuple, Optional
from urllib.parse import quote, unquote, urlsplit

from ansible.module_utils import modelscope_lookup, s3_signature, worker
from ansible.module_utils.http_ranges import Address, FetchError, Lines
from ansible.module_utils.s3_signature import Keys

Sink = Callable[[memoryview], None]
#: Seconds that the official client may take for one answer beside what the hub asks to wait.
ANSWER_S = 120
#: Seconds for the client to end.
CLOSE_S = 25


class Source:
    """A place of files. name: for messages; last: none comes after it: its refusal is final."""

    name = ""
    last = False

    def read(self, path: str, first: int, end: int, size: int, sink: Sink) -> None:
        """Hand bytes of a file to `sink`. Raises FetchError; `later` when they are still to come."""
        raise NotImplementedError

    def close(self) -> None:
        """Give up whatever is under way."""


class Client(NamedTuple):
    """The official client: its interpreter, made when it is first needed, the program, its environment."""

    python: Callable[[], str]
    script: str
    environment: Dict[str, str]
    token: str


class HubSource(Source):
    """The hub: its official client says where a file lies, and is asked again when that address expires."""

    last = True

    def __init__(
        self, endpoint: str, repo: str, revision: str, client: Client, lines: Lines, workers: int
    ) -> None:
        self.name = urlsplit(endpoint).netloc.rpartition("@")[2] or endpoint
        self.endpoint = endpoint
        self.job = {"endpoint": endpoint, "repo": repo, "revision": revision, "workers": workers}
        self.waiting: Callable[[float], None] = lambda seconds: None
        self._client, self._lines = client, lines
        self._lock = threading.Condition()
        self._worker: Optional[worker.Worker] = None
        self._thread: Optional[threading.Thread] = None
        self._asked: Dict[str, int] = {}
        self._found: Dict[str, Any] = {}
        self._over: Optional[BaseException] = None
        self._patience = 0.0

    def read(self, path: str, first: int, end: int, size: int, sink: Sink) -> None:
        """Read where the client says that the file lies."""
        address = self._address(path, size)
        try:
            self._lines.read(address, first, end, size, sink)
        except FetchError as error:
            # A signed address has its hour; a hub's own refusal stays one.
            if error.kind not in ("forbidden", "unauthorized", "not-found") or address.secret:
                raise
            with self._lock:
                if self._asked.get(path, 0) > 20:
                    raise
                if (self._found.get(path) or (None,))[0] == address:
                    del self._found[path]
            self._lines.read(self._address(path, size), first, end, size, sink)

    def close(self) -> None:
        """End the client and every connection."""
        self._lines.abort()
        running = self._worker
        self._end(FetchError("given-up"))
        if running is not None:
            running.stop()
        if self._thread is not None:
            self._thread.join(CLOSE_S)

    def _address(self, path: str, size: int) -> Address:
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._live, daemon=True)
                self._thread.start()
            if path not in self._found:
                self._asked[path] = self._asked.get(path, 0) + 1
                self._found[path] = None
                self._ask([path])
            while self._found.get(path) is None and self._over is None:
                if not self._lock.wait(ANSWER_S + self._patience):
                    raise FetchError("timeout", "the hub's client does not answer")
            found = self._found.get(path)
            if found is None:
                raise self._over or FetchError("given-up")
            if isinstance(found, FetchError):
                self._found.pop(path, None)
                raise found
            address, told = found
            if told is not None and told != size:
                raise FetchError("wrong-size", "%d of %d" % (told, size))
            return address

    def _ask(self, paths: List[str]) -> None:
        if self._worker is not None:
            self._worker.tell(json.dumps({"files": paths}))

    def _live(self) -> None:
        """Start the client and hear it out, in one thread: the client ends with the thread that began it."""
        try:
            argv = [self._client.python(), "-I", self._client.script]
            running = worker.Worker(argv, self._client.environment, self._client.token)
        except BaseException as error:
            self._end(error)
            return
        with running:
            running.tell(json.dumps(self.job))
            with self._lock:
                self._worker = running
                self._ask([path for path, found in self._found.items() if found is None])
            for event in running.events():
                if event is not None:
                    with self._lock:
                        self._hear(event)
                        self._lock.notify_all()
                if self._over is not None:
                    break
            running.end(0 if self._over else 5)
            self._end(FetchError("unexpected", running.complaint or "the hub's client ended"))

    def _end(self, error: BaseException) -> None:
        with self._lock:
            self._over = self._over or error
            self._worker = None
            self._lock.notify_all()

    def _hear(self, event: Dict[str, Any]) -> None:
        if event["event"] == "waiting":
            self._patience += event["seconds"]
            self.waiting(event["seconds"])
        elif event["event"] == "file":
            # The token is for the hub alone: an address elsewhere carries its own permission.
            mine = urlsplit(event["url"])[:2] == urlsplit(self.endpoint)[:2]
            secret = {"Authorization": "Bearer " + self._client.token} if mine and self._client.token else {}
            self._found[event["path"]] = (Address(event["url"], secret), event["size"])
        elif event["event"] == "error":
            error = FetchError(event["kind"], str(event.get("detail", "")), event.get("status"))
            error.code = event.get("code", "")
            told = str(event.get("retry_after") or "")
            error.wait = float(told) if told.isdigit() else None
            if event.get("path"):
                error.path = event["path"]
                self._found[event["path"]] = error
            else:
                self._over = error


class WebSource(Source):
    """A revision's files below one address: a mirror, a bucket, another box. secret: headers for it alone."""

    def __init__(
        self, name: str, base: str, lines: Lines, secret: Dict[str, str], last: bool = False
    ) -> None:
        self.name, self.last = name, last
        self._base, self._lines, self._secret = base.rstrip("/"), lines, secret

    def read(self, path: str, first: int, end: int, size: int, sink: Sink) -> None:
        """Read a range of the file."""
        address = Address("%s/%s" % (self._base, quote(path)), self._secret)
        self._lines.read(address, first, end, size, sink)

    def close(self) -> None:
        """End every connection."""
        self._lines.abort()


class BucketSource(Source):
    """A revision's files in a bucket that asks for keys; each request has a signature of its own."""

    def __init__(self, name: str, base: str, lines: Lines, keys: Keys) -> None:
        self.name, self._lines, self._keys = name, lines, keys
        # As it is signed: each part quoted once.
        parts = urlsplit(base)
        self._base = "%s://%s%s" % (parts.scheme, parts.netloc, quote(unquote(parts.path)))

    def read(self, path: str, first: int, end: int, size: int, sink: Sink) -> None:
        """Read a range of the file."""
        url = "%s/%s" % (self._base, quote(path))
        now = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        self._lines.read(Address(url, s3_signature.headers(self._keys, url, now, {})), first, end, size, sink)

    def close(self) -> None:
        """End every connection."""
        self._lines.abort()


class ModelScopeSource(Source):
    """A ModelScope hub, whose files have addresses that need no client; it sends on to its storage."""

    last = True

    def __init__(self, endpoint: str, repo: str, revision: str, token: str, lines: Lines) -> None:
        self.name = urlsplit(endpoint).netloc.rpartition("@")[2] or endpoint
        self._endpoint, self._repo, self._revision, self._lines = endpoint, repo, revision, lines
        # As the official client does: older parts of the hub read the one, newer parts the other.
        told = {"Authorization": "Bearer " + token, "Cookie": "m_session_id=" + quote(token)}
        self._secret = told if token else {}

    def read(self, path: str, first: int, end: int, size: int, sink: Sink) -> None:
        """Read a range of the file."""
        place = modelscope_lookup.place(self._repo, self._revision, path)
        self._lines.read(Address(self._endpoint + place, self._secret), first, end, size, sink)

    def close(self) -> None:
        """End every connection."""
        self._lines.abort()


class PeerSource(Source):
    """Another box, at whichever of its addresses answers. place: the revision, `org--name/commit`."""

    def __init__(
        self, name: str, addresses: List[str], port: int, key: str, place: str, lines: Lines
    ) -> None:
        self.name = name
        secret = {"Authorization": "Bearer " + key}
        hosts = ["[%s]" % address if ":" in address else address for address in addresses]
        self._lines = lines
        self._ways = [
            WebSource(name, "http://%s:%d/%s" % (host, port, place), lines, secret) for host in hosts
        ]
        self._way: Optional[WebSource] = None

    def read(self, path: str, first: int, end: int, size: int, sink: Sink) -> None:
        """Read a range of the file."""
        if self._way is not None:
            self._way.read(path, first, end, size, sink)
            return
        trouble = FetchError("unreachable", "it tells no address")
        for way in self._ways:
            try:
                way.read(path, first, end, size, sink)
                self._way = way
                return
            except FetchError as error:
                if error.kind not in ("unreachable", "timeout", "dns"):
                    self._way = way
                    raise
                trouble = error
        raise trouble

    def close(self) -> None:
        """End every connection."""
        self._lines.abort()


class DirectorySource(Source):
    """A revision's files in a directory of the host, perhaps on a disk that was carried there."""

    def __init__(self, directory: str, last: bool = False) -> None:
        self.name, self.last, self._directory = directory, last, directory

    def read(self, path: str, first: int, end: int, size: int, sink: Sink) -> None:
        """Copy a range of the file."""
        block = memoryview(bytearray(1024 * 1024))
        try:
            with open(os.path.join(self._directory, path), "rb", buffering=0, opener=_at_once) as stream:
                state = os.fstat(stream.fileno())
                if not stat.S_ISREG(state.st_mode):
                    raise FetchError("unreadable", "%s is no file" % path)
                if state.st_size != size:
                    raise FetchError("wrong-size", "%d of %d" % (state.st_size, size))
                stream.seek(first)
                left = end - first
                while left:
                    count = stream.readinto(block[: min(left, len(block))])
                    if not count:
                        raise FetchError("cut", "%s ended early" % path)
                    sink(block[:count])
                    left -= count
        except OSError as error:
            kind = "not-found" if error.errno in (errno.ENOENT, errno.ENOTDIR) else "unreadable"
            raise FetchError(kind, "%s: %s" % (error.filename or path, error.strerror)) from error


def _at_once(path: str, flags: int) -> int:
    """Open a file, and wait for nobody: a pipe by its name would wait for who writes into it."""
    return os.open(path, flags | os.O_NONBLOCK)


def names(sources: List[Source]) -> str:
    """The places, for a message."""
    return ", ".join(source.name for source in sources)
