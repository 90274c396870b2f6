"""The guard inside the engine's server, asked as a server asks its middleware."""

import asyncio
import fcntl
import json

import pytest
from ansible.module_utils import engine_guard
from hypothesis import given
from hypothesis import strategies as st

KEY = "sk-0123456789"


@pytest.fixture(autouse=True)
def container(monkeypatch, tmp_path):
    monkeypatch.setenv("VLLM_API_KEY", KEY)
    monkeypatch.setenv("BOXWRIGHT_OPEN_PATHS", "/metrics /version")
    monkeypatch.setattr(engine_guard, "CLOSING", str(tmp_path / "closing"))
    monkeypatch.setattr(engine_guard, "WORKING", str(tmp_path / "working"))


def asked(path="/v1/models", headers=(), method="GET", kind="http"):
    """What comes back: "let in", or the status and code of the refusal."""
    came, sent = [], []

    async def app(scope, receive, send):
        came.append(scope["path"])

    async def send(event):
        sent.append(event)

    scope = {"type": kind, "path": path, "method": method, "headers": list(headers)}
    asyncio.run(engine_guard.Guard(app)(scope, None, send))
    if came:
        assert sent == []
        return "let in"
    return sent[0].get("status") or sent[0]["code"]


def bearer(key):
    return [(b"authorization", b"Bearer " + key.encode())]


@pytest.mark.parametrize("path", ["/v1/models", "/invocations", "/tokenize", "/load", "/", "//health"])
def test_nothing_without_the_key(path):
    assert asked(path) == 401
    assert asked(path, bearer("sk-012345678")) == 401
    assert asked(path, bearer(KEY)) == "let in"
    assert asked(path, kind="websocket") == 1008


@pytest.mark.parametrize("path", ["/health", "/ping", "/metrics", "/version"])
def test_health_and_what_was_declared_answer_to_anybody(path):
    assert asked(path) == "let in"
    assert asked(path + "/") == 401


def test_a_browser_may_ask_whether_it_may_ask():
    assert asked("/v1/models", method="OPTIONS") == "let in"


@pytest.mark.parametrize(
    "headers",
    [
        [(b"authorization", b"bearer " + KEY.encode())],
        [(b"Authorization", b"Bearer  " + KEY.encode() + b" ")],
    ],
)
def test_spellings_of_the_scheme(headers):
    assert asked(headers=headers) == "let in"


@given(st.binary(max_size=40))
def test_no_other_bytes_are_the_key(value):
    if value.strip() != KEY.encode():
        assert asked(headers=[(b"authorization", b"Bearer " + value)]) == 401
    assert asked(headers=[(b"authorization", value)]) == 401
    assert asked(headers=[*bearer(KEY), (b"authorization", value)]) == 401


def test_without_a_key_of_its_own_it_does_not_start(monkeypatch):
    monkeypatch.delenv("VLLM_API_KEY")
    with pytest.raises(KeyError):
        asked()


def test_who_asks_an_engine_that_is_about_to_end_is_told_to_come_back(tmp_path):
    assert asked("/v1/chat/completions", bearer(KEY), "POST") == "let in"
    (tmp_path / "closing").touch()
    assert asked("/v1/chat/completions", bearer(KEY), "POST") == 503
    assert asked("/v1/realtime", bearer(KEY), kind="websocket") == 1012
    assert asked("/v1/chat/completions", (), "POST") == 401
    # How it fares is asked until its end.
    assert asked("/metrics") == "let in"
    assert asked("/v1/models", bearer(KEY)) == "let in"


def alone(place):
    """Whether nobody else holds the lock: as the host's `flock --exclusive` gets it."""
    with open(place, "a") as lock:  # noqa: PTH123 - the descriptor is what is locked
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


def test_the_host_sees_when_the_last_request_is_through(tmp_path):
    seen = []

    async def app(scope, receive, send):
        seen.append(alone(engine_guard.WORKING))

    guard = engine_guard.Guard(app)
    work = {"type": "http", "path": "/v1/completions", "method": "POST", "headers": bearer(KEY)}

    async def two():
        await asyncio.gather(guard(work, None, None), guard(work, None, None))

    asyncio.run(two())
    assert seen == [False, False]
    assert alone(engine_guard.WORKING)
    asyncio.run(guard({**work, "method": "GET"}, None, None))
    assert seen[2] is True, "who asks how it fares keeps no engine from its end"


def test_a_request_that_fails_holds_nothing():
    async def app(scope, receive, send):
        raise RuntimeError("engine died")

    work = {"type": "http", "path": "/v1/completions", "method": "POST", "headers": bearer(KEY)}
    with pytest.raises(RuntimeError):
        asyncio.run(engine_guard.Guard(app)(work, None, None))
    assert alone(engine_guard.WORKING)


def test_work_goes_on_where_the_lock_cannot_be_had(monkeypatch, tmp_path):
    monkeypatch.setattr(engine_guard, "WORKING", str(tmp_path / "nowhere" / "working"))
    assert asked("/v1/completions", bearer(KEY), "POST") == "let in"


def test_the_refusal_says_when_to_come_back(tmp_path):
    (tmp_path / "closing").touch()
    sent = []

    async def send(event):
        sent.append(event)

    scope = {"type": "http", "path": "/v1/completions", "method": "POST", "headers": bearer(KEY)}
    asyncio.run(engine_guard.Guard(None)(scope, None, send))
    assert int(dict(sent[0]["headers"])[b"retry-after"]) > 0
    assert json.loads(sent[1]["body"])["error"]["code"] == 503


def test_what_is_no_request_goes_on():
    assert asked(kind="lifespan") == "let in"
