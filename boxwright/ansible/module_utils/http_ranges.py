"""Ranges of files over HTTP/1.1: kept connections, proxies, redirects, and one word for what went wrong."""

from __future__ import annotations

import base64
import contextlib
import email.utils
import http.client
import re
import socket
import ssl
import threading
import time
import urllib.request
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple
from urllib.parse import SplitResult, unquote, urljoin, urlsplit

BLOCK = 256 * 1024
MOST_REDIRECTS = 5
AGENT = "boxwright"
#: A header of another box: it does not have these bytes yet, but they are on their way to it.
LATER = "X-Boxwright-Later"


class FetchError(Exception):
    """Bytes that did not come. kind: a key of hub_messages; wait: seconds that the server asks to wait."""

    def __init__(
        self, kind: str, detail: str = "", status: Optional[int] = None, wait: Optional[float] = None
    ) -> None:
        super().__init__(detail or kind)
        self.kind, self.detail, self.status, self.wait = kind, detail, status, wait
        self.code = ""
        self.path = ""


class Address(NamedTuple):
    """Where a file lies. secret: headers for this origin alone."""

    url: str
    secret: Dict[str, str]


class Lines:
    """Connections, kept, one a thread and origin. proxy: URL for every origin, "" for the environment's.

    direct: without any proxy. timeout: seconds without a byte.
    """

    def __init__(self, proxy: str = "", timeout: float = 30, direct: bool = False) -> None:
        self._proxy, self._timeout, self._direct = proxy, timeout, direct
        self._own = threading.local()
        self._all: List[http.client.HTTPConnection] = []
        self._lock = threading.Lock()
        self._context: Optional[ssl.SSLContext] = None

    def read(
        self, address: Address, first: int, end: int, size: int, sink: Callable[[memoryview], None]
    ) -> None:
        """Hand the bytes from `first` up to `end` to `sink`, as they come. size: of the whole file.

        Fewer may come without an error only where the server says so. Raises FetchError, `no-ranges` where
        the server sends the whole file instead.
        """
        wanted = {"Range": "bytes=%d-%d" % (first, end - 1)}
        url, secret, origin = address.url, address.secret, _origin(urlsplit(address.url))
        for _ in range(MOST_REDIRECTS):
            parts = _split(url)
            headers = dict(wanted, **(secret if _origin(parts) == origin else {}))
            connection, answer = self._ask(parts, headers)
            if answer.status not in (301, 302, 303, 307, 308):
                break
            following = urljoin(url, answer.getheader("Location") or "")
            self._drop(parts, connection)
            if parts.scheme == "https" and not following.startswith("https:"):
                raise FetchError("redirected", "%s sends on to %s" % (parts.netloc, _split(following).netloc))
            url = following
        else:
            raise FetchError("redirected", "%s sends on without end" % _split(url).netloc)
        try:
            self._take(answer, first, end, size, sink)
        except BaseException:
            self._drop(parts, connection)
            raise
        if answer.will_close or not answer.isclosed():
            self._drop(parts, connection)

    def abort(self) -> None:
        """Let every connection end at once, also those that wait for bytes."""
        with self._lock:
            connections, self._all = self._all, []
        for connection in connections:
            with contextlib.suppress(OSError, AttributeError):
                connection.sock.shutdown(socket.SHUT_RDWR)

    def _ask(self, parts: SplitResult, headers: Dict[str, str]) -> Tuple[Any, Any]:
        """The connection, and the head of its answer; a kept connection that has died is made anew once."""
        fresh = False
        while True:
            connection, fresh = self._connection(parts)
            target = (parts.path or "/") + ("?" + parts.query if parts.query else "")
            if self._proxy_for(parts) is not None and parts.scheme == "http":
                target = "http://%s%s" % (parts.netloc, target)
            try:
                sent = dict(headers, **{"Accept-Encoding": "identity", "User-Agent": AGENT})
                sent.update(self._proxy_headers(parts) if parts.scheme == "http" else {})
                connection.request("GET", target, headers=sent)
                return connection, connection.getresponse()
            except (http.client.HTTPException, OSError) as error:
                self._drop(parts, connection)
                if fresh or isinstance(error, (TimeoutError, socket.timeout)):
                    raise trouble(error) from error

    def _take(self, answer: Any, first: int, end: int, size: int, sink: Callable[[memoryview], None]) -> None:
        if answer.status == 200 and not (first == 0 and end == size):
            raise FetchError("no-ranges")
        if answer.status == 206:
            told = re.fullmatch(r"bytes (\d+)-(\d+)/(\d+|\*)", answer.getheader("Content-Range") or "")
            if not told or int(told.group(1)) != first or int(told.group(2)) >= end:
                raise FetchError("server", "other bytes came than were asked for", 206)
            if told.group(3) not in ("*", str(size)):
                raise FetchError("wrong-size", "%s of %d" % (told.group(3), size))
            end = int(told.group(2)) + 1
        elif answer.status != 200:
            raise refusal(answer.status, answer.headers)
        elif answer.length is not None and answer.length != size:
            raise FetchError("wrong-size", "%d of %d" % (answer.length, size))
        left, block = end - first, memoryview(bytearray(BLOCK))
        while left:
            try:
                count = answer.readinto(block[: min(left, BLOCK)])
            except (http.client.HTTPException, OSError) as error:
                raise trouble(error) from error
            if not count:
                raise FetchError("cut", "the connection ended before the file did")
            left -= count
            sink(block[:count])
        with contextlib.suppress(http.client.HTTPException, OSError):
            answer.read(1)  # the end of a chunked body, so that the connection can be used again

    def _connection(self, parts: SplitResult) -> Tuple[http.client.HTTPConnection, bool]:
        """A connection of this thread, and whether it is a new one."""
        kept: Dict[Tuple[str, str], http.client.HTTPConnection] = self._own.__dict__.setdefault("kept", {})
        found = kept.get(_origin(parts))
        if found is not None:
            return found, False
        proxy = self._proxy_for(parts)
        at = _split(proxy if "://" in proxy else "http://" + proxy) if proxy is not None else parts
        host = at.hostname or ""
        port = at.port or (443 if at.scheme == "https" else 80 if proxy is None else 3128)
        made: http.client.HTTPConnection
        if parts.scheme == "https":
            if self._context is None:
                self._context = ssl.create_default_context()
            made = http.client.HTTPSConnection(host, port, timeout=self._timeout, context=self._context)
            if proxy is not None:
                made.set_tunnel(parts.hostname or "", parts.port or 443, self._proxy_headers(parts))
        else:
            made = http.client.HTTPConnection(host, port, timeout=self._timeout)
        kept[_origin(parts)] = made
        with self._lock:
            self._all.append(made)
        return made, True

    def _drop(self, parts: SplitResult, connection: http.client.HTTPConnection) -> None:
        self._own.__dict__.get("kept", {}).pop(_origin(parts), None)
        with self._lock, contextlib.suppress(ValueError):
            self._all.remove(connection)
        connection.close()

    def _proxy_for(self, parts: SplitResult) -> Optional[str]:
        if self._direct or urllib.request.proxy_bypass(parts.hostname or ""):
            return None
        return self._proxy or urllib.request.getproxies().get(parts.scheme)

    def _proxy_headers(self, parts: SplitResult) -> Dict[str, str]:
        proxy = self._proxy_for(parts)
        at = _split(proxy if "://" in proxy else "http://" + proxy) if proxy else None
        if at is None or at.username is None:
            return {}
        pair = "%s:%s" % (unquote(at.username), unquote(at.password or ""))
        return {"Proxy-Authorization": "Basic " + base64.b64encode(pair.encode()).decode()}


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        if parts.scheme in ("http", "https") and parts.hostname and parts.port != 0:
            return parts
    except ValueError:
        pass
    raise FetchError("redirected", "it names an address that cannot be asked")


