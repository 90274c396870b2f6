"""What a hub says of a model: commit, files, config, tensors; without its weights."""

from __future__ import annotations

import importlib.util
import json
import struct
from pathlib import Path

import pytest
from ansible.module_utils.hub_lookup import Hub
from ansible.module_utils.web import Reader

_spec = importlib.util.spec_from_file_location("module_test_web", Path(__file__).with_name("test_web.py"))
assert _spec
assert _spec.loader
web = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(web)

COMMIT = "c" * 40


def safetensors(tensors, padding=0):
    header = json.dumps({**tensors, "__metadata__": {"pad": "x" * padding}}).encode()
    return struct.pack("<Q", len(header)) + header + b"\0" * 4096


class FakeHub:
    """The protocol's three paths. ranges: whether it knows them; page: files a page."""

    def __init__(self, files, ranges=True, page=100):
        self.files, self.ranges, self.page, self.sent, self.asked = files, ranges, page, 0, []

    def __call__(self, request):
        path, _, query = request.path.partition("?")
        self.asked.append(path)
        if path.startswith("/api/models/org/name/revision/"):
            return web.answer(request, json.dumps({"sha": COMMIT}).encode())
        if path == f"/api/models/org/name/tree/{COMMIT}":
            return self.tree(request, query)
        if path.startswith(f"/org/name/resolve/{COMMIT}/"):
            return self.file(request, self.files[path.rsplit("/", 1)[1]])
        return web.answer(request, status=404, X_Error_Code="RepoNotFound")

    def tree(self, request, query):
        names = sorted(self.files)
        start = int(query.rpartition("cursor=")[2]) if "cursor=" in query else 0
        entries = [
            {
                "type": "file",
                "path": name,
                "size": len(self.files[name]),
                "oid": "x",
                **(
                    {"lfs": {"oid": "d" * 64, "size": len(self.files[name])}} if "safetensors" in name else {}
                ),
            }
            for name in names[start : start + self.page]
        ] + [{"type": "directory", "path": "original"}]
        more = {}
        if start + self.page < len(names):
            path = f"/api/models/org/name/tree/{COMMIT}?cursor={start + self.page}"
            link = f"http://{request.headers['Host']}{path}"
            more = {"Link": f'<{link}>; rel="next"'}
        web.answer(request, json.dumps(entries).encode(), **more)

    def file(self, request, body):
        wanted = request.headers.get("Range")
        if wanted and self.ranges:
            first, last = (int(part) for part in wanted.removeprefix("bytes=").split("-"))
            body = body[first : last + 1]
        self.sent += len(body)
        web.answer(request, body, 206 if wanted and self.ranges else 200)


TENSORS = {f"model.layers.{n}.up.weight": {"dtype": "BF16", "data_offsets": [0, 100]} for n in range(3)}
FILES = {
    "config.json": b'{"model_type": "llama"}',
    "model-1.safetensors": safetensors(TENSORS),
    "model-2.safetensors": safetensors({"mtp.fc.weight": {"dtype": "BF16", "data_offsets": [0, 7]}}),
}


@pytest.mark.parametrize("ranges", [True, False])
@pytest.mark.parametrize("page", [100, 2])
def test_everything_about_a_model(ranges, page):
    hub = FakeHub(FILES, ranges, page)
    with web.serving(hub) as url:
        found = Hub(url + "/", "", Reader()).model("org/name", None)
    assert "error" not in found
    assert found["revision"] == COMMIT
    assert [entry["path"] for entry in found["files"]] == sorted(FILES)
    assert found["files"][1]["sha256"] == "d" * 64
    assert found["config"] == {"model_type": "llama"}
    assert found["tensors"] == [
        {"name": "model.layers.*.up.weight", "count": 3, "bytes": 300, "dtype": "BF16"},
        {"name": "mtp.fc.weight", "count": 1, "bytes": 7, "dtype": "BF16"},
    ]
    assert "/api/models/org/name/revision/main" in hub.asked


def test_a_long_header_takes_a_second_request():
    hub = FakeHub({"config.json": b"{}", "model.safetensors": safetensors(TENSORS, padding=400_000)})
    with web.serving(hub) as url:
        found = Hub(url, "", Reader()).model("org/name", "v1")
    assert found["tensors"][0]["count"] == 3


def test_weights_are_not_downloaded():
    hub = FakeHub({"config.json": b"{}", "model.safetensors": safetensors(TENSORS) + b"\0" * 5_000_000})
    with web.serving(hub) as url:
        Hub(url, "", Reader()).model("org/name", None)
    assert hub.sent < 600_000


@pytest.mark.parametrize(
    ("files", "detail"),
    [
        ({"config.json": b"not json"}, "config.json"),
        ({"config.json": b"{}", "a.safetensors": b"short"}, "no safetensors file"),
        ({"config.json": b"{}", "a.safetensors": struct.pack("<Q", 8) + b"nonsense"}, "a.safetensors"),
    ],
)
def test_a_broken_repository_is_told(files, detail):
    with web.serving(FakeHub(files)) as url:
        found = Hub(url, "", Reader()).model("org/name", None)
    assert found["error"] == "invalid"
    assert detail in found["detail"]


def test_a_repository_without_config_or_weights():
    with web.serving(FakeHub({"README.md": b"hello"})) as url:
        found = Hub(url, "", Reader()).model("org/name", None)
    assert (found["config"], found["tensors"]) == (None, None)


@pytest.mark.parametrize(
    ("handle", "error"),
    [
        (lambda request: web.answer(request, status=401, X_Error_Code="GatedRepo"), "unauthorized"),
        (lambda request: web.answer(request, status=403, X_Error_Code="GatedRepo"), "forbidden"),
        (lambda request: web.answer(request, status=404, X_Error_Code="RevisionNotFound"), "not-found"),
        (lambda request: web.answer(request, b'{"sha": "short"}'), "invalid"),
        (lambda request: web.answer(request, b"[]"), "invalid"),
        (lambda request: web.answer(request, b"<html>captive portal</html>"), "invalid"),
    ],
)
def test_why_there_is_nothing(handle, error):
    with web.serving(handle) as url:
        found = Hub(url, "hf_x", Reader()).model("org/name", "main")
    assert found["error"] == error
    assert "hf_x" not in json.dumps(found)


@pytest.mark.parametrize("repo", ["", "../../etc", "a b", "a?b", "é/ü", "a\nb"])
def test_odd_names_are_asked_for_or_refused(repo):
    with web.serving(FakeHub({})) as url:
        assert Hub(url, "", Reader()).model(repo, None)["error"]
