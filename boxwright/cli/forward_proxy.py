"""A forward proxy on this machine's loopback, for boxes whose only way out leads through it.

It hands on what apt, Docker, pip and the hub's client ask: plain requests, and tunnels for TLS. It goes out
as this machine does, through a proxy of its own where the environment names one. What listens on this
machine itself is none of a box's business and stays closed to it.
"""

from __future__ import annotations

import base64
import contextlib
import ipaddress
import platform
import select
import socket
import socketserver
import threading
import urllib.request
from collections.abc import Sequence
from types import TracebackType
from typing import Any
from urllib.parse import unquote, urlsplit

#: Bytes of a request's head; seconds for it and for a connection; seconds that a line may be silent.
MOST_HEAD, CONNECT_S, SILENT_S = 64 * 1024, 20.0, 900.0
CHUNK = 64 * 1024
#: What Linux calls the machine itself (/etc/hosts).
OWN_NAMES = ("localhost", "ip6-localhost", "ip6-loopback", "localhost.localdomain")
#: Headers that speak of the connection to the proxy and end with it (RFC 9110, 7.6.1).
OF_THIS_HOP = ("connection", "proxy-connection", "proxy-authorization", "keep-alive")


class RefusedError(Exception):
    """What a client asked is not done. status: `403 Forbidden`."""

    def __init__(self, status: str, why: str) -> None:
        super().__init__(why)
        self.status = status


class ForwardProxy:
    """The running proxy; leaving the `with` block ends it."""

    def __init__(self) -> None:
        self._server = _Server(("127.0.0.1", 0), _Client)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.2,), daemon=True)

    @property
    def port(self) -> int:
        """Where it listens, on 127.0.0.1."""
        return int(self._server.server_address[1])

    def __enter__(self) -> ForwardProxy:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True


class _Client(socketserver.BaseRequestHandler):
    """One connection of a box."""

    def handle(self) -> None:
        """Do the one thing that is asked; whatever goes wrong is told as an answer of HTTP's."""
        client: socket.socket = self.request
        client.settimeout(CONNECT_S)
        with contextlib.suppress(OSError):
            try:
                head, rest = _head(client)
                method, target, headers = _parsed(head)
                if method == "CONNECT":
                    _tunnel(client, target, rest)
                else:
                    _hand_on(client, method, target, headers, rest)
            except RefusedError as refused:
                text = f"{refused}\n".encode()
                client.sendall(
                    f"HTTP/1.1 {refused.status}\r\nContent-Type: text/plain\r\n"
                    f"Content-Length: {len(text)}\r\nConnection: close\r\n\r\n".encode()
                    + text
                )


def _head(client: socket.socket) -> tuple[bytes, bytes]:
    """The head of a request, and what came of its body already."""
    data = b""
    while b"\r\n\r\n" not in data:
        part = client.recv(CHUNK)
        data += part
        if not part or len(data) > MOST_HEAD:
            raise RefusedError("400 Bad Request", "this is no request to a proxy")
    head, _, rest = data.partition(b"\r\n\r\n")
    return head, rest


def _parsed(head: bytes) -> tuple[str, str, list[str]]:
    """Method, target and header lines."""
    first, *lines = head.decode("latin-1").split("\r\n")
    words = first.split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        raise RefusedError("400 Bad Request", "this is no request to a proxy")
    return words[0], words[1], lines


def _tunnel(client: socket.socket, target: str, rest: bytes) -> None:
    """Connect the client with `host:port`, for TLS."""
    host, port = _split(f"//{target}", None)
    upstream = _upstream("https", host)
    with contextlib.closing(_connect(host, port, upstream)) as out:
        if upstream:
            out.sendall(
                f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n{_login(upstream)}\r\n".encode("latin-1")
            )
        else:
            client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        out.sendall(rest)
        _splice(client, out)


