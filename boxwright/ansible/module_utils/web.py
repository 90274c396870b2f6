"""Reading over HTTP with a time limit, and saying in one word why it did not work."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import time
import urllib.error
import urllib.parse
import urllib.request
from typing import Any, Dict, List, NamedTuple, Optional, Sequence

CHUNK = 64 * 1024


class WebError(Exception):
    """A request that gave no answer of use.

    kind: unreachable, dns, tls, unauthorized, forbidden, not-found or invalid.
    status: the HTTP status, None where there was no answer; code: the hub's X-Error-Code; headers of the
    answer.
    """

    def __init__(
        self,
        kind: str,
        detail: str,
        status: Optional[int] = None,
        code: str = "",
        headers: Optional[Dict[str, str]] = None,
    ) -> None:
        super().__init__(detail)
        self.kind, self.detail, self.status, self.code = kind, detail, status, code
        self.headers = headers or {}


class Answer(NamedTuple):
    """What came back. headers: names in lower case."""

    status: int
    headers: Dict[str, str]
    body: bytes

    def json(self) -> Any:
        """The body as JSON; raises WebError `invalid` for anything else."""
        try:
            return json.loads(self.body.decode("utf-8"))
        except (ValueError, RecursionError) as error:
            raise WebError("invalid", "the answer is not JSON") from error


class Reader:
    """Reads URLs. timeout: seconds for each wait; deadline: seconds for all its requests together.

    proxy: URL for http and https, "" for what the environment says; direct: hosts that are reached without
    it, and domains that begin with a dot. authorities: PEM texts that are trusted beside the system's.
    """

    def __init__(
        self,
        timeout: float = 10,
        deadline: float = 40,
        proxy: str = "",
        direct: Sequence[str] = (),
        authorities: Sequence[str] = (),
    ) -> None:
        self.timeout = timeout
        self._until = time.monotonic() + deadline
        handlers: List[Any] = [_Redirects()]
        if authorities:
            handlers.append(urllib.request.HTTPSHandler(context=_trusting(authorities)))
        self._direct, straight = tuple(direct), urllib.request.ProxyHandler({})
        self._straight = urllib.request.build_opener(*handlers, straight)
        if proxy:
            handlers.append(urllib.request.ProxyHandler({"http": proxy, "https": proxy}))
        self._opener = urllib.request.build_opener(*handlers)

    @property
    def left(self) -> float:
        """Seconds until the deadline."""
        return max(0.0, self._until - time.monotonic())

    def get(
        self, url: str, headers: Optional[Dict[str, str]] = None, secret: str = "", limit: int = 64 << 20
    ) -> Answer:
        """GET a URL, at most `limit` bytes. secret: an Authorization header, for this origin alone."""
        left = self._until - time.monotonic()
        if left <= 0:
            raise WebError("unreachable", "%s: no time left" % _host(url))
        try:
            request = urllib.request.Request(url, headers=dict(headers or {}, **{"User-Agent": "boxwright"}))
            if secret:
                request.add_unredirected_header("Authorization", secret)
            opener = self._straight if _is_direct(url, self._direct) else self._opener
            with opener.open(request, timeout=min(self.timeout, left)) as stream:
                return Answer(stream.status, _lower(stream.headers), self._body(stream, limit, url))
        except urllib.error.HTTPError as error:
            with error:
                raise _refused(error, url) from error
        except urllib.error.URLError as error:
            raise _unreachable(error.reason, url) from error
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise _unreachable(error, url) from error

    def _body(self, stream: Any, limit: int, url: str) -> bytes:
        parts, size = [], 0
        while size < limit:
            if time.monotonic() > self._until:
                raise WebError("unreachable", "%s: answers too slowly" % _host(url))
            part = stream.read(min(CHUNK, limit - size))
            if not part:
                break
            parts.append(part)
            size += len(part)
        return b"".join(parts)


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects over http and https; a secret goes on to the same origin only (RFC 9110, 15.4)."""

    def redirect_request(
        self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> Optional[urllib.request.Request]:
        """The next request; none to other schemes, nor from https to http."""
        before, after = urllib.parse.urlsplit(req.full_url), urllib.parse.urlsplit(newurl)
        if after.scheme not in ("http", "https") or (before.scheme, after.scheme) == ("https", "http"):
            raise urllib.error.URLError(
                "it sends on to %s://%s, which is not followed" % (after.scheme, _host(newurl))
            )
        following = super().redirect_request(req, fp, 302 if code == 308 else code, msg, headers, newurl)
        secret = req.unredirected_hdrs.get("Authorization")
        if (
            following is not None
            and secret
            and (before.scheme, before.netloc) == (after.scheme, after.netloc)
        ):
            following.add_unredirected_header("Authorization", secret)
        return following

    # Unknown to Python before 3.11.
    http_error_308 = urllib.request.HTTPRedirectHandler.http_error_302


def _trusting(authorities: Sequence[str]) -> ssl.SSLContext:
    context = ssl.create_default_context()
    for text in authorities:
        try:
            context.load_verify_locations(cadata=text)
        except (ssl.SSLError, ValueError):
            # What Docker cannot use either; the certificate that it was to vouch for is then told.
            continue
    return context


def _is_direct(url: str, direct: Sequence[str]) -> bool:
    host = urllib.parse.urlsplit(url).hostname or ""
    return any(
        host == one.lower().lstrip(".") or host.endswith("." + one.lower().lstrip(".")) or one == "*"
        for one in direct
    )


def _lower(headers: Any) -> Dict[str, str]:
    return {name.lower(): text for name, text in headers.items()}


def _host(url: str) -> str:
    try:
        return urllib.parse.urlsplit(url).netloc.rpartition("@")[2] or url
    except ValueError:
        return url


def _refused(error: urllib.error.HTTPError, url: str) -> WebError:
    kind = {401: "unauthorized", 403: "forbidden", 404: "not-found", 410: "not-found"}.get(error.code)
    headers = _lower(error.headers)
    if kind is None:
        kind = "unreachable" if error.code >= 500 or error.code == 429 else "invalid"
    text = headers.get("x-error-message") or str(error.reason)
    return WebError(
        kind,
        "%s answers %d %s" % (_host(url), error.code, text[:200]),
        error.code,
        headers.get("x-error-code", ""),
        headers,
    )


def _unreachable(reason: Any, url: str) -> WebError:
    host = _host(url)
    if isinstance(reason, socket.gaierror):
        return WebError("dns", "%s: the name does not resolve" % host)
    if isinstance(reason, ssl.SSLError):
        why = getattr(reason, "verify_message", "") or reason.reason or reason
        return WebError("tls", "%s: %s" % (host, why))
    if isinstance(reason, (socket.timeout, TimeoutError)):
        return WebError("unreachable", "%s: no answer in time" % host)
    if isinstance(reason, ValueError):
        return WebError("invalid", "%s is not a URL that can be read: %s" % (host, reason))
    return WebError("unreachable", "%s: %s" % (host, getattr(reason, "strerror", None) or reason))
