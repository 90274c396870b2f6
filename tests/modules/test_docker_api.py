"""The engine's API on a socket: references, images, watched pulls, and what goes wrong."""

import base64
import http.server
import json
import socketserver
import threading

import pytest
from ansible.module_utils import registry_logins
from ansible.module_utils.command import Result
from ansible.module_utils.docker_api import Docker, DockerError, Reference, parse_reference

DIGEST = "sha256:" + "a" * 64
OTHER = "sha256:" + "b" * 64


@pytest.mark.parametrize(
    ("image", "repository", "tag", "digest", "registry"),
    [
        ("ubuntu", "ubuntu", "latest", None, None),
        ("library/ubuntu:24.04", "ubuntu", "24.04", None, None),
        ("docker.io/vllm/vllm-openai:v0.29.0", "vllm/vllm-openai", "v0.29.0", None, None),
        ("vllm/vllm-openai", "vllm/vllm-openai", "latest", None, None),
        ("vllm/vllm-openai@" + DIGEST, "vllm/vllm-openai", None, DIGEST, None),
        ("vllm/vllm-openai:v1@" + DIGEST, "vllm/vllm-openai", "v1", DIGEST, None),
        ("depot.lab:5000/a/b:v1", "depot.lab:5000/a/b", "v1", None, "depot.lab:5000"),
        ("depot.lab:5000/b", "depot.lab:5000/b", "latest", None, "depot.lab:5000"),
        ("localhost/b:x", "localhost/b", "x", None, "localhost"),
        ("ghcr.io/o/i:t", "ghcr.io/o/i", "t", None, "ghcr.io"),
    ],
)
def test_references(image, repository, tag, digest, registry):
    found = parse_reference(image)
    assert found == Reference(repository, tag, digest)
    assert found.registry == registry
    assert found.pinned(OTHER) == f"{repository}@{OTHER}"


