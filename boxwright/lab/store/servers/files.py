"""HTTP/1.1 answers from files: keep-alive, ranges, the faults of the control file, and a log of requests."""

from __future__ import annotations

import json
import re
import socket
import socketserver
import sys
import threading
import time
import urllib.parse
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TextIO

from .control import Control, ControlError, Fault

BLOCK = 256 * 1024
#: Seconds after which an idle connection is closed.
IDLE_S = 75.0


class RequestLog:
    """One JSON object a line and request; never a token. Thread-safe."""

    def __init__(self, path: Path | None) -> None:
        self._lock = threading.Lock()
        self._stream: TextIO = path.open("a", encoding="utf-8", buffering=1) if path else sys.stderr

    def write(self, **entry: object) -> None:
        """Add one line."""
        with self._lock:
            self._stream.write(json.dumps(entry) + "\n")


class Line:
    """The way out of a server, which all that it sends has to share. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._free = 0.0

    def carry(self, size: int, bytes_per_s: int) -> None:
        """Wait until so many bytes have gone their way, behind those that came before them."""
        with self._lock:
            self._free = max(self._free, time.monotonic()) + size / bytes_per_s
            due = self._free
        time.sleep(max(0.0, due - time.monotonic()))


class DepotServer(ThreadingHTTPServer):
    """A threaded server that knows its control file and its log."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(
        self, address: tuple[str, int], handler: type[Handler], control: Control, log: RequestLog
    ) -> None:
        self.control, self.log, self.line = control, log, Line()
        super().__init__(address, handler)

    def server_bind(self) -> None:
        """Bind without http.server's look-up of this machine's name, which may wait for a name server."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that went away is no news; anything else goes to the log with its traceback on stderr."""
        if not isinstance(sys.exc_info()[1], (ConnectionError, TimeoutError)):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


