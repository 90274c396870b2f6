"""A ModelScope hub: what it says of a model, and its bytes fetched, against a server that speaks its API."""

import hashlib
import json
import os
import subprocess
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from ansible.module_utils import python_environment, store_manifest, weight_sources
from ansible.module_utils.modelscope_lookup import MOST_LISTED, ModelScope
from ansible.module_utils.python_environment import Step, Wanted
from ansible.module_utils.web import Reader

from .conftest import REPOSITORY, safetensors

OLD, NEW = "1" * 40, "2" * 40
TOKEN = "ms-secret-token"
FILES = {**REPOSITORY, "model.safetensors": safetensors({"a.weight": ("F16", [1024, 1024], 2)})}


class Scope:
    """The hub and its storage: what was asked, with which secrets, and how many bytes left."""

    def __init__(self, files=FILES, private=False):
        self.files, self.private = dict(files), private
        self.asked, self.secrets, self.sent = [], [], {}
        self.faults = []
        self.extra = []
        self.storage = ""

    def entries(self):
        listed = [
            {
                "Path": path,
                "Name": path.rsplit("/", 1)[-1],
                "Type": "blob",
                "Size": len(content),
                "Sha256": hashlib.sha256(content).hexdigest(),
                # The weights came later than the rest.
                "Revision": NEW if path.endswith(".safetensors") else OLD,
                "CommittedDate": 1700000100 if path.endswith(".safetensors") else 1700000000,
            }
            for path, content in sorted(self.files.items())
        ]
        return [
            {"Path": "sub", "Type": "tree", "Revision": "3" * 40, "CommittedDate": 9e9},
            *listed,
            *self.extra,
        ]

    def answer(self, request):
        parts = urlsplit(request.path)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        self.asked.append((parts.path, query.get("Revision"), query.get("FilePath")))
        self.secrets.append((request.headers.get("Authorization"), request.headers.get("Cookie")))
        if self.faults and not parts.path.endswith("/files"):
            status, headers = self.faults.pop()
            return self.say(request, status, b"{}", **headers)
        if self.private and request.headers.get("Authorization") != f"Bearer {TOKEN}":
            return self.say(request, 401, b'{"Code":10010101001,"Success":false,"Message":"login first"}')
        if parts.path == "/api/v1/models/acme/tiny/repo/files":
            if query["Revision"] not in ("master", OLD, NEW):
                return self.say(request, 404, b'{"Code":10010205002,"Success":false,"Message":"no revision"}')
            data = {"Code": 200, "Success": True, "Data": {"Files": self.entries()}}
            return self.say(request, 200, json.dumps(data).encode())
        if parts.path == "/api/v1/models/acme/tiny/repo" and query.get("FilePath") in self.files:
            place = f"{self.storage}/blob?file={query['FilePath']}"
            return self.say(request, 302, b"", Location=place)
        return self.say(request, 404, b'{"Code":10010205001,"Success":false,"Message":"record not found"}')

    def blob(self, request):
        path = parse_qs(urlsplit(request.path).query)["file"][0]
        self.secrets.append((request.headers.get("Authorization"), request.headers.get("Cookie"), "storage"))
        content = self.files[path]
        first, _, last = (request.headers.get("Range") or "bytes=0-").removeprefix("bytes=").partition("-")
        part = content[int(first) : int(last) + 1 if last else None]
        self.sent[path] = self.sent.get(path, 0) + len(part)
        span = f"bytes {first}-{int(first) + len(part) - 1}/{len(content)}"
        self.say(request, 206, part, **{"Content-Range": span})

    @staticmethod
    def say(request, status, body, **headers):
        request.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            request.send_header(name, value)
        request.end_headers()
        request.wfile.write(body)


@contextmanager
def serving(answer):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            answer(self)

        def log_message(self, *arguments):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture
def scope():
    made = Scope()
    with serving(made.blob) as storage, serving(made.answer) as url:
        made.storage, made.url = storage, url
        yield made


def model(scope, revision=None, token="", repo="acme/tiny"):
    return ModelScope(scope.url, token, Reader()).model(repo, revision)


@pytest.mark.parametrize(("revision", "commit"), [(None, NEW), ("master", NEW), (NEW, NEW), (OLD, OLD)])
def test_everything_about_a_model(scope, revision, commit):
    found = model(scope, revision)
    assert "error" not in found, found
    assert found["revision"] == commit
    assert {one["path"]: one["sha256"] for one in found["files"]} == {
        path: hashlib.sha256(content).hexdigest() for path, content in FILES.items()
    }
    assert found["config"]["model_type"] == "qwen3"
    assert found["tensors"] == [{"name": "a.weight", "count": 1, "bytes": 2 << 20, "dtype": "F16"}]
    # What follows is asked at the commit, so that a branch that moves meanwhile mixes nothing.
    assert {asked[1] for asked in scope.asked[0 if commit == revision else 1 :]} == {commit}


@pytest.mark.parametrize(
    ("arguments", "error", "status"),
    [({"revision": "v9"}, "not-found", 404), ({"repo": "acme/other"}, "not-found", 404)],
)
def test_what_there_is_not(scope, arguments, error, status):
    found = model(scope, **arguments)
    assert (found["error"], found["status"]) == (error, status)


