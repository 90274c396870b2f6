"""The way out of a host: one declaration, the same for everything that a module does or starts."""

import http.server
import json
import os
import ssl
import sys
import threading
from pathlib import Path

import pytest
from ansible.module_utils import way_out
from ansible.module_utils.command import run
from ansible.module_utils.web import Reader, WebError

from boxwright.lab import realm
from boxwright.spec import box

PROXY = "http://me:s3cr3t@proxy.example.org:3128"


@pytest.fixture(autouse=True)
def surroundings():
    """An environment without a proxy, as it was before when the test is over."""
    kept = dict(os.environ)
    for name in kept:
        if "proxy" in name.lower() or name in way_out.BUNDLE_VARIABLES:
            del os.environ[name]
    yield
    os.environ.clear()
    os.environ.update(kept)


def test_the_controller_means_the_same_here_and_there():
    assert (way_out.CONTROLLER, way_out.AT_CONTROLLER) == (box.CONTROLLER, box.AT_CONTROLLER)
    assert way_out.address("controller") == way_out.AT_CONTROLLER
    assert [way_out.address(none) for none in ("", None)] == ["", ""]


def test_what_is_started_goes_the_same_way_and_never_to_the_host_itself():
    assert way_out.take(PROXY, [".example.net", "::1"]) == PROXY
    code = "import json, os; print(json.dumps(dict(os.environ)))"
    seen = json.loads(run([sys.executable, "-c", code], env=dict(os.environ)).stdout)
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        assert seen[name] == PROXY
    assert seen["no_proxy"] == seen["NO_PROXY"] == "localhost,127.0.0.1,::1,.example.net"


def test_without_a_declaration_the_hosts_own_stays():
    os.environ["https_proxy"] = "http://theirs:1"
    os.environ["no_proxy"] = "theirs.example"
    assert way_out.take("", ["mine.example"]) == ""
    assert (os.environ["https_proxy"], os.environ["no_proxy"]) == ("http://theirs:1", "theirs.example")
    assert "http_proxy" not in os.environ


def test_every_program_trusts_whom_the_system_trusts(tmp_path, monkeypatch):
    system = tmp_path / "ca-certificates.crt"
    monkeypatch.setattr(way_out, "BUNDLES", (str(tmp_path / "absent"), str(system)))
    assert way_out.bundle() == {}
    system.write_text("")
    os.environ["PIP_CERT"] = "/theirs"
    assert way_out.bundle() == {"SSL_CERT_FILE": str(system), "REQUESTS_CA_BUNDLE": str(system)}


def test_whom_the_host_is_to_trust_is_trusted_meanwhile(tmp_path, monkeypatch):
    """In check mode, which does not have the host trust anybody."""
    ours = realm.ensure(tmp_path / "ours", "ours").authority
    theirs = realm.ensure(tmp_path / "theirs", "theirs").authority
    system = tmp_path / "ca-certificates.crt"
    system.write_text(theirs)
    monkeypatch.setattr(way_out, "BUNDLES", (str(system),))
    way_out.take("", [])
    before = dict(os.environ)
    with way_out.trusting(ours) as bundle:
        assert os.environ["SSL_CERT_FILE"] == os.environ["PIP_CERT"] == bundle
        trusted = ssl.create_default_context().get_ca_certs(binary_form=True)
        assert {ssl.PEM_cert_to_DER_cert(one.strip()) for one in (ours, theirs)} <= set(trusted)
    assert dict(os.environ) == before
    assert not Path(bundle).exists()


def refusal(url, reader=None):
    with pytest.raises(WebError) as caught:
        (reader or Reader(timeout=2, deadline=4, proxy=PROXY.replace("proxy.example.org", "127.0.0.1"))).get(
            url
        )
    assert "s3cr3t" not in str(caught.value)
    return caught.value


@pytest.fixture
def proxy():
    """A proxy that answers every request with one status."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(self.server.status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_CONNECT = do_GET

        def log_message(self, *_):
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_proxy_that_is_not_there_is_what_is_named(scheme):
    told = refusal(f"{scheme}://hub.example.org/x", Reader(timeout=2, deadline=4, proxy="http://127.0.0.1:9"))
    assert told.kind == "unreachable"
    assert "hub.example.org: the proxy 127.0.0.1:9 cannot be used: Connection refused" in str(told)


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize(
    ("status", "said"), [(407, "wants another name and password"), (503, "503")], ids=("login", "down")
)
def test_what_a_proxy_refuses_is_told_as_its_own(proxy, scheme, status, said):
    proxy.status = status
    at = f"127.0.0.1:{proxy.server_address[1]}"
    told = refusal(
        f"{scheme}://hub.example.org/x", Reader(timeout=2, deadline=4, proxy=f"http://me:s3cr3t@{at}")
    )
    assert told.kind == "unreachable"
    assert f"the proxy {at}" in str(told)
    assert said in str(told)


@pytest.mark.parametrize(
    ("status", "said"),
    [(401, "wants another name and password"), (403, "does not let the host through")],
    ids=("another password to tinyproxy", "forbidden"),
)
def test_what_a_tunnel_is_refused_with_is_the_proxys_own(proxy, status, said):
    """Without a tunnel the same status may as well be the hub's."""
    proxy.status = status
    at = f"127.0.0.1:{proxy.server_address[1]}"
    told = refusal("https://hub.example.org/x", Reader(timeout=2, deadline=4, proxy=f"http://me:s3cr3t@{at}"))
    assert told.kind == "unreachable"
    assert f"the proxy {at} {said}" in str(told)


def test_what_is_declared_direct_does_not_go_through_it(proxy):
    """The proxy is asked by its own name here, as a host that is reached without it."""
    proxy.status = 204
    way_out.take("http://127.0.0.1:9", [])
    assert Reader(timeout=2, deadline=4, proxy="http://127.0.0.1:9").get(
        f"http://localhost:{proxy.server_address[1]}/"
    ).status == 204  # fmt: skip


@pytest.fixture
def mirror():
    """A mirror on this side of the proxy that sends on to where it is told."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(302 if self.path == "/on" else 204)
            self.send_header("Location", self.server.to)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        server.to = ""
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def test_what_is_sent_on_goes_its_own_way(proxy, mirror):
    """A mirror that is reached without the proxy sends on to what is behind it, and the other way round."""
    proxy.status = 204
    at = f"http://localhost:{mirror.server_address[1]}/on"
    reader = Reader(2, 4, f"http://127.0.0.1:{proxy.server_address[1]}", ["localhost"])
    mirror.to = "http://out.example.org/x"
    assert reader.get(at).status == 204
    mirror.to = at.replace("/on", "/here")
    proxy.status = 503
    assert reader.get(at).status == 204