class Handler(BaseHTTPRequestHandler):
    """The common part of both servers. A subclass answers in `answer(path, query)`."""

    protocol_version = "HTTP/1.1"
    server_version = "boxwright-depot"
    sys_version = ""
    timeout = IDLE_S
    disable_nagle_algorithm = True
    server: DepotServer

    #: For the log: who asks ("anonymous", a user's name), and what was sent.
    user = "anonymous"
    sent = 0
    shown = ""
    status: int = 0

    def answer(self, path: str, query: dict[str, str]) -> None:
        """Answer one request. path: decoded; query: the last value of each name."""
        raise NotImplementedError

    def do_GET(self) -> None:
        """Answer, unless a fault answers first."""
        began = time.monotonic()
        self.user, self.sent, self.shown, self.status = "anonymous", 0, "", 0
        parts = urllib.parse.urlsplit(self.path)
        path = urllib.parse.unquote(parts.path)
        try:
            if not self._refused(path):
                self.answer(path, dict(urllib.parse.parse_qsl(parts.query, keep_blank_values=True)))
        finally:
            self.server.log.write(
                time=round(time.time(), 3),
                method=self.command,
                path=path,
                range=self.headers.get("Range"),
                user=self.user,
                status=self.status,
                bytes=self.sent,
                fault=self.shown or None,
                seconds=round(time.monotonic() - began, 4),
            )

    do_HEAD = do_GET

    def do_POST(self) -> None:
        """Answer like GET, after the body was read (left unread it would be taken for the next request)."""
        self.body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.do_GET()

    def _refused(self, path: str) -> bool:
        control = self.server.control
        try:
            control.settings()
        except ControlError as error:
            self.send_json(500, {"error": str(error)})
            return True
        if control.down():
            self._cut("down")
            return True
        if hang := control.fault("hang", path):
            self.shown = "hang"
            time.sleep(hang.seconds)
        if fault := control.fault("status", path):
            self.shown = f"status {fault.status}"
            self.send_json(fault.status, {"error": f"{fault.status} (shown on purpose)"}, _limits(fault))
            return True
        return False

    def _cut(self, why: str) -> None:
        """Close the connection without a (further) word."""
        self.shown = why
        self.close_connection = True
        try:
            self.connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            return  # the client was quicker

    def log_message(self, format: str, *args: object) -> None:
        """Nothing here: `do_GET` logs."""

    def send_response(self, code: int, message: str | None = None) -> None:
        """Remember the status for the log."""
        self.status = int(code)
        super().send_response(code, message)

    def send_json(self, status: int, value: object, headers: Mapping[str, str] | None = None) -> None:
        """Send a whole JSON answer."""
        self.send_whole(status, json.dumps(value).encode(), "application/json; charset=utf-8", headers)

    def send_whole(
        self, status: int, body: bytes, kind: str, headers: Mapping[str, str] | None = None
    ) -> None:
        """Send a whole short answer of media type `kind`; without the body for HEAD."""
        self.send_response(status)
        given = {"Content-Type": kind, "Content-Length": str(len(body)), **(headers or {})}
        for name, value in given.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
            self.sent = len(body)

    def send_file(self, file: Path, path: str, etag: str, headers: Mapping[str, str]) -> None:
        """Send a file or the range of it that was asked for. path: the request's, for faults."""
        with file.open("rb") as stream:
            size = stream.seek(0, 2)
            first, last = 0, size - 1
            same = self.headers.get("If-Range") in (None, f'"{etag}"')
            span = parse_range(self.headers.get("Range") if same else None, size)
            if span is None:
                self.send_response(416)
                self.send_header("Content-Range", f"bytes */{size}")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            if span == (0, -1):
                self.send_response(200)
            else:
                first, last = span
                self.send_response(206)
                self.send_header("Content-Range", f"bytes {first}-{last}/{size}")
            for name, value in {
                "Content-Length": str(last - first + 1),
                "Accept-Ranges": "bytes",
                "ETag": f'"{etag}"',
                **headers,
            }.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                stream.seek(first)
                self._send_body(stream.read, first, last - first + 1, path)

    def _send_body(self, read: Callable[[int], bytes], first: int, length: int, path: str) -> None:
        control = self.server.control
        # A body shorter than the cut, or one that lacks the byte, does not use up one of the fault's times.
        drop = control.fault("drop", path, lambda fault: fault.after_bytes < length)
        corrupt = control.fault("corrupt", path, lambda fault: first <= fault.offset < first + length)
        rate, line = control.fault("rate", path), control.fault("line", path)
        turned = corrupt.offset - first if corrupt else -1
        limit = min(length, drop.after_bytes) if drop else length
        began = time.monotonic()
        while self.sent < limit:
            # In blocks of a quarter of a second at most: a slow body trickles, as a slow line's does.
            slowest = min((fault.bytes_per_s for fault in (rate, line) if fault), default=4 * BLOCK)
            block = read(min(max(1, slowest // 4), BLOCK, limit - self.sent))
            if not block:
                break
            if 0 <= (place := turned - self.sent) < len(block):
                block = block[:place] + bytes([block[place] ^ 0xFF]) + block[place + 1 :]
                self.shown = "corrupt"
            if rate is not None:
                self.shown = "rate"
                due = began + (self.sent + len(block)) / rate.bytes_per_s
                time.sleep(max(0.0, due - time.monotonic()))
            if line is not None:
                self.shown = "line"
                self.server.line.carry(len(block), line.bytes_per_s)
            self.wfile.write(block)
            self.sent += len(block)
            if control.down():
                self._cut("down")
                return
        if drop:
            self.wfile.flush()
            self._cut("drop")


def parse_range(header: str | None, size: int) -> tuple[int, int] | None:
    """First and last byte that a Range header asks for; (0, -1): the whole file, None: outside of it.

    Several ranges at once, or units other than bytes, get the whole file, as RFC 9110 (14.2) allows.
    """
    match = re.fullmatch(r"\s*bytes\s*=\s*(\d*)\s*-\s*(\d*)\s*", header or "")
    if not match or match.groups() == ("", ""):
        return (0, -1)
    first, last = match.groups()
    if not first:
        count = min(int(last), size)
        return (size - count, size - 1) if count else None
    if int(first) >= size or (last and int(last) < int(first)):
        return None
    return (int(first), min(int(last), size - 1) if last else size - 1)


def _limits(fault: Fault) -> dict[str, str]:
    """Headers of a refusal, as the hub sends them with 429 (IETF draft ratelimit-headers)."""
    if fault.retry_after_s is None:
        return {}
    headers = {"Retry-After": str(fault.retry_after_s)}
    if fault.status == 429:
        headers["RateLimit"] = f'"resolvers";r=0;t={fault.retry_after_s}'
        headers["RateLimit-Policy"] = '"fixed window";"resolvers";q=5000;w=300'
    return headers


def serve(address: tuple[str, int], handler: type[Handler], control: Control, log: RequestLog) -> None:
    """Serve for ever; while the control file says `down`, nothing listens on the port."""
    while True:
        if control.down():
            time.sleep(0.2)
            continue
        with DepotServer(address, handler, control, log) as server:
            server.timeout = 0.25
            while not control.down():
                server.handle_request()
