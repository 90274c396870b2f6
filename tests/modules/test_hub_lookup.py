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
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"a" * 64 + b"\nsize 5000000000\n"
CONFIG = {"config.json": b"{}"}


def header(text):
    return struct.pack("<Q", len(text)) + text


def index(*names):
    return json.dumps({"weight_map": {f"tensor.{n}": name for n, name in enumerate(names)}}).encode()


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
        ({"config.json": POINTER}, "config.json of org/name is a Git LFS pointer"),
        ({"config.json": b"[]"}, "is not a JSON object"),
        ({"config.json": b'{"a":' * 90 + b"1" + b"}" * 90}, "nested deeper"),
        ({"config.json": b'{"a":' * 100_000}, "is not JSON"),
        ({"config.json": b"\xff\xfe{}"}, "is not JSON"),
        ({**CONFIG, "a.safetensors": POINTER}, "a.safetensors of org/name is a Git LFS pointer"),
        ({**CONFIG, "a.safetensors": b""}, "it is empty"),
        ({**CONFIG, "a.safetensors": struct.pack("<Q", 90_000_000) + b"{}"}, "it is cut off"),
        ({**CONFIG, "a.safetensors": struct.pack("<Q", 1 << 63)}, "no safetensors file"),
        ({**CONFIG, "a.safetensors": header(b"[" * 50_000)}, "a header that is not JSON"),
        ({**CONFIG, "a.safetensors": header(b"[1, 2, 3]")}, "a header that is no object"),
        (
            {**CONFIG, "a.safetensors": header(b'{"t": {"dtype": "F16", "data_offsets": [9, 3]}}')},
            "without a size, t",
        ),
        (
            {**CONFIG, "a.safetensors": header(b'{"t": {"dtype": "F16", "data_offsets": [0, 9e99]}}')},
            "without a size",
        ),
        (
            {**CONFIG, "a.safetensors": header(b'{"t": {"dtype": "F16", "data_offsets": [0, 99]}}')},
            "lacks 99 of",
        ),
        (
            {**CONFIG, "a.safetensors": header(b'{"t": {"dtype": "F16", "data_offsets": [true, 9]}}')},
            "without a size",
        ),
        (
            {**CONFIG, "model.safetensors.index.json": index("gone.safetensors")},
            "names gone.safetensors, which it lacks",
        ),
        ({**CONFIG, "model.safetensors.index.json": b"{}"}, "is no index of weights"),
        ({**CONFIG, "hf_quant_config.json": b"x"}, "hf_quant_config.json of org/name is not JSON"),
    ],
)
def test_a_broken_repository_is_told(files, detail):
    with web.serving(FakeHub(files)) as url:
        found = Hub(url, "", Reader()).model("org/name", None)
    assert found["error"] == "invalid"
    assert detail in found["detail"]


def test_more_kinds_of_tensors_than_any_model_has_are_refused():
    many = {f"{chr(97 + n % 26)}{n}x.w": {"dtype": "F16", "data_offsets": [0, 1]} for n in range(6000)}
    with web.serving(FakeHub({**CONFIG, "a.safetensors": safetensors(many)})) as url:
        found = Hub(url, "", Reader()).model("org/name", None)
    assert "more kinds of tensors" in found["detail"]


def test_only_what_the_index_names_is_loaded():
    extra = safetensors({"mtp.fc.weight": {"dtype": "BF16", "data_offsets": [0, 7]}})
    files = {
        **FILES,
        "mtp.safetensors": extra,
        "consolidated.safetensors": extra,
        "onnx/x.safetensors": b"no",
    }
    files["model.safetensors.index.json"] = index("model-1.safetensors")
    with web.serving(FakeHub(files)) as url:
        found = Hub(url, "", Reader()).model("org/name", None)
    assert found["loaded"] == ["model-1.safetensors"]
    assert [group["name"] for group in found["tensors"]] == ["model.layers.*.up.weight"]


def test_without_an_index_a_second_copy_is_not_counted():
    files = {
        **CONFIG,
        "model.safetensors": safetensors(TENSORS),
        "consolidated.safetensors": safetensors(TENSORS),
    }
    with web.serving(FakeHub(files)) as url:
        found = Hub(url, "", Reader()).model("org/name", None)
    assert (found["loaded"], found["tensors"][0]["count"]) == ([], 3)


