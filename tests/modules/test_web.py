"""Reading over HTTP: answers, refusals, limits, and secrets that stay with their host."""

from __future__ import annotations

import contextlib
import http.server
import threading
import time

import pytest
from ansible.module_utils.web import Reader, WebError


@contextlib.contextmanager
def serving(handle):
    """A local server; handle(request handler) answers a GET."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                handle(self)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def answer(request, body=b"{}", status=200, **headers):
    request.send_response(status)
    for name, text in headers.items():
        request.send_header(name.replace("_", "-"), text)
    request.send_header("Content-Length", str(len(body)))
    request.end_headers()
    request.wfile.write(body)


def test_an_answer_with_its_headers():
    with serving(lambda request: answer(request, b'{"a": 1}', ETag="x")) as url:
        found = Reader().get(url + "/a")
    assert found.json() == {"a": 1}
    assert (found.status, found.headers["etag"]) == (200, "x")


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (401, "unauthorized"),
        (403, "forbidden"),
        (404, "not-found"),
        (410, "not-found"),
        (500, "unreachable"),
        (503, "unreachable"),
        (429, "unreachable"),
        (418, "invalid"),
    ],
)
def test_refusals_by_their_kind(status, kind):
    def refuse(request):
        answer(request, status=status, X_Error_Code="GatedRepo")

    with serving(refuse) as url, pytest.raises(WebError) as caught:
        Reader().get(url)
    assert (caught.value.kind, caught.value.status, caught.value.code) == (kind, status, "GatedRepo")
    assert "127.0.0.1" in caught.value.detail


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        ("http://127.0.0.1:1/", "unreachable"),
        ("http://no-such-host.invalid/", "dns"),
        ("nonsense", "invalid"),
        ("http://[::bad/", "invalid"),
        ("http://127.0.0.1:port/", "invalid"),
        ("http://a b/", "invalid"),
    ],
)
def test_what_cannot_be_reached(url, kind):
    with pytest.raises(WebError) as caught:
        Reader(timeout=2).get(url)
    assert caught.value.kind in (kind, "unreachable")


def test_plain_http_where_tls_is_expected():
    with serving(answer) as url, pytest.raises(WebError) as caught:
        Reader(timeout=2).get(url.replace("http:", "https:"))
    assert caught.value.kind in ("tls", "unreachable")


def test_a_body_is_read_to_its_limit_only():
    with serving(lambda request: answer(request, b"x" * 100_000)) as url:
        assert len(Reader().get(url, limit=1000).body) == 1000


def test_a_server_that_dribbles_is_left():
    def dribble(request):
        request.send_response(200)
        request.end_headers()
        for _ in range(1000):
            request.wfile.write(b"x" * 70_000)
            request.wfile.flush()
            time.sleep(0.2)

    started = time.monotonic()
    with serving(dribble) as url, pytest.raises(WebError) as caught:
        Reader(timeout=1, deadline=1).get(url)
    assert caught.value.kind == "unreachable"
    assert time.monotonic() - started < 100


def test_a_secret_is_not_sent_on_to_another_host():
    seen = []

    def elsewhere(request):
        seen.append(request.headers.get("Authorization"))
        answer(request)

    with (
        serving(elsewhere) as other,
        serving(
            lambda request: (
                seen.append(request.headers.get("Authorization")),
                answer(request, status=302, Location=other),
            )
        ) as url,
    ):
        Reader().get(url, secret="Bearer hf_secret")
    assert seen == ["Bearer hf_secret", None]


def test_what_is_no_json():
    with serving(lambda request: answer(request, b"<html>")) as url, pytest.raises(WebError) as caught:
        Reader().get(url).json()
    assert caught.value.kind == "invalid"


def test_a_secret_stays_with_its_origin_and_goes_on_within_it():
    seen = {}

    def there(request):
        seen["there"] = request.headers.get("Authorization")
        answer(request)

    with serving(there) as other:

        def here(request):
            seen[request.path] = request.headers.get("Authorization")
            place = {"/out": other + "/x", "/in": "/done", "/308": "/done"}.get(request.path)
            answer(
                request,
                status=308 if request.path == "/308" else 302 if place else 200,
                **({"Location": place} if place else {}),
            )

        with serving(here) as url:
            for path in ("/out", "/in", "/308"):
                assert Reader().get(url + path, secret="Bearer s").status == 200
    assert seen == {
        "/out": "Bearer s",
        "there": None,
        "/in": "Bearer s",
        "/308": "Bearer s",
        "/done": "Bearer s",
    }


@pytest.mark.parametrize("place", ["file:///etc/passwd", "ftp://127.0.0.1/x", "gopher://x"])
def test_other_schemes_are_not_followed(place):
    with (
        serving(lambda request: answer(request, status=302, Location=place)) as url,
        pytest.raises(WebError) as error,
    ):
        Reader().get(url)
    assert "not followed" in error.value.detail or "not allowed" in error.value.detail


def test_a_redirect_that_never_ends_is_told():
    with (
        serving(lambda request: answer(request, status=302, Location=request.path + "x")) as url,
        pytest.raises(WebError) as error,
    ):
        Reader().get(url + "/")
    assert error.value.kind == "invalid"