class Engine(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        pass  # a client that hung up


@pytest.fixture
def engine(tmp_path):
    """An engine whose replies are replies[path]: (status, lines of JSON); it keeps what it was asked."""
    replies, asked = {}, []

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self):
            asked.append((self.command, self.path, dict(self.headers)))
            status, lines = replies.get(self.path.partition("?")[0], (404, [{"message": "no such thing"}]))
            body = b"".join(json.dumps(line).encode() + b"\r\n" for line in lines)
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_DELETE = answer

        def address_string(self):
            return "socket"

        def log_message(self, *_):
            pass

    path = str(tmp_path / "docker.sock")
    server = Engine(path, Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    found = Docker(path)
    found.replies, found.asked = replies, asked
    yield found
    server.shutdown()
    server.server_close()


def test_no_engine_is_said(tmp_path):
    with pytest.raises(DockerError, match=r"does not answer on .*docker\.sock"):
        Docker(str(tmp_path / "docker.sock")).version()


def test_an_image_by_tag_has_the_digest_of_its_own_repository(engine):
    engine.replies["/images/depot:5000/a:v1/json"] = (
        200,
        [{"Id": "sha256:id", "Size": 5, "RepoDigests": [f"mirror/a@{OTHER}", f"depot:5000/a@{DIGEST}"]}],
    )
    found = engine.image("depot:5000/a:v1")
    assert (found.digest, found.size) == (DIGEST, 5)
    assert found.reference("depot:5000/a:v1") == f"depot:5000/a@{DIGEST}"


def test_every_name_of_an_image(engine):
    engine.replies["/images/sha256:id/json"] = (
        200,
        [{"Id": "sha256:id", "RepoTags": ["a:v1", "b:v1"], "RepoDigests": [f"a@{DIGEST}"]}],
    )
    assert engine.names("sha256:id") == ["a:v1", "b:v1", f"a@{DIGEST}"]
    assert engine.names("sha256:gone") == []


def test_a_name_is_taken_from_an_image_unless_a_container_needs_it(engine):
    engine.replies[f"/images/a@{DIGEST}"] = (200, [[{"Untagged": f"a@{DIGEST}"}]])
    assert engine.remove_image(f"a@{DIGEST}") is True
    assert engine.asked[-1][:2] == ("DELETE", f"/images/a@{DIGEST}")
    engine.replies["/images/a:v1"] = (409, [{"message": "conflict: container 1 is using it"}])
    assert engine.remove_image("a:v1") is False
    assert engine.remove_image("a:v2") is False
    engine.replies["/images/a:v1"] = (500, [{"message": "driver failed"}])
    with pytest.raises(DockerError, match="driver failed"):
        engine.remove_image("a:v1")


def test_of_several_digests_the_one_asked_for(engine):
    engine.replies[f"/images/a@{DIGEST}/json"] = (
        200,
        [{"Id": "sha256:id", "RepoDigests": [f"a@{OTHER}", f"a@{DIGEST}"]}],
    )
    assert engine.image(f"a@{DIGEST}").digest == DIGEST


def test_an_image_that_was_in_no_registry_is_named_by_its_id(engine):
    engine.replies["/images/a:v1/json"] = (200, [{"Id": "sha256:id", "RepoDigests": []}])
    found = engine.image("a:v1")
    assert found.digest is None
    assert found.reference("a:v1") == "sha256:id"


def test_an_image_that_is_not_here_is_none(engine):
    assert engine.image("a:v1") is None
    assert engine.container("x") is None


def test_another_error_is_one(engine):
    engine.replies["/images/a:v1/json"] = (500, [{"message": "broken store"}])
    with pytest.raises(DockerError, match="broken store"):
        engine.image("a:v1")


@pytest.mark.parametrize(
    ("image", "query"),
    [
        ("depot:5000/a/b:v1", "fromImage=depot%3A5000%2Fa%2Fb&tag=v1"),
        ("a@" + DIGEST, "fromImage=a&tag=sha256%3A" + "a" * 64),
        ("a", "fromImage=a&tag=latest"),
    ],
)
def test_a_pull_hands_its_events_on(engine, image, query, monkeypatch, tmp_path):
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    events = [{"status": "Pulling fs layer", "id": "1"}, {"status": "Pull complete", "id": "1"}]
    engine.replies["/images/create"] = (200, events)
    seen = []
    engine.pull(image, seen.append, 5)
    assert seen == events
    assert engine.asked[0][1] == "/images/create?" + query
    assert "X-Registry-Auth" not in engine.asked[0][2]


@pytest.mark.parametrize(
    "reply",
    [
        (
            200,
            [
                {"status": "Downloading"},
                {"errorDetail": {"message": "no space left"}, "error": "no space left"},
            ],
        ),
        (500, [{"message": "no space left"}]),
    ],
)
def test_a_pull_that_fails_says_why(engine, reply):
    engine.replies["/images/create"] = reply
    with pytest.raises(DockerError, match="no space left"):
        engine.pull("a:v1", lambda event: None, 5)


def login(tmp_path, monkeypatch, config):
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    (tmp_path / "config.json").write_text(config if isinstance(config, str) else json.dumps(config))


def test_a_login_goes_with_a_pull_to_its_own_registry_alone(engine, tmp_path, monkeypatch):
    auth = base64.b64encode(b"me:a:b").decode()
    login(tmp_path, monkeypatch, {"auths": {"depot:5000": {"auth": auth}}})
    engine.replies["/images/create"] = (200, [])
    engine.pull("depot:5000/a:v1", lambda event: None, 5)
    engine.pull("other:5000/a:v1", lambda event: None, 5)
    sent = json.loads(base64.urlsafe_b64decode(engine.asked[0][2]["X-Registry-Auth"]))
    assert sent == {"username": "me", "password": "a:b", "serveraddress": "depot:5000"}
    assert "X-Registry-Auth" not in engine.asked[1][2]


def test_docker_hubs_login_has_a_name_of_its_own(engine, tmp_path, monkeypatch):
    auth = base64.b64encode(b"me:secret").decode()
    login(tmp_path, monkeypatch, {"auths": {"https://index.docker.io/v1/": {"auth": auth}}})
    engine.replies["/images/create"] = (200, [])
    engine.pull("vllm/vllm-openai:v1", lambda event: None, 5)
    assert json.loads(base64.urlsafe_b64decode(engine.asked[0][2]["X-Registry-Auth"]))["username"] == "me"


def test_a_login_file_that_is_broken_is_named(engine, tmp_path, monkeypatch):
    login(tmp_path, monkeypatch, "{")
    with pytest.raises(DockerError, match=r"logins cannot be read: .*config\.json:1 is not valid JSON"):
        engine.pull("a:v1", lambda event: None, 5)


def test_a_credential_helper_is_asked(engine, tmp_path, monkeypatch):
    login(tmp_path, monkeypatch, {"credHelpers": {"depot:5000": "test"}})
    monkeypatch.setattr(
        registry_logins,
        "run",
        lambda argv, **kw: Result(0, json.dumps({"Username": argv[0], "Secret": kw["stdin"]}), ""),
    )
    engine.replies["/images/create"] = (200, [])
    engine.pull("depot:5000/a:v1", lambda event: None, 5)
    sent = json.loads(base64.urlsafe_b64decode(engine.asked[0][2]["X-Registry-Auth"]))
    assert (sent["username"], sent["password"]) == ("docker-credential-test", "depot:5000")


def test_no_container_of_a_name_is_left(engine):
    path = "/containers/boxwright-qwen"
    engine.remove_container("boxwright-qwen")
    assert engine.asked[-1][:2] == ("DELETE", path + "?force=true")
    for status, said in ((204, []), (409, [{"message": "removal of it is already in progress"}])):
        engine.replies[path] = (status, said)
        engine.remove_container("boxwright-qwen")
    engine.replies[path] = (500, [{"message": "driver failed"}])
    with pytest.raises(DockerError, match="driver failed"):
        engine.remove_container("boxwright-qwen")