def test_a_private_model_wants_the_token_and_the_storage_does_not_hear_it(scope):
    scope.private = True
    assert model(scope)["error"] == "unauthorized"
    assert "error" not in model(scope, token=TOKEN)
    assert all(secret[:2] == (None, None) for secret in scope.secrets if len(secret) == 3)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda scope: setattr(scope, "extra", [{"Path": "x"}] * MOST_LISTED), "lists only 3000 files"),
        (lambda scope: setattr(scope, "files", {}), "names no commit for None of acme/tiny"),
    ],
)
def test_a_list_that_cannot_be_trusted(scope, change, words):
    change(scope)
    if not scope.files:
        scope.entries = lambda: []
    found = model(scope)
    assert found["error"] == "invalid"
    assert words in found["detail"]


@pytest.fixture
def call(tmp_path, run_module, prepared):
    """Run the module model_store for what the hub lists; no client may be started."""
    path = str(tmp_path / "venvs" / "hub")
    prepared(Wanted(path, [Step(["client==1.0"], [])], []))
    store = str(tmp_path / "box" / "models")

    def run(scope, token="", **arguments):
        listed = {
            "files": [
                {"path": path, "size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
                for path, content in scope.files.items()
            ]
        }
        weights = {
            "kind": "hub",
            "hub": "modelscope",
            "repo": "acme/tiny",
            "revision": NEW,
            "endpoint": scope.url,
            "files": listed["files"],
            "directory": f"{store}/acme--tiny/{NEW}",
        }
        environment = {
            "path": path,
            "packages": ["client==1.0"],
            "constraints": [],
            "index_url": "",
            "size": 0,
        }
        return run_module(
            "model_store",
            store=store,
            weights=[weights],
            environment=environment,
            client="raise SystemExit('the other hub\\'s client was started')",
            token=token,
            progress_file=str(tmp_path / "progress.json"),
            **{"reserve": 0, **arguments},
        ), Path(weights["directory"])

    return run


def test_fetched_and_verified(scope, call):
    result, directory = call(scope)
    assert result.get("changed"), result
    assert result["said"].startswith("acme/tiny: 3 files, 3 verified by sha256")
    wanted = {name: content for name, content in FILES.items() if name != "README.md"}
    assert {
        path.name: path.read_bytes() for path in directory.iterdir() if path.name != store_manifest.NAME
    } == wanted
    assert scope.sent == {name: len(content) for name, content in wanted.items()}
    assert {asked[1] for asked in scope.asked} == {NEW}
    again, _ = call(scope)
    assert not again["changed"]
    assert scope.sent == {name: len(content) for name, content in wanted.items()}


@pytest.mark.lab  # the client comes from the package index
def test_the_official_client_asks_for_the_same_and_gets_the_same(scope, call, tmp_path):
    environment = Wanted(str(tmp_path / "venvs" / "official"), [Step(["modelscope_hub==0.5.1"], [])], [])
    python_environment.ensure(environment, lambda stage: None)
    client, place = f"{environment.path}/bin/modelscope-hub", tmp_path / "official"
    words = [client, "download", "acme/tiny", "--revision", NEW, "--exclude", "README.md"]
    told = {**os.environ, "MODELSCOPE_ENDPOINT": scope.url, "HOME": str(tmp_path)}
    done = subprocess.run(
        [*words, "--local-dir", str(place)],
        env=told,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    asked_by_it = {asked for asked in scope.asked if asked[0].startswith("/api/v1/models/")}
    scope.asked.clear()
    result, directory = call(scope)
    assert result.get("changed"), result
    # The plan has asked for the list: the module asks for the files alone.
    assert set(scope.asked) == {asked for asked in asked_by_it if asked[2]}
    listed = next(asked for asked in asked_by_it if not asked[2])
    scope.asked.clear()
    assert "error" not in model(scope, NEW)
    assert listed in scope.asked
    assert {path.name: path.read_bytes() for path in place.iterdir() if path.is_file()} == {
        path.name: path.read_bytes() for path in directory.iterdir() if path.name != store_manifest.NAME
    }


def test_a_token_goes_to_the_hub_alone(scope, call):
    scope.private = True
    refused, directory = call(scope)
    assert refused["failed"]
    assert "without a token (401)" in refused["msg"]
    result, _ = call(scope, token=TOKEN)
    assert result.get("changed"), result
    assert (directory / "model.safetensors").read_bytes() == FILES["model.safetensors"]
    assert (f"Bearer {TOKEN}", f"m_session_id={TOKEN}") in scope.secrets
    assert all(secret[:2] == (None, None) for secret in scope.secrets if len(secret) == 3)
    assert TOKEN not in json.dumps(result)


def test_a_hub_that_asks_to_wait_and_one_with_a_fault_of_its_own(scope, call):
    scope.faults = [(429, {"Retry-After": "1"}), (502, {})]
    result, directory = call(scope)
    assert result.get("changed"), result
    assert (directory / "model.safetensors").read_bytes() == FILES["model.safetensors"]
    assert scope.sent["model.safetensors"] == len(FILES["model.safetensors"])


def test_other_bytes_than_the_hub_records_are_not_kept(scope, call):
    right = scope.files["model.safetensors"]
    result_files = dict(scope.files)
    flipped = right[:-1] + bytes([right[-1] ^ 1])

    class Lying(dict):
        def __getitem__(self, path):
            return flipped if path == "model.safetensors" else super().__getitem__(path)

    scope.files = Lying(result_files)
    result, directory = call(scope)
    assert result["failed"], result
    assert "model.safetensors" in result["msg"]
    assert not directory.exists()


def test_every_character_of_a_path_reaches_the_hub():
    place = weight_sources.modelscope_lookup.place("acme/tiny", NEW, "sub folder/a&b=c+d.json")
    asked = parse_qs(urlsplit(place).query)
    assert asked == {"Revision": [NEW], "FilePath": ["sub folder/a&b=c+d.json"]}
