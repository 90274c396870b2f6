"""Words of HAProxy's configuration: texts that stay one word, names of sections and sockets, refusals."""

from __future__ import annotations

import hashlib
import json
import re

#: Where HAProxy's sockets are: the unit's own runtime directory.
RUNTIME = "/run/boxwright-gateway"
ADMIN = RUNTIME + "/admin.sock"
_CONTROL = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
_ID = re.compile(r"[A-Za-z0-9_.:-]{1,48}")
_NO_ID = re.compile(r"[^A-Za-z0-9_.:-]")


def quote(text: str) -> str:
    """One word of HAProxy's configuration that says exactly this text (manual, "Quoting and escaping").

    Raises ValueError for line breaks and other control characters.
    """
    if _CONTROL.search(text):
        raise ValueError("no control character can stand in the gateway's configuration")
    return '"%s"' % re.sub(r'([\\"$])', r"\\\1", text)


def literal(text: str) -> str:
    """The same where HAProxy looks for its own `%[…]`: none is found."""
    return quote(text.replace("%", "%%"))


def ident(kind: str, name: str) -> str:
    """A name that HAProxy takes for a section or a server; two names never become one."""
    if _ID.fullmatch(name):
        return "%s.%s" % (kind, name) if kind else name
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    safe = "%s-%s" % (_NO_ID.sub("_", name)[:39], digest)
    return "%s.%s" % (kind, safe) if kind else safe


def socket_of(model: str, box: str) -> str:
    """The socket of a box's own section: short, and the same for the same box."""
    digest = hashlib.sha256(("%s\0%s" % (model, box)).encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return "%s/%s.sock" % (RUNTIME, digest)


def error(message: str, kind: str, code: str) -> str:
    """A refusal in the form of OpenAI's API."""
    return json.dumps({"error": {"message": message, "type": kind, "param": None, "code": code}})


NO_KEY = error(
    "Incorrect API key provided: send one of this gateway's keys as a Bearer token.",
    "invalid_request_error",
    "invalid_api_key",
)
TOO_MANY = error(
    "Rate limit reached: this key has had its requests of the last minute.", "requests", "rate_limit_exceeded"
)
NO_PATH = error("There is nothing at this address.", "invalid_request_error", "unknown_url")
NO_MODEL = error(
    "The model does not exist here: GET /v1/models lists those that do.",
    "invalid_request_error",
    "model_not_found",
)
NO_BOX = error("No box serves this model at the moment: try again soon.", "server_error", "unavailable")
CUT_OFF = error("The box that worked on this request went away.", "server_error", "bad_gateway")
TOO_SLOW = error("The box did not answer in time.", "server_error", "timeout")
