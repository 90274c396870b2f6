"""What a hub's refusal means and what to do about it: one message a kind."""

from __future__ import annotations

from typing import Any, Dict
from urllib.parse import urlsplit


def message(event: Dict[str, Any], repo: str, revision: str, endpoint: str, token: bool, proxy: str) -> str:
    """The message for an `error` event of resolve.py, or an error of the line.

    token: whether one was sent; proxy: URL, "" for none.
    """
    parts = urlsplit(endpoint)
    host = parts.netloc.rpartition("@")[2] or endpoint
    status = event.get("status")
    kind = str(event.get("kind"))
    if kind == "cut":
        kind = "unreachable"
    if kind in ("unauthorized", "forbidden") and event.get("code") == "GatedRepo":
        kind = "gated"
    if kind == "not-found" and status == 401:
        kind = "unauthorized"
    names = {
        "repo": repo,
        "revision": revision,
        "host": host,
        "status": status,
        "page": "%s://%s%s/%s" % (parts.scheme, host, parts.path.rstrip("/"), repo),
        "path": event.get("path", ""),
        "detail": event.get("detail", ""),
        "wait": _wait(str(event.get("retry_after") or "")),
        "proxy": urlsplit(proxy).netloc.rpartition("@")[2] or "the proxy of the host's environment",
    }
    if kind in ("unauthorized", "gated", "forbidden"):
        kind += " with token" if token else " without token"
    if proxy and kind in ("dns", "timeout", "unreachable"):
        kind = "through proxy"
    return MESSAGES.get(kind, MESSAGES["unexpected"]) % names


def _wait(seconds: str) -> str:
    return "in %s s" % seconds if seconds else "in some minutes"


MESSAGES = {
    "unauthorized with token": (
        "%(host)s does not accept the token (401): it is revoked, mistyped or for another hub. "
        "Make a new one there and put it into box_hub.token"
    ),
    "unauthorized without token": (
        "%(host)s gives %(repo)s to nobody without a token (401): it is private, gated, or does not exist. "
        "Check the name; for a private or gated one set box_hub.token (keep it in a vault)"
    ),
    "gated with token": (
        "%(repo)s is gated and the token's account has not been let in (403). Accept its licence at "
        "%(page)s with "
        "that account, then run again"
    ),
    "gated without token": (
        "%(repo)s is gated (401/403). Accept its licence at %(page)s, then set box_hub.token to a token of "
        "that "
        "account (keep it in a vault)"
    ),
    "forbidden with token": (
        "%(host)s forbids %(repo)s to this token (403): it lacks the permission to read it. Accept the "
        "licence at "
        "%(page)s if there is one, or give the token read access to the repository"
    ),
    "forbidden without token": (
        "%(host)s forbids %(repo)s without a token (403). Set box_hub.token to a token that may read it"
    ),
    "not-found": (
        "%(host)s has no %(repo)s, or lacks a file of it (404). Check the spelling of the repository and "
        "box_hub.endpoint; a private one needs box_hub.token"
    ),
    "no-revision": (
        "%(repo)s has no revision %(revision)s on %(host)s (404): it was rewritten or removed there. "
        "Declare another revision"
    ),
    "rate-limited": (
        "%(host)s asks to come back later (429, too many requests). Run again %(wait)s; what has arrived is "
        "kept. "
        "A token in box_hub.token raises the limit"
    ),
    "server": ("%(host)s has a fault of its own (%(status)s). Run again later; what has arrived is kept"),
    "dns": (
        "the name of %(host)s does not resolve on this host. Check box_hub.endpoint, the host's DNS and "
        "box_proxy"
    ),
    "tls": (
        "the certificate of %(host)s is not trusted on this host. Declare its authority in box_ca, or "
        "install it there (/usr/local/share/ca-certificates, then update-ca-certificates; with dnf "
        "/etc/pki/ca-trust/source/anchors, then update-ca-trust), or correct box_hub.endpoint"
    ),
    "no-tls": (
        "%(host)s does not speak TLS as https:// needs it. Check the scheme and the port in box_hub.endpoint"
    ),
    "through proxy": (
        "%(host)s cannot be reached through the proxy (%(proxy)s). Check that the proxy runs and lets this "
        "host "
        "through, and box_proxy; run again, what has arrived is kept"
    ),
    "proxy": (
        "the proxy (%(proxy)s) does not let the host through to %(host)s. Check box_proxy and the proxy's "
        "rules"
    ),
    "timeout": ("%(host)s does not answer in time. Check the line; run again, what has arrived is kept"),
    "unreachable": (
        "%(host)s cannot be reached from this host. Check box_hub.endpoint, the host's network and "
        "box_proxy; "
        "run again, what has arrived is kept"
    ),
    "disk-full": (
        "the disk became full while %(repo)s was fetched. Free room and run again; what has arrived is kept"
    ),
    "wrong-bytes": (
        "%(path)s of %(repo)s keeps arriving damaged: %(detail)s. What %(host)s sends is not what it "
        "records; "
        "run again later, or declare another box_hub.endpoint or revision"
    ),
    "wrong-size": (
        "%(host)s has another %(path)s of %(repo)s than it records: %(detail)s bytes. Run again later, or "
        "declare another box_hub.endpoint or revision"
    ),
    "redirected": (
        "%(host)s sends on to where %(path)s of %(repo)s cannot be had: %(detail)s. Check box_hub.endpoint, "
        "and whether a login page stands before it"
    ),
    "unreadable": (
        "%(path)s of %(repo)s cannot be read: %(detail)s. Check the disk and the permissions there"
    ),
    "unexpected": ("%(repo)s could not be fetched from %(host)s: %(detail)s"),
}
