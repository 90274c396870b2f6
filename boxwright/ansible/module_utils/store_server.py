"""Weights of a box's store for other boxes, over HTTP, for the time of a run: what is whole, and what comes.

A server works as long as its note (a file) is there and it is asked now and then. It answers only to who has
the run's key, and only with files of revisions; one that is still being fetched is handed on as far as it is
there.
"""

from __future__ import annotations

import contextlib
import fcntl
import hmac
import json
import os
import re
import socketserver
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, List, NamedTuple, Optional, Set, Tuple
from urllib.parse import unquote, urlsplit

from ansible.module_utils import partial_file, store_manifest
from ansible.module_utils.http_ranges import LATER
from ansible.module_utils.weight_files import PathError, check_path

BLOCK = 256 * 1024
REVISION = re.compile(r"[\w.-]+--[\w.-]+/[0-9a-f]{40}")
#: Seconds after which a fetch that was announced and has not begun is given up.
GRACE_S = 180.0


class Offer(NamedTuple):
    """root: the store; key: of the run; expected: revisions that this box fetches in the same run
    (`org--name/commit`); bytes_per_s: 0 for no limit; idle_s: without a request it ends after so long.
    """

    root: str
    key: str
    expected: List[str]
    bytes_per_s: int = 0
    idle_s: float = 900.0


class Part(NamedTuple):
    """What can be sent of a file. end: up to where, from the byte that was asked for."""

    path: str
    size: int
    end: int


def holdings(root: str) -> List[str]:
    """The whole revisions of a store, as `org--name/commit`."""
    found = []
    for name in sorted(_names(root)):
        for revision in sorted(_names(os.path.join(root, name))):
            place = "%s/%s" % (name, revision)
            if REVISION.fullmatch(place) and store_manifest.load(os.path.join(root, place)):
                found.append(place)
    return found


def _names(directory: str) -> List[str]:
    try:
        return os.listdir(directory)
    except OSError:
        return []