def test_an_older_modelopt_checkpoint_says_its_numbers_beside_the_config():
    said = {"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "NVFP4"}}
    with web.serving(FakeHub({**CONFIG, "hf_quant_config.json": json.dumps(said).encode()})) as url:
        found = Hub(url, "", Reader()).model("org/name", None)
    assert found["config"]["quantization_config"] == said


def test_a_mirror_may_name_the_origin_for_the_next_page():
    class Mirror(FakeHub):
        def tree(self, request, query):
            request.headers.replace_header("Host", "origin.invalid")
            super().tree(request, query)

    with web.serving(Mirror(FILES, page=1)) as url:
        found = Hub(url, "", Reader()).model("org/name", None)
    assert [entry["path"] for entry in found["files"]] == sorted(FILES)


def test_a_list_that_goes_on_nowhere_is_no_whole_list():
    def tree(request):
        if "/tree/" in request.path:
            return web.answer(request, b"[]", Link='<http://x.invalid/next>; rel="next"')
        return web.answer(request, json.dumps({"sha": COMMIT}).encode())

    with web.serving(tree) as url:
        assert "goes on nowhere" in Hub(url, "", Reader()).model("org/name", None)["detail"]


def test_other_bytes_than_were_asked_for_are_not_taken():
    class Odd(FakeHub):
        def file(self, request, body):
            web.answer(request, body[:10], 206, Content_Range="bytes 5-14/100")

    with web.serving(Odd(FILES)) as url:
        assert "other bytes came" in Hub(url, "", Reader()).model("org/name", None)["detail"]


@pytest.mark.parametrize("headers", [{"Retry_After": "0"}, {}])
@pytest.mark.parametrize("status", [429, 502])
def test_a_busy_hub_is_asked_again(status, headers, monkeypatch):
    monkeypatch.setattr("ansible.module_utils.hub_lookup.time.sleep", lambda _: None)
    hub, refusals = FakeHub(FILES), [1, 1]

    def busy(request):
        if refusals:
            refusals.pop()
            return web.answer(request, status=status, **headers)
        return hub(request)

    with web.serving(busy) as url:
        assert "error" not in Hub(url, "", Reader()).model("org/name", None)


@pytest.mark.parametrize(("wait", "asked"), [("3600", 1), ("0", 3)])
def test_a_hub_that_stays_busy_is_told_as_such(wait, asked, monkeypatch):
    monkeypatch.setattr("ansible.module_utils.hub_lookup.time.sleep", lambda _: None)
    seen = []

    def busy(request):
        seen.append(request.path)
        web.answer(request, status=429, Retry_After=wait)

    with web.serving(busy) as url:
        found = Hub(url, "", Reader()).model("org/name", None)
    assert (found["error"], found["status"], len(seen)) == ("rate-limited", 429, asked)


def test_the_token_does_not_go_to_where_the_files_lie():
    seen = {}
    storage = FakeHub(FILES)

    def files(request):
        seen.setdefault("storage", set()).add(request.headers.get("Authorization"))
        storage.file(request, FILES[request.path.rsplit("/", 1)[1]])

    with web.serving(files) as elsewhere:

        def api(request):
            seen.setdefault("hub", set()).add(request.headers.get("Authorization"))
            if "/resolve/" in request.path:
                place = elsewhere.replace("127.0.0.1", "localhost") + request.path
                return web.answer(request, status=302, Location=place)
            return FakeHub(FILES)(request)

        with web.serving(api) as url:
            found = Hub(url, "hf_secret", Reader()).model("org/name", None)
    assert "error" not in found, found
    assert seen == {"storage": {None}, "hub": {"Bearer hf_secret"}}


def test_a_renamed_repository_is_followed_with_the_token():
    seen = []

    def renamed(request):
        if request.path.startswith("/api/models/old/name"):
            return web.answer(request, status=307, Location=request.path.replace("old/name", "org/name"))
        seen.append(request.headers.get("Authorization"))
        request.path = request.path.replace("old/name", "org/name")
        return FakeHub(FILES)(request)

    with web.serving(renamed) as url:
        assert "error" not in Hub(url, "hf_secret", Reader()).model("old/name", None)
    assert set(seen) == {"Bearer hf_secret"}


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