def _hand_on(client: socket.socket, method: str, target: str, lines: list[str], rest: bytes) -> None:
    """Ask for the client; the connection ends with the answer, so that each one carries one request."""
    if not target.startswith("http://"):
        raise RefusedError("400 Bad Request", "a proxy is asked for http://…, or to CONNECT")
    host, port = _split(target, 80)
    upstream = _upstream("http", host)
    parts = urlsplit(target)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    kept = [line for line in lines if line.partition(":")[0].strip().lower() not in OF_THIS_HOP]
    head = "\r\n".join([f"{method} {target if upstream else path} HTTP/1.1", *kept, "Connection: close"])
    with contextlib.closing(_connect(host, port, upstream)) as out:
        login = _login(upstream) if upstream else ""
        out.sendall(f"{head}\r\n{login}\r\n".encode("latin-1") + rest)
        _splice(client, out)


def _split(target: str, usual: int | None) -> tuple[str, int]:
    try:
        parts = urlsplit(target)
        host, port = parts.hostname, parts.port or usual
    except ValueError:
        host = port = None
    if not host or not port:
        raise RefusedError("400 Bad Request", "the address cannot be read")
    return host, port


def _upstream(scheme: str, host: str) -> str:
    """The proxy that this machine itself goes through to a host; "" for none."""
    if urllib.request.proxy_bypass(host):
        return ""
    return urllib.request.getproxies().get(scheme, "")


def _login(upstream: str) -> str:
    """The header line that logs in to that proxy."""
    parts = urlsplit(upstream)
    if parts.username is None:
        return ""
    pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return f"Proxy-Authorization: Basic {base64.b64encode(pair.encode()).decode()}\r\n"


def _connect(host: str, port: int, upstream: str) -> socket.socket:
    """A connection to the host, or to the proxy before it. Raises RefusedError."""
    if upstream:
        # A proxy that runs here would reach what is closed here. No name is looked up: behind a proxy of a
        # company's that may take its time, for each request.
        named = host.rstrip(".").lower()
        here = named in OWN_NAMES or named.endswith(".localhost") or named == platform.node().lower()
        with contextlib.suppress(OSError):
            at = "127.0.0.1" if here else host
            _see_elsewhere(host, socket.getaddrinfo(at, port, flags=socket.AI_NUMERICHOST))
        if urlsplit(upstream).scheme not in ("http", ""):
            raise RefusedError(
                "502 Bad Gateway", "the controller itself goes through a proxy that is not one of plain HTTP"
            )
        host, port = _split(upstream if "://" in upstream else f"//{upstream}", 3128)
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise RefusedError("502 Bad Gateway", f"{host} does not resolve on the controller: {error}") from None
    if not upstream:
        _see_elsewhere(host, found)
    last: OSError | None = None
    for family, kind, protocol, _, address in found:
        out = socket.socket(family, kind, protocol)
        out.settimeout(CONNECT_S)
        try:
            out.connect(address)
        except OSError as error:
            out.close()
            last = error
        else:
            return out
    raise RefusedError("502 Bad Gateway", f"{host}:{port} cannot be reached from the controller: {last}")


def _see_elsewhere(host: str, found: Sequence[tuple[Any, ...]]) -> None:
    """Raise RefusedError for the controller's own services, and what a cloud tells its machines."""
    for family, _, _, _, address in found:
        at = ipaddress.ip_address(str(address[0]).partition("%")[0])
        # An IPv4 address may come in IPv6's clothes: ::ffff:127.0.0.1.
        at = getattr(at, "ipv4_mapped", None) or at
        special = at.is_loopback or at.is_link_local or at.is_unspecified or at.is_multicast
        if special or _own(family, address):
            raise RefusedError(
                "403 Forbidden", f"{host} is on the controller itself, which is closed to boxes"
            )


def _own(family: int, address: tuple[Any, ...]) -> bool:
    """Whether this machine has the address: it then is where a way to it begins, too. Nothing is sent."""
    with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.connect(address)
        return bool(probe.getsockname()[0] == address[0])
    return False


def _splice(one: socket.socket, other: socket.socket) -> None:
    """Carry bytes both ways until one of the two has said all."""
    across = {one: other, other: one}
    one.settimeout(SILENT_S)
    other.settimeout(SILENT_S)
    while across:
        ready, _, _ = select.select(list(across), [], [], SILENT_S)
        if not ready:
            return
        for source in ready:
            data = source.recv(CHUNK)
            if data:
                across[source].sendall(data)
                continue
            if source is other:
                return
            # The client has asked all; the answer may still come.
            with contextlib.suppress(OSError):
                other.shutdown(socket.SHUT_WR)
            del across[source]
