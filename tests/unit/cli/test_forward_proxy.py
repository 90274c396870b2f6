"""The proxy on the controller: what apt, pip and Docker ask of one, and what stays closed to them."""

import contextlib
import http.client
import http.server
import platform
import socket
import threading

import pytest

from boxwright.cli import forward_proxy
from boxwright.cli.forward_proxy import ForwardProxy


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.server.seen.append((self.requestline, dict(self.headers)))
        body = b"x" * 300_000
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        self.server.seen.append((self.requestline, self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture
def origin(monkeypatch):
    """A server out there: it is on this machine, which only this test lets a box see."""
    for name in ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.seen = []
    threading.Thread(target=server.serve_forever, daemon=True).start()
    found = socket.getaddrinfo

    def resolve(host, port, *args, **more):
        return found("192.0.2.7" if host == "out.example" else host, port, *args, **more)

    class There(socket.socket):
        def connect(self, address):
            super().connect(server.server_address if address[0] == "192.0.2.7" else address)

    monkeypatch.setattr(forward_proxy.socket, "getaddrinfo", resolve)
    monkeypatch.setattr(forward_proxy.socket, "socket", There)
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def proxy(origin):
    with ForwardProxy() as running:
        yield running


def ask(proxy, method, target, body=None, headers=None):
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=10)) as connection:
        connection.request(method, target, body=body, headers=headers or {})
        answer = connection.getresponse()
        return answer.status, answer.read()


def test_a_plain_request_is_handed_on_as_the_server_wants_it(proxy, origin):
    sent = {"Range": "bytes=5-", "Proxy-Connection": "keep-alive", "Proxy-Authorization": "Basic eDp5"}
    status, body = ask(proxy, "GET", "http://out.example/a/b.deb?x=1", headers=sent)
    assert (status, len(body)) == (200, 300_000)
    [(line, headers)] = origin.seen
    assert line == "GET /a/b.deb?x=1 HTTP/1.1"
    assert headers["Range"] == "bytes=5-"
    assert not [name for name in headers if name.lower().startswith("proxy")]


def test_a_body_goes_along(proxy, origin):
    assert ask(proxy, "POST", "http://out.example/up", body=b"y" * 200_000)[0] == 204
    assert origin.seen == [("POST /up HTTP/1.1", b"y" * 200_000)]


def test_a_tunnel_carries_both_ways(proxy, origin):
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=10)) as connection:
        connection.set_tunnel("out.example", 443)
        for _ in range(2):  # the line stays open
            connection.request("GET", "/inside")
            answer = connection.getresponse()
            assert (answer.status, len(answer.read())) == (200, 300_000)


def own_address():
    """An address of this machine beside its loopback; a name where it has none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe, contextlib.suppress(OSError):
        probe.connect(("192.0.2.1", 9))
        return probe.getsockname()[0]
    return "localhost"


INSIDE = ["127.0.0.1", "localhost", "[::1]", "169.254.169.254", "0.0.0.0", "[::]", own_address()]
INSIDE += [f"[::ffff:{one}]" for one in ("127.0.0.1", "169.254.169.254", "0.0.0.0")]


@pytest.mark.parametrize("host", INSIDE)
def test_the_controller_itself_is_closed_to_boxes(proxy, origin, host):
    status, body = ask(proxy, "GET", f"http://{host}:{origin.server_address[1]}/")
    assert (status, origin.seen) == (403, [])
    assert b"closed to boxes" in body
    assert ask(proxy, "CONNECT", f"{host}:{origin.server_address[1]}")[0] == 403


@pytest.mark.parametrize(
    ("target", "status"),
    [("/no-proxy", 400), ("ftp://out.example/", 400), ("http://:80/", 400), ("http://nowhere.invalid/", 502)],
)
def test_what_cannot_be_done_is_answered(proxy, target, status):
    assert ask(proxy, "GET", target)[0] == status


def test_noise_ends_the_connection_and_not_the_proxy(proxy):
    with socket.create_connection(("127.0.0.1", proxy.port), timeout=10) as line:
        line.sendall(b"\x16\x03\x01" + b"z" * 70_000)
        line.shutdown(socket.SHUT_WR)
        with contextlib.suppress(ConnectionResetError):
            assert b" 400 " in line.recv(100)
    assert ask(proxy, "GET", "http://out.example/")[0] == 200


@pytest.mark.parametrize(
    "host",
    ["localhost", "LocalHost.", "x.localhost", "127.0.0.1", "127.1", "[::ffff:127.0.0.1]", platform.node()],
)
def test_a_proxy_of_the_controllers_own_is_no_way_back_to_it(proxy, origin, monkeypatch, host):
    """One that listens on the controller would reach there what is closed to boxes here."""
    at = f"http://127.0.0.1:{origin.server_address[1]}"
    monkeypatch.setenv("http_proxy", at)
    monkeypatch.setenv("https_proxy", at)
    assert ask(proxy, "GET", f"http://{host}:5432/")[0] == 403
    assert ask(proxy, "CONNECT", f"{host}:22")[0] == 403
    assert origin.seen == []


def test_a_proxy_of_the_controllers_own_that_speaks_tls_is_told(proxy, origin, monkeypatch):
    monkeypatch.setenv("https_proxy", f"https://127.0.0.1:{origin.server_address[1]}")
    assert ask(proxy, "GET", "http://out.example/")[0] == 200
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=10)) as connection:
        connection.request("CONNECT", "far.example:443")
        assert b"not one of plain HTTP" in connection.getresponse().read()


def test_it_goes_out_as_this_machine_does(proxy, monkeypatch):
    """Through the proxy that the environment names, with its login, and without it where that says so."""
    asked = []

    class Next(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append((self.requestline, self.headers["Proxy-Authorization"]))
            self.send_response(204)
            self.end_headers()

        do_CONNECT = do_GET

        def log_message(self, *_):
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Next) as following:
        threading.Thread(target=following.serve_forever, daemon=True).start()
        at = f"http://me:word@127.0.0.1:{following.server_address[1]}"
        monkeypatch.setenv("http_proxy", at)
        monkeypatch.setenv("https_proxy", at)
        monkeypatch.setenv("no_proxy", "out.example")
        assert ask(proxy, "GET", "http://far.example/x")[0] == 204
        assert ask(proxy, "CONNECT", "far.example:443")[0] == 204
        assert ask(proxy, "GET", "http://out.example/")[0] == 200
        following.shutdown()
    assert asked == [
        ("GET http://far.example/x HTTP/1.1", "Basic bWU6d29yZA=="),
        ("CONNECT far.example:443 HTTP/1.1", "Basic bWU6d29yZA=="),
    ]
