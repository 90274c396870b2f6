"""package_source on a host with dnf."""

import http.server
import threading
from pathlib import Path

import pytest
from ansible.module_utils import dnf, openpgp
from host_doubles import World

HERE = Path(__file__).parent
FINGERPRINT = "FE1088D86AE6DE5BA3C59716D615894BB0DBC62D"
REPO, KEY = "etc/yum.repos.d/boxwright-cuda.repo", "etc/pki/rpm-gpg/RPM-GPG-KEY-boxwright-cuda.asc"


@pytest.fixture
def keys():
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write((HERE / self.path.strip("/")).read_bytes())

        def log_message(self, *words):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture
def host(root, tmp_path, monkeypatch, keys, module):
    (root / "etc").mkdir()
    (root / "etc/os-release").write_text('ID="rhel"\nID_LIKE="fedora"\nVERSION_ID="9.6"\n')
    world = World(tmp_path, monkeypatch, "makecache", repos=str(root / "etc/yum.repos.d"), keys=[])
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(dnf, "LOCKS", ())
    world.call = module(
        "package_source",
        name="boxwright-cuda",
        uris=["http://there/rhel9/x86_64/"],
        key_url=keys + "/key-one.asc",
        fingerprints=[FINGERPRINT],
    )
    return world


def test_makes_key_and_repository(host, root):
    result = host.call()
    assert result["changed"]
    assert result["created"]
    text = (root / REPO).read_text()
    assert "baseurl=http://there/rhel9/x86_64/\n" in text
    assert (
        "gpgcheck=1\nrepo_gpgcheck=0\ngpgkey=file:///etc/pki/rpm-gpg/RPM-GPG-KEY-boxwright-cuda.asc\n" in text
    )
    assert "priority" not in text
    assert openpgp.fingerprints(openpgp.dearmor((root / KEY).read_bytes())) == [FINGERPRINT]
    assert host["keys"] == ["b0dbc62d"]
    assert FINGERPRINT in result["diff"][0]["after"]


def test_second_call_asks_nobody(host):
    host.call()
    calls = len(host["calls"])
    assert not host.call()["changed"]
    assert len(host["calls"]) == calls


def test_signed_metadata_and_packages_of_one_source_alone(host, root):
    host.call(signed=["metadata"], preferred=["nvidia-container-*"])
    text = (root / REPO).read_text()
    assert "gpgcheck=0\nrepo_gpgcheck=1\n" in text
    assert "priority=90\n" in text
    assert host["keys"] == []


def test_check_mode_tries_and_leaves_nothing(host, root):
    assert host.call(check=True)["changed"]
    assert "baseurl=http://there/rhel9/x86_64/" in host["seen"]
    assert not (root / "etc/yum.repos.d").exists()
    assert host["keys"] == []


def test_check_mode_fetches_with_whom_the_host_is_to_trust(host):
    host.call(check=True, ca="-----BEGIN CERTIFICATE-----")
    assert [word for call in host.calls("dnf") for word in call if word.startswith("--setopt=sslcacert=/")]


def test_a_source_that_dnf_refuses_leaves_everything_as_it_was(host, root):
    host.call()
    before = (root / REPO).read_text()
    host.set(
        refuses="Error: Failed to download metadata for repo 'boxwright-cuda': Cannot download repomd.xml"
    )
    said = host.call(uris=["http://there/other/"])["msg"]
    assert "dnf cannot use http://there/other/, the sources are as they were" in said
    assert "Cannot download repomd.xml" in said
    assert (root / REPO).read_text() == before


def test_an_unexpected_key_is_refused(host, root, keys):
    assert "is not the expected one" in host.call(key_url=keys + "/key-rsa.asc")["msg"]
    assert not (root / "etc/yum.repos.d").exists()


def test_absent_takes_everything_away_and_a_key_that_was_there_stays(host, root):
    host.call()
    assert host.call(state="absent")["changed"]
    assert host["keys"] == []
    assert not (root / REPO).exists()
    host.set(keys=["b0dbc62d"])
    host.call()
    host.call(state="absent")
    assert host["keys"] == ["b0dbc62d"]


def test_sha1_is_not_this_modules_to_allow(host):
    assert "update-crypto-policies" in host.call(allow_sha1=True)["msg"]


def test_armor_is_what_gpg_would_write(tmp_path):
    keyring = openpgp.dearmor((HERE / "key-one.asc").read_bytes())
    assert openpgp.dearmor(openpgp.armor(keyring)) == keyring
    theirs = [line for line in (HERE / "key-one.asc").read_text().splitlines() if line.startswith("=")]
    ours = [line for line in openpgp.armor(keyring).decode().splitlines() if line.startswith("=")]
    assert theirs in ([], ours)
