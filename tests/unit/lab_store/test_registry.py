"""Sending an image to a registry: a small one that checks digests as a real one does."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
import threading
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from boxwright.errors import UserError
from boxwright.lab.store import engine_image
from boxwright.lab.store.layers import Layer
from boxwright.lab.store.registry import LAYER, MANIFEST, Registry, digest_of, manifest


class RegistryHandler(BaseHTTPRequestHandler):
    """The part of the distribution specification that a push and the look before it need."""

    protocol_version = "HTTP/1.1"
    blobs: dict[str, bytes]
    tags: dict[str, bytes]
    asked: list[tuple[str, str]]

    def handle_any(self):
        path = urllib.parse.urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        kind = path.path.split("/")[4]
        self.asked.append((self.command, kind))
        if self.command == "POST":
            self.answer(202, Location=f"{path.path}upload-1?_state=x")
        elif self.command == "PUT" and kind == "blobs":
            digest = dict(urllib.parse.parse_qsl(path.query))["digest"]
            if digest != digest_of(body):
                self.answer(400, json.dumps({"errors": [{"code": "DIGEST_INVALID", "message": "no match"}]}))
                return
            self.blobs[digest] = body
            self.answer(201)
        elif self.command == "PUT":
            named = json.loads(body)
            if not all(each["digest"] in self.blobs for each in (named["config"], *named["layers"])):
                self.answer(400, json.dumps({"errors": [{"code": "MANIFEST_BLOB_UNKNOWN", "message": ""}]}))
                return
            self.tags[path.path.rpartition("/")[2]] = body
            self.answer(201)
        elif kind == "manifests" and (found := self.tags.get(path.path.rpartition("/")[2])):
            self.answer(200, **{"Docker-Content-Digest": digest_of(found)})
        else:
            self.answer(200 if path.path.rpartition("/")[2] in self.blobs else 404)

    do_HEAD = do_POST = do_PUT = handle_any

    def answer(self, status: int, body: str = "", **headers: str):
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *args):
        pass


@pytest.fixture
def server():
    handler = type("Fresh", (RegistryHandler,), {"blobs": {}, "tags": {}, "asked": []})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        threading.Thread(target=running.serve_forever, args=(0.05,), daemon=True).start()
        handler.url = f"http://127.0.0.1:{running.server_address[1]}"
        yield handler
        running.shutdown()


def layer(content: bytes) -> Layer:
    return Layer.of(lambda: iter([content[:3], content[3:]]))


def test_a_layer_is_sent_once(server):
    registry, sent = Registry(server.url, "vllm/vllm-openai"), layer(b"layer content")
    registry.put_layer(sent)
    registry.put_layer(sent)
    assert server.blobs == {sent.digest: b"layer content"}
    assert [method for method, _ in server.asked] == ["HEAD", "POST", "PUT", "HEAD"]


def test_a_layer_that_changed_since_it_was_read_is_refused(server):
    wrong = Layer(layer(b"before").digest, 6, lambda: iter([b"after!"]))
    with pytest.raises(UserError) as refused:
        Registry(server.url, "a/b").put_layer(wrong)
    assert "DIGEST_INVALID" in str(refused.value)


def test_a_manifest_names_config_and_layers(server):
    registry, parts, config = Registry(server.url, "a/b"), [layer(b"one"), layer(b"two!")], b'{"os": "linux"}'
    content = manifest(config, parts)
    with pytest.raises(UserError, match="refused PUT"):
        registry.put_manifest("v1", content)
    for part in parts:
        registry.put_layer(part)
    registry.put_bytes(config)
    registry.put_manifest("v1", content)
    assert registry.digest_of("v1") == f"sha256:{hashlib.sha256(content).hexdigest()}"
    assert registry.digest_of("v2") is None
    value = json.loads(content)
    assert value["mediaType"] == MANIFEST
    assert [(each["mediaType"], each["size"]) for each in value["layers"]] == [(LAYER, 3), (LAYER, 4)]


def test_a_registry_that_is_not_there_is_named():
    with pytest.raises(UserError) as told:
        Registry("http://127.0.0.1:1", "a/b").has_blob("sha256:0")
    assert "http://127.0.0.1:1" in str(told.value)


def test_pushing_the_image_again_sends_nothing(server, monkeypatch, tmp_path):
    parts = [layer(b"base"), layer(b"packages"), layer(b"code")]
    monkeypatch.setattr(engine_image, "image_layers", lambda cache, report, release: parts)
    said: list[str] = []
    engine_image.push(server.url, tmp_path, said.append)
    assert set(server.tags) == {"v0.32.0", "v0.32.0-cu129"}
    assert len(said) == 1
    server.asked.clear()
    engine_image.push(server.url, tmp_path, said.append)
    assert {method for method, _ in server.asked} == {"HEAD"}
    assert len(said) == 1


def test_an_earlier_release_has_its_own_tag_and_version(server, monkeypatch, tmp_path):
    parts = [layer(b"base"), layer(b"packages"), layer(b"code")]
    monkeypatch.setattr(engine_image, "image_layers", lambda cache, report, release: parts)
    engine_image.push(server.url, tmp_path, lambda text: None, "0.29.0")
    assert set(server.tags) == {"v0.29.0"}
    labels = json.loads(engine_image.configuration("13.0.2", parts, "0.29.0"))["config"]["Labels"]
    assert labels["org.opencontainers.image.version"] == "0.29.0"


def test_the_image_looks_like_the_official_one():
    config = json.loads(engine_image.configuration("13.0.2", [layer(b"x")]))
    assert config["config"]["Entrypoint"] == ["vllm", "serve"]
    assert "CUDA_VERSION=13.0.2" in config["config"]["Env"]
    assert "NVIDIA_REQUIRE_CUDA=cuda>=13.0" in config["config"]["Env"]
    assert config["rootfs"]["diff_ids"] == [layer(b"x").digest]


def test_the_image_has_the_official_ones_user(tmp_path):
    base = tmp_path / "base.tar"
    with tarfile.open(base, "w") as archive:
        member = tarfile.TarInfo("./etc/passwd")
        member.size = 5
        archive.addfile(member, io.BytesIO(b"root\n"))
    path, content, mode = engine_image.accounts(base)
    assert (path, mode) == ("/etc/passwd", 0o644)
    assert content == b"root\nvllm:x:2000:0::/home/vllm:/usr/sbin/nologin\n"
