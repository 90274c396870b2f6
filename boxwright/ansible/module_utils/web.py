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

from ansible.module_utils import pem

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
        self._direct, self._proxy = tuple(direct), proxy
        handlers.append(_Proxies({"http": proxy, "https": proxy} if proxy else None, self._direct))
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
            with self._opener.open(request, timeout=min(self.timeout, left)) as stream:
                return Answer(stream.status, _lower(stream.headers), self._body(stream, limit, url))
        except urllib.error.HTTPError as error:
            with error:
                raise _refused(error, url, self._through(url)) from error
        except urllib.error.URLError as error:
            raise _unreachable(error.reason, url, self._through(url)) from error
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise _unreachable(error, url, self._through(url)) from error

    def _through(self, url: str) -> str:
        """The proxy that a URL is asked through, without its login; "" for none."""
        try:
            parts = urllib.parse.urlsplit(url)
            if _is_direct(url, self._direct) or urllib.request.proxy_bypass(parts.hostname or ""):
                return ""
        except ValueError:
            return ""
        proxy = self._proxy or urllib.request.getproxies().get(parts.scheme) or ""
        return _host(proxy if "://" in proxy else "//" + proxy) if proxy else ""

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


class _Proxies(urllib.request.ProxyHandler):
    """Leads each request its own way: where one is sent on to may be on the other side of the proxy."""

    def __init__(self, proxies: Optional[Dict[str, str]], direct: Sequence[str]) -> None:
        super().__init__(proxies)
        self._direct = direct

    def proxy_open(self, req: Any, proxy: Any, type: Any) -> Any:
        """Nothing for what is reached without it."""
        return None if _is_direct(req.full_url, self._direct) else super().proxy_open(req, proxy, type)


def _trusting(authorities: Sequence[str]) -> ssl.SSLContext:
    context = ssl.create_default_context()
    for text in authorities:
        try:
            # Comments around a certificate need not be ASCII; ssl wants that of the whole text.
            context.load_verify_locations(cadata="".join(pem.certificates(text)))
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


def _refused(error: urllib.error.HTTPError, url: str, through: str) -> WebError:
    kind = {401: "unauthorized", 403: "forbidden", 404: "not-found", 410: "not-found"}.get(error.code)
    headers = _lower(error.headers)
    if error.code == 407:
        return WebError(
            "unreachable", "%s: %s" % (_host(url), _unwelcome(through, "407 %s" % error.reason)), 407
        )
    if kind is None:
        kind = "unreachable" if error.code >= 500 or error.code == 429 else "invalid"
    text = headers.get("x-error-message") or str(error.reason)
    return WebError(
        kind,
        "%s answers %d %s%s"
        % (_host(url), error.code, text[:200], " through the proxy " + through if through else ""),
        error.code,
        headers.get("x-error-code", ""),
        headers,
    )


def _unwelcome(through: str, why: str) -> str:
    """What a proxy's own refusal is, for a message."""
    proxy = "the proxy %s" % through if through else "a proxy"
    # Some proxies, tinyproxy for one, say 401 of a wrong password.
    if why.startswith(("401", "407")):
        return "%s wants another name and password than it was given (%s)" % (proxy, why)
    return "%s does not let the host through (%s)" % (proxy, why)


def _unreachable(reason: Any, url: str, through: str) -> WebError:
    host = _host(url)
    if through and str(reason).startswith("Tunnel connection failed"):
        answer = str(reason).partition(": ")[2].strip()
        return WebError("unreachable", "%s: %s" % (host, _unwelcome(through, answer)))
    if through and not isinstance(reason, (ssl.SSLError, ValueError)):
        told: Any = (
            "its name does not resolve"
            if isinstance(reason, socket.gaierror)
            else "no answer in time"
            if isinstance(reason, (socket.timeout, TimeoutError))
            else getattr(reason, "strerror", None) or reason
        )
        return WebError("unreachable", "%s: the proxy %s cannot be used: %s" % (host, through, told))
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