def _origin(parts: SplitResult) -> Tuple[str, str]:
    return parts.scheme, parts.netloc


def refusal(status: int, headers: Any) -> FetchError:
    """What a status that brings no bytes means."""
    kinds = {401: "unauthorized", 403: "forbidden", 404: "not-found", 407: "proxy", 410: "not-found"}
    kind = kinds.get(status) or ("wrong-size" if status == 416 else "server")
    if status == 429:
        kind = "rate-limited"
    if headers.get(LATER):
        kind = "later"
    error = FetchError(kind, "it answers %d" % status, status, wait_told(headers.get("Retry-After") or ""))
    error.code = headers.get("X-Error-Code") or ""
    return error


def wait_told(text: str) -> Optional[float]:
    """Seconds that a Retry-After asks to wait: a number, or the seconds until a date; None for neither."""
    text = text.strip()
    if re.fullmatch(r"\d{1,9}", text):
        return float(text)
    try:
        moment = email.utils.parsedate_to_datetime(text)
    except (TypeError, ValueError, IndexError):
        return None
    return max(0.0, moment.timestamp() - time.time())


def trouble(error: BaseException) -> FetchError:
    """What a connection's error means."""
    text = str(error)
    if isinstance(error, socket.gaierror):
        return FetchError("dns", text)
    if isinstance(error, ssl.SSLCertVerificationError):
        return FetchError("tls", error.verify_message)
    if isinstance(error, ssl.SSLError) and "WRONG_VERSION" in text.upper():
        return FetchError("no-tls", text)
    if isinstance(error, (TimeoutError, socket.timeout)):
        return FetchError("timeout", "no byte in time")
    if text.startswith("Tunnel connection failed"):
        return FetchError("proxy", text)
    return FetchError("unreachable", text or type(error).__name__)
