"""What a client of the gateway sees: WHAT to look at. Says what is otherwise than it should be, and fails."""

import http.client
import json
import ssl
import subprocess
import sys
import time
from pathlib import Path

CA, ALICE, BOB = "/root/gateway-ca.pem", "the-key-of-alice-0001", "the-key-of-bob-000002"


def open_request(path, body=None, key=ALICE, method=None):
    """The answer, not read yet."""
    connection = http.client.HTTPSConnection(
        "127.0.0.1", 8443, timeout=30, context=ssl.create_default_context(cafile=CA)
    )
    headers = {"Authorization": "Bearer " + key} if key else {}
    connection.request(
        method or ("POST" if body else "GET"), path, json.dumps(body) if body else None, headers
    )
    return connection.getresponse()


def ask(path, body=None, key=ALICE, method=None):
    """Status and value of an answer."""
    answer = open_request(path, body, key, method)
    text = answer.read().decode()
    try:
        return answer.status, json.loads(text)
    except ValueError:
        return answer.status, text


def by(count, **more):
    """Who answers so many requests for the shared model."""
    found = [ask("/v1/chat/completions", {"model": "shared", **more}) for _ in range(count)]
    assert all(status == 200 for status, _ in found), found
    return {value["by"] for _, value in found}


def refused(answer, status, code):
    """Refused as OpenAI refuses."""
    assert answer[0] == status, answer
    error = answer[1]["error"]
    assert error["code"] == code, answer
    assert set(error) == {"message", "type", "param", "code"}, answer


def access():
    """Keys, limits, paths and models."""
    for path in ("/v1/models", "/metrics", "/v1/chat/completions"):
        refused(ask(path, key=""), 401, "invalid_api_key")
        refused(ask(path, key="key-of-b-0000000002"), 401, "invalid_api_key")
    assert [one["id"] for one in ask("/v1/models")[1]["data"]] == ["own", "shared"]
    closed = (
        "/metrics",
        "/invocations",
        "/v1/../metrics",
        "/v1/%2e%2e/metrics",
        "/v1/load_lora_adapter",
        "/health/",
    )
    for path in closed:
        refused(ask(path, {"model": "shared"}), 404, "unknown_url")
    refused(ask("/v1/chat/completions", {"model": "stranger"}), 404, "model_not_found")
    refused(ask("/v1/chat/completions", {"prompt": "no model"}), 404, "model_not_found")
    assert ask("/tokenize", {"model": "own"}) == (200, {"by": "own", "path": "/tokenize"})
    assert by(8) == {"box-a", "box-b"}
    assert by(4, busy="box-a") == {"box-b"}
    limited = [ask("/v1/completions", {"model": "own"}, BOB)[0] for _ in range(3)]
    assert limited == [200, 200, 200], limited
    refused(ask("/v1/completions", {"model": "own"}, BOB), 429, "rate_limit_exceeded")


def stream():
    """A stream comes as it is made, and a reload of the gateway does not cut it."""
    answer = open_request("/v1/completions", {"model": "own", "stream": 15})
    seen = [(answer.readline(), time.monotonic())]
    subprocess.run(["systemctl", "reload", "boxwright-gateway"], check=True)
    for line in iter(answer.readline, b""):
        seen.append((line, time.monotonic()))
    assert [line for line, _ in seen] == [f"own {word}\n".encode() for word in range(15)], seen
    spread = seen[-1][1] - seen[0][1]
    assert spread > 1.0, f"all of the stream came within {spread:.2f} s"


def one(name):
    """One box alone answers."""
    assert by(6) == {name}


def both():
    """Both answer again, within half a minute."""
    until = time.monotonic() + 30
    while by(6) != {"box-a", "box-b"}:
        assert time.monotonic() < until, "one of the two does not come back"
        time.sleep(1)


def hidden():
    """No key stands in an argument or the journal, no client's in a file, and the files are root's."""
    keys = [b"key-of-a-", b"key-of-b-", b"key-of-own-", b"the-key-of-"]
    journal = ["journalctl", "--unit", "boxwright-gateway", "--no-pager"]
    told = subprocess.run(journal, check=True, capture_output=True).stdout
    assert b"alice POST" in told, told[-2000:]
    arguments = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists()]
    for key in keys:
        assert key not in told, f"{key} is in the journal"
        assert not [one for one in arguments if key in one], f"{key} is an argument"
    files = [path for path in Path("/etc/boxwright/gateway").rglob("*") if not path.is_symlink()]
    assert files
    for path in files:
        assert path.stat().st_mode & 0o77 == 0, f"{path} is open to others"
        assert not path.is_file() or keys[-1] not in path.read_bytes(), f"a client's key is in {path}"


{"access": access, "stream": stream, "both": both, "one": one, "hidden": hidden}[sys.argv[1]](*sys.argv[2:])
