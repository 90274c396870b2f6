"""A package index on the loopback address, packages made on the spot, the catalog in its own place."""

from __future__ import annotations

import hashlib
import io
import json
import re
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest


def wheel(files: dict[str, str], requires: tuple[str, ...] = ()) -> bytes:
    """A wheel with the files."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
        lines = ["Metadata-Version: 2.4", "Name: x", *(f"Requires-Dist: {one}" for one in requires)]
        archive.writestr("x-1.dist-info/METADATA", "\n".join(lines) + "\n\nAbout it.\n")
    return packed.getvalue()


class Index:
    """A simple index (PEP 503, PEP 691). requests: what was asked for, with its Range header."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.requests: list[tuple[str, str | None]] = []
        self.html = False
        self.ranges = True
        self.small_letters = False
        self.status = 200
        self.login: str | None = None
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}/simple/"

    def page(self) -> tuple[str, bytes]:
        if self.html:
            links = "".join(f'<a href="/files/{name}">{name}</a>\n' for name in self.files)
            return "text/html", f"<!DOCTYPE html><html><body>{links}</body></html>".encode()
        listed = [
            {
                "filename": name,
                "url": f"/files/{name}",
                "hashes": {"sha256": hashlib.sha256(data).hexdigest()},
            }
            for name, data in self.files.items()
        ]
        return "application/vnd.pypi.simple.v1+json", json.dumps({"files": listed}).encode()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        index = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                wanted = self.headers.get("Range")
                index.requests.append((self.path, wanted))
                if index.login and self.headers.get("Authorization") != index.login:
                    return self.answer(401, "text/plain", b"")
                if self.path.startswith("/simple/"):
                    return self.answer(index.status, *index.page())
                data = index.files.get(self.path.removeprefix("/files/"))
                if data is None:
                    return self.answer(404, "text/plain", b"")
                span = re.fullmatch(r"bytes=(\d+)-(\d+)", wanted or "")
                if span and index.ranges:
                    first, last = int(span[1]), min(int(span[2]), len(data) - 1)
                    head = {"Content-Range": f"bytes {first}-{last}/{len(data)}"}
                    return self.answer(206, "application/octet-stream", data[first : last + 1], head)
                return self.answer(200, "application/octet-stream", data)

            def answer(self, status: int, kind: str, body: bytes, head: dict[str, str] | None = None) -> None:
                self.send_response(status)
                for name, value in {
                    "Content-Type": kind,
                    "Content-Length": str(len(body)),
                    **(head or {}),
                }.items():
                    self.send_header(name.lower() if index.small_letters else name, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                return

        return Handler


@pytest.fixture(scope="session")
def make_wheel():
    return wheel


@pytest.fixture
def index(monkeypatch):
    made = Index()
    monkeypatch.setenv("PIP_INDEX_URL", made.url)
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    yield made
    made.server.shutdown()
    made.server.server_close()


@pytest.fixture
def data(tmp_path, monkeypatch):
    """The catalog's tables, copied, so that the verb writes the copies."""
    from boxwright.cli import releases

    for name in ("vllm", "sglang"):
        (tmp_path / f"{name}.json").write_bytes(releases.data_file(name).read_bytes())
    monkeypatch.setattr(releases, "data_file", lambda engine: tmp_path / f"{engine}.json")
    return tmp_path
