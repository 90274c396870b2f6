"""Reading the package index and the published files over HTTP: whole pages, and parts of a file."""

from __future__ import annotations

import base64
import io
import os
import re
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping
from email.message import Message
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

from boxwright.errors import UserError
from boxwright.releases.index import PYPI

TIMEOUT_S = 60
#: Largest page or whole file that is taken into memory, and the parts in which a wheel is read.
MOST_BYTES, BLOCK = 200 * 1024**2, 256 * 1024


def index_url() -> str:
    """The index that pip uses: PIP_INDEX_URL, pip's configuration, else PyPI. Raises UserError."""
    url = os.environ.get("PIP_INDEX_URL") or _configured() or PYPI
    if urlsplit(url).scheme not in ("https", "http"):
        raise UserError(
            "pip's package index is not reached over HTTP",
            ways_out=("PIP_INDEX_URL=https://pypi.org/simple/", "name the file itself: --package FILE"),
        )
    return url.rstrip("/") + "/"


def _configured() -> str:
    """What pip's configuration says; nothing where there is no pip. `pip config get` knows not all files."""
    try:
        answer = subprocess.run(
            [sys.executable, "-m", "pip", "config", "list"],
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    for section in ("install", "global"):
        found = re.search(rf"^{section}\.index-url='(.*)'$", answer.stdout, re.MULTILINE)
        if found:
            return found[1]
    return ""


class Web:
    """The index's server, with the name and password that its address may hold."""

    def __init__(self, index: str) -> None:
        self.index, self._login, self._host = _without_login(index)
        # A company's own authority is named to pip, not to Python.
        self._trust = ssl.create_default_context(cafile=os.environ.get("PIP_CERT") or None)

    def get(self, url: str, headers: Mapping[str, str], what: str) -> tuple[int, Mapping[str, str], bytes]:
        """Status, headers (by their names in small letters) and body of an answer. Raises UserError."""
        plain, login, host = _without_login(url)
        if urlsplit(plain).scheme not in ("https", "http"):
            raise UserError(
                f"{what} is not reached over HTTP", ways_out=("name the file itself: --package FILE",)
            )
        login = login or (self._login if host == self._host else None)
        sent = {"User-Agent": "boxwright", **headers, **({"Authorization": login} if login else {})}
        request = urllib.request.Request(plain, headers=sent)
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_S, context=self._trust) as answer:
                body = answer.read(MOST_BYTES + 1)
                if len(body) > MOST_BYTES:
                    raise UserError(f"{what} is larger than {MOST_BYTES // 1024**2} MiB")
                return answer.status, _by_name(answer.headers), body
        except urllib.error.HTTPError as error:
            error.close()
            return error.code, _by_name(error.headers), b""
        except (OSError, ValueError) as error:
            reason = getattr(error, "reason", None) or error
            raise UserError(
                f"{what} cannot be read: the package index did not answer",
                why=str(reason)[:200],
                ways_out=(
                    "see that the network, the proxy and PIP_INDEX_URL are right",
                    "name the file itself: --package FILE",
                ),
            ) from error


def _by_name(headers: Message) -> dict[str, str]:
    """Headers by their names in small letters: the case of a name means nothing (RFC 9110, 5.1)."""
    return {name.lower(): str(value) for name, value in headers.items()}


def _without_login(url: str) -> tuple[str, str | None, str]:
    """An address without name and password, these as a header's value, and the host."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if parts.username is None:
        return url, None, host
    pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    place = f"[{host}]" if ":" in host else host
    place += f":{parts.port}" if parts.port else ""
    return (
        urlunsplit(parts._replace(netloc=place)),
        "Basic " + base64.b64encode(pair.encode()).decode(),
        host,
    )


class RemoteFile(io.RawIOBase):
    """A published file that is read in parts (RFC 9110, range requests), each of them once.

    Raises UserError; `ranged` is false where the server gives only the whole file.
    """

    def __init__(self, web: Web, url: str, name: str) -> None:
        super().__init__()
        self._web, self._url, self._name = web, url, name
        self._blocks: dict[int, bytes] = {}
        self._place = 0
        status, headers, body = web.get(url, {"Range": "bytes=0-0", "Accept-Encoding": "identity"}, name)
        self.ranged = status == 206
        self.received = len(body)
        if status not in (200, 206):
            raise UserError(f"{name} cannot be read: the package index answered HTTP {status}")
        total = headers.get("content-range", "").rpartition("/")[2] if self.ranged else ""
        if self.ranged and not (total.isascii() and total.isdigit()):
            raise UserError(f"{name} cannot be read: the package index did not say how large it is")
        self.size = int(total) if total else len(body)
        self.body = None if self.ranged else body

    def readable(self) -> bool:
        """It is."""
        return True

    def seekable(self) -> bool:
        """It is."""
        return True

    def tell(self) -> int:
        """Where the next part is read."""
        return self._place

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a place in the file."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._place, io.SEEK_END: self.size}[whence]
        self._place = max(0, base + offset)
        return self._place

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer from the place on."""
        wanted = min(len(buffer), max(0, self.size - self._place))
        if not wanted:
            return 0
        number, start = divmod(self._place, BLOCK)
        part = self._block(number)[start : start + wanted]
        buffer[: len(part)] = part
        self._place += len(part)
        return len(part)

    def _block(self, number: int) -> bytes:
        if number not in self._blocks:
            first = number * BLOCK
            last = min(first + BLOCK, self.size) - 1
            status, _, body = self._web.get(
                self._url, {"Range": f"bytes={first}-{last}", "Accept-Encoding": "identity"}, self._name
            )
            if status != 206 or len(body) != last - first + 1:
                raise UserError(f"{self._name} cannot be read: a part of it did not come (HTTP {status})")
            self._blocks[number] = body
            self.received += len(body)
        return self._blocks[number]
