"""What a registry says of an image, without its layers."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest
from ansible.module_utils.registry_lookup import Registry, reference
from ansible.module_utils.web import Reader

_spec = importlib.util.spec_from_file_location("module_test_web", Path(__file__).with_name("test_web.py"))
assert _spec
assert _spec.loader
web = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(web)

DIGEST = "sha256:" + "a" * 64
CONFIG = {"config": {"Env": ["PATH=/bin", "CUDA_VERSION=13.0.2", "NVIDIA_REQUIRE_CUDA=cuda>=13.0", "X=1"]}}
MANIFEST = {"layers": [{"size": 100}, {"size": 23}], "config": {"digest": DIGEST}}
INDEX = {
    "manifests": [
        {"platform": {"os": "linux", "architecture": "arm64"}, "digest": "sha256:arm"},
        {"platform": {"os": "linux", "architecture": "amd64"}, "digest": "sha256:amd"},
    ]
}


def registry(first):
    def handle(request):
        if request.path == "/v2/org/name/manifests/v1":
            return web.answer(request, json.dumps(first).encode(), Docker_Content_Digest="sha256:top")
        if request.path == "/v2/org/name/manifests/sha256:amd":
            return web.answer(request, json.dumps(MANIFEST).encode())
        if request.path == f"/v2/org/name/blobs/{DIGEST}":
            return web.answer(request, json.dumps(CONFIG).encode())
        return web.answer(request, status=404)

    return handle


def look(handle, name="org/name:v1", architecture="x86_64"):
    with web.serving(handle) as url:
        host = url.removeprefix("http://")
        return Registry(Reader(timeout=3), [host], architecture).image(f"{host}/{name}")


@pytest.mark.parametrize("first", [MANIFEST, INDEX])
def test_size_digest_and_cuda_of_an_image(first):
    found = look(registry(first))
    assert (found["digest"], found["size"]) == ("sha256:top", 123)
    assert found["env"] == {"CUDA_VERSION": "13.0.2", "NVIDIA_REQUIRE_CUDA": "cuda>=13.0"}


def test_no_build_for_the_hosts_processor():
    found = look(registry(INDEX), architecture="riscv64")
    assert found["error"] == "not-found"
    assert "linux/riscv64" in found["detail"]


def test_a_tag_that_is_not_there():
    assert look(registry(MANIFEST), "org/name:v2")["error"] == "not-found"


@pytest.mark.parametrize("body", [b"{}", b"[]", b'{"layers": 1}', b'{"layers": [], "config": {}}', b"<html>"])
def test_answers_that_are_no_manifest(body):
    assert look(lambda request: web.answer(request, body))["error"] == "invalid"


def test_a_login_that_is_not_anonymous():
    def handle(request):
        web.answer(request, status=401, WWW_Authenticate='Basic realm="registry"')

    assert look(handle)["error"] == "unauthorized"


def test_a_token_is_only_fetched_over_tls():
    def handle(request):
        web.answer(request, status=401, WWW_Authenticate='Bearer realm="http://elsewhere/token",service="x"')

    assert look(handle)["error"] == "unauthorized"


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("debian", ("docker.io", "library/debian", "latest")),
        ("vllm/vllm-openai:v0.29.0", ("docker.io", "vllm/vllm-openai", "v0.29.0")),
        ("host:5000/a/b:c", ("host:5000", "a/b", "c")),
        ("ghcr.io/a/b@sha256:12", ("ghcr.io", "a/b", "sha256:12")),
        ("localhost/a", ("localhost", "a", "latest")),
    ],
)
def test_references(text, parts):
    assert tuple(reference(text)) == parts


@pytest.mark.parametrize("text", ["", ":", "@", "a b", "http://x", "host:port/x", "é", "\n"])
def test_odd_references_are_no_exception(text):
    assert Registry(Reader(timeout=1, deadline=2), [], "x86_64").image(text)["error"]


@pytest.mark.parametrize(
    ("login", "error"),
    [("bWU6cGFzcw==", None), ("d3Jvbmc6b25l", "unauthorized"), (None, "unauthorized")],
)
def test_a_registry_with_a_login(login, error):
    images = registry(MANIFEST)

    def handle(request):
        if request.headers.get("Authorization") != "Basic bWU6cGFzcw==":
            return web.answer(request, status=401, WWW_Authenticate='Basic realm="lab"')
        return images(request)

    with web.serving(handle) as url:
        host = url.removeprefix("http://")
        found = Registry(Reader(timeout=3), [host], "x86_64", lambda asked: login if asked == host else "x")
        assert found.image(f"{host}/org/name:v1").get("error") == error


def test_a_host_without_the_proxy(monkeypatch):
    seen = []

    def handle(request):
        seen.append(request.path)
        return web.answer(request, b"{}")

    with web.serving(handle) as proxy, web.serving(handle) as here:
        reader = Reader(timeout=3, proxy=proxy, direct=["127.0.0.1"])
        reader.get(here + "/direct")
        Reader(timeout=3, proxy=proxy, direct=[".example.org"]).get(here + "/by-proxy")
    assert seen == ["/direct", here + "/by-proxy"]
