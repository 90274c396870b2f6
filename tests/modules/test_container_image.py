"""Fetching an image: what has come, and what to do when it does not."""

import pytest
from ansible.module_utils.docker_api import DockerError, Image
from ansible.module_utils.pull_problem import diagnose

from boxwright.ansible.modules import container_image
from boxwright.ansible.modules.container_image import Layers

DIGEST = "sha256:" + "a" * 64


def event(layer, status, current=None, total=None):
    return {
        "id": layer,
        "status": status,
        "progressDetail": {"current": current, "total": total} if total else {},
    }


def fed(*events):
    layers = Layers()
    for one in events:
        layers.event(one)
    return layers


@pytest.mark.parametrize(
    ("events", "done", "total", "unpacking"),
    [
        ([], 0, None, False),
        ([{"status": "Pulling from vllm/vllm-openai", "id": "v1"}], 0, None, False),
        ([event("a", "Pulling fs layer")], 0, None, False),
        ([event("a", "Pulling fs layer"), event("a", "Downloading", 3, 10)], 3, 10, False),
        ([event("a", "Downloading", 3, 10), event("b", "Waiting")], 3, None, False),
        ([event("a", "Downloading", 3, 10), event("b", "Already exists")], 3, 10, False),
        ([event("a", "Downloading", 3, 10), event("b", "Downloading", 1, 5), event("a", "Download complete")],
         11, 15, False),
        ([event("a", "Downloading", 3, 10), event("a", "Download complete"), event("a", "Extracting", 1, 10)],
         10, 10, True),
        ([event("a", "Already exists")], 0, 0, False),
        ([event("a", "Downloading", 3, 10), event("a", "Verifying Checksum"), event("a", "Pull complete")],
         10, 10, True),
        ([{"status": "Digest: sha256:x"}, {"status": "Status: Downloaded newer image"}], 0, None, False),
    ],
)  # fmt: skip
def test_bytes_add_up(events, done, total, unpacking):
    layers = fed(*events)
    assert (layers.done, layers.total, layers.unpacking) == (done, total, unpacking)


@pytest.mark.parametrize(
    ("said", "meant", "fix"),
    [
        ('Get "https://r:5000/v2/": http: server gave HTTP response to HTTPS client', "plain HTTP",
         'insecure-registries: ["r:5000"]'),
        ('Get "https://r:5000/v2/": tls: x509: certificate signed by unknown authority',
         "not trusted", "container_runtime_registries: [{host: r:5000, ca: …}]"),
        ("write /var/lib/docker/tmp/GetImageBlob1: no space left on device", "disk", "docker system df"),
        ("toomanyrequests: You have reached your pull rate limit", "too many downloads", "host: docker.io"),
        ("no matching manifest for linux/arm64/v8 in the manifest list entries", "architecture", "tag"),
        ("pull access denied for x, repository does not exist or may require 'docker login': denied", "login",
         "host: r:5000, username"),
        ("unauthorized: authentication required", "login", "host: r:5000, username"),
        ("manifest for r:5000/a:v9 not found: manifest unknown", "has no r:5000/a:v9", "tag"),
        ("manifest unknown", "has no r:5000/a:v9", "invoke update"),
        ('Get "https://r:5000/v2/": lookup r on 127.0.0.11:53: no such host', "cannot be resolved", "DNS"),
        ('Get "https://r:5000/v2/": dial tcp 10.0.0.1:5000: connect: connection refused', "cannot be reached",
         "network"),
        ('Get "https://r:5000/v2/": (Client.Timeout exceeded while awaiting headers)',
         "cannot be reached", "box_proxy"),
        ('Get "https://r:5000/v2/": proxyconnect tcp: dial tcp: lookup proxy: no such host',
         "proxy does not lead to r:5000", "box_proxy"),
        ('Get "https://r:5000/v2/": Proxy Authentication Required', "proxy does not lead", "box_no_proxy"),
        ("nothing came for 300 s", "cannot be reached", "network"),
        ("Docker does not answer on /run/docker.sock: x", "does not answer", "systemctl status docker"),
        ("something new", "could not fetch r:5000/a:v9: something new", "journalctl -u docker"),
    ],
)  # fmt: skip
def test_problems_have_a_meaning_and_a_way_out(said, meant, fix):
    problem = diagnose(said, "r:5000/a:v9", "r:5000")
    assert meant in problem.what
    assert fix in problem.fix


def test_docker_hub_has_a_name():
    assert "docker.io" in diagnose("manifest unknown", "vllm/vllm-openai:v9", None).what


def test_what_is_said_is_short():
    assert len(diagnose("x" * 5000, "a", None).what) < 400


class Engine:
    """An engine with some images, that fetches from a registry with others."""

    def __init__(self, here, there=(), error=None):
        self.here, self.there, self.error, self.pulled = set(here), set(there), error, []

    def image(self, image):
        return Image("sha256:id", DIGEST, 2_000_000_000) if image in self.here else None

    def pull(self, image, on_event, idle_timeout):
        self.pulled.append(image)
        on_event(event("a", "Downloading", 1, 2))
        if self.error:
            raise DockerError(self.error, 500)
        if image in self.there:
            self.here.add(image)


@pytest.fixture
def engine(monkeypatch):
    def use(*args, **kw):
        found = Engine(*args, **kw)
        monkeypatch.setattr(container_image, "Docker", lambda: found)
        return found

    return use


def test_what_is_here_is_not_fetched(engine, run_module):
    docker = engine(["a:v1"])
    result = run_module("container_image", image="a:v1")
    assert (result["changed"], result["digest"], docker.pulled) == (False, DIGEST, [])


def test_what_is_not_here_is_fetched(engine, run_module, tmp_path):
    docker = engine([], ["a:v1"])
    result = run_module("container_image", image="a:v1", progress_file=str(tmp_path / "progress"))
    assert (result["changed"], result["reference"], docker.pulled) == (True, f"a@{DIGEST}", ["a:v1"])
    assert "a:v1" in (tmp_path / "progress").read_text()


def test_the_locked_content_is_fetched_whatever_the_tag_means_today(engine, run_module):
    docker = engine(["a:v1"], [f"a@{DIGEST}"])
    assert run_module("container_image", image="a:v1", digest=DIGEST)["changed"] is True
    assert docker.pulled == [f"a@{DIGEST}"]


def test_check_mode_fetches_nothing(engine, run_module):
    docker = engine([], ["a:v1"])
    result = run_module("container_image", check=True, image="a:v1")
    assert (result["changed"], docker.pulled) == (True, [])


def test_a_failure_is_told_with_the_way_out(engine, run_module):
    engine([], error="manifest unknown")
    result = run_module("container_image", image="r:5000/a:v9")
    assert result["failed"] is True
    assert result["msg"].startswith("r:5000 has no r:5000/a:v9\nDo: ")


def test_an_engine_that_lies_is_told(engine, run_module):
    engine([], [])
    assert "does not have it" in run_module("container_image", image="a:v1")["msg"]