class StoreServer(ThreadingHTTPServer):
    """The server of one offer. note: the file that it lives by."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, address: Tuple[str, int], offer: Offer, note: str) -> None:
        self.offer, self.note = offer, note
        self.began = self.asked = time.monotonic()
        self._seen: Set[str] = set()
        self._due, self._lock = 0.0, threading.Lock()
        super().__init__(address, _Handler)

    def server_bind(self) -> None:
        """Bind without http.server's look-up of this machine's name."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A box that went away is no news."""

    def work(self) -> None:
        """Serve until the note is gone, or another run's, or nobody has asked for long."""
        mark = _mark(self.note)
        self.timeout = 0.5
        while mark is not None and _mark(self.note) == mark:
            self.handle_request()
            if time.monotonic() - self.asked > self.offer.idle_s:
                with contextlib.suppress(OSError):
                    os.unlink(self.note)
        self.server_close()

    def part(self, place: str, path: str, first: int) -> Optional[Part]:
        """What there is of a file from a byte on; None: nothing yet. Raises FileNotFoundError: nor ever."""
        directory = os.path.join(self.offer.root, place)
        manifest = store_manifest.load(directory)
        if manifest is not None:
            if path not in {entry.path for entry in manifest.files}:
                raise FileNotFoundError(path)
            size = os.path.getsize(os.path.join(directory, path))
            return Part(os.path.join(directory, path), size, size)
        staged = os.path.join(self.offer.root, ".staging", place.replace("/", "--"), "tree", path)
        if os.path.isfile(staged):
            size = os.path.getsize(staged)
            return Part(staged, size, size)
        with contextlib.suppress(FileNotFoundError):
            size, count = partial_file.available(staged, first)
            if count:
                return Part(staged + partial_file.SUFFIX, size, first + count)
        if self._coming(place):
            return None
        raise FileNotFoundError(path)

    def _coming(self, place: str) -> bool:
        """Whether this box is at it: the store's lock is held, or will soon be."""
        if place in self.offer.expected and place not in self._seen:
            if time.monotonic() - self.began < GRACE_S and not self._held(place):
                return True
            self._seen.add(place)
        return self._held(place)

    def _held(self, place: str) -> bool:
        lock = os.path.join(self.offer.root, ".locks", place.replace("/", "--") + ".lock")
        try:
            descriptor = os.open(lock, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
        return False

    def slow_down(self, count: int) -> None:
        """Wait as the limit of this box asks for, all its receivers together."""
        if not self.offer.bytes_per_s:
            return
        with self._lock:
            self._due = max(self._due, time.monotonic()) + count / self.offer.bytes_per_s
            pause = self._due - time.monotonic()
        time.sleep(max(0.0, pause))


class _Handler(BaseHTTPRequestHandler):
    """One box that asks."""

    protocol_version = "HTTP/1.1"
    server_version, sys_version = "boxwright", ""
    timeout = 60
    disable_nagle_algorithm = True
    server: StoreServer

    def do_GET(self) -> None:
        """Send what is there of the range that is asked for."""
        self.server.asked = time.monotonic()
        given = self.headers.get("Authorization") or ""
        if not hmac.compare_digest(given.encode(), b"Bearer " + self.server.offer.key.encode()):
            self._refuse(401)
            return
        segments = unquote(urlsplit(self.path).path).strip("/").split("/")
        place, path = "/".join(segments[:2]), "/".join(segments[2:])
        span = re.fullmatch(r"bytes=(\d{1,15})-(\d{1,15})", self.headers.get("Range") or "")
        try:
            check_path(path)
            if not REVISION.fullmatch(place) or ".." in place or not span:
                raise FileNotFoundError(path)
            first, end = int(span.group(1)), int(span.group(2)) + 1
            part = self.server.part(place, path, first)
            if part is None:
                self._refuse(503, {LATER: "1", "Retry-After": "1"})
                return
            end = min(end, part.end)
            if first >= end:
                self._refuse(416, {"Content-Range": "bytes */%d" % part.size})
                return
            with open(part.path, "rb", buffering=0) as stream:
                self._send(stream, first, end, part.size)
        except (OSError, PathError) as error:
            if isinstance(error, (ConnectionError, TimeoutError)):
                raise
            self._refuse(404)

    def _send(self, stream: Any, first: int, end: int, size: int) -> None:
        self.send_response(206)
        self.send_header("Content-Range", "bytes %d-%d/%d" % (first, end - 1, size))
        self.send_header("Content-Length", str(end - first))
        self.end_headers()
        stream.seek(first)
        while first < end:
            block = stream.read(min(BLOCK, end - first))
            if not block:
                self.close_connection = True
                return
            self.server.slow_down(len(block))
            self.server.asked = time.monotonic()
            self.wfile.write(block)
            first += len(block)

    def _refuse(self, status: int, headers: Any = ()) -> None:
        self.send_response(status)
        for name, text in dict(headers).items():
            self.send_header(name, text)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *arguments: Any) -> None:
        """Nothing is logged."""


def _mark(note: str) -> Optional[Tuple[int, int]]:
    try:
        state = os.stat(note)
    except OSError:
        return None
    return state.st_ino, state.st_mtime_ns


def start(offer: Offer, port: int, note: str) -> int:
    """Serve in a process of its own; its port. Raises OSError when the port is taken."""
    stop(note)
    until = time.monotonic() + 5
    while True:
        try:
            server = StoreServer(("", port), offer, note)
            break
        except OSError:
            # The server of a former run needs a moment to see that its note is gone.
            if time.monotonic() > until:
                raise
            time.sleep(0.2)
    os.makedirs(os.path.dirname(note), exist_ok=True)
    with open(note, "w", encoding="utf-8") as stream:
        json.dump({"port": server.server_port}, stream)
    if os.fork() == 0:
        try:
            _detach(server)
            server.work()
        finally:
            os._exit(0)
    server.socket.close()
    return server.server_port


def _detach(server: StoreServer) -> None:
    """Leave the session and the streams of the module, whose end somebody waits for."""
    os.setsid()
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    kept = server.fileno()
    for descriptor in range(3, 1024):
        if descriptor != kept:
            with contextlib.suppress(OSError):
                os.close(descriptor)
    os.chdir("/")


def stop(note: str) -> bool:
    """Let the server of a note end; whether there was one."""
    try:
        os.unlink(note)
    except FileNotFoundError:
        return False
    return True
