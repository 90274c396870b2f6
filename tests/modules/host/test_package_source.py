import hashlib
import http.server
import threading
from pathlib import Path

import pytest
from host_doubles import World

HERE = Path(__file__).parent
FINGERPRINT = "FE1088D86AE6DE5BA3C59716D615894BB0DBC62D"


@pytest.fixture
def keys():
    """A server of keys: /one.asc, /rsa.asc, /html; anything else is not there."""
    bodies = {
        "/one.asc": (HERE / "key-one.asc").read_bytes(),
        "/rsa.asc": (HERE / "key-rsa.asc").read_bytes(),
        "/html": b"<html>log in</html>",
    }

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            body = bodies.get(self.path)
            self.send_response(200 if body else 404)
            self.end_headers()
            self.wfile.write(body or b"")

        def log_message(self, *words):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture
def host(root, tmp_path, monkeypatch, keys, module):
    """A host: call(**arguments) runs the module on it, tree() tells its files."""
    lists = root / "var/lib/apt/lists"
    lists.mkdir(parents=True)
    world = World(tmp_path, monkeypatch, "apt_update", lists=str(lists))
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.delenv(name, raising=False)
    world.call = module(
        "package_source",
        name="cuda",
        uris=["http://there/x86_64/"],
        key_url=keys + "/one.asc",
        fingerprints=[FINGERPRINT],
        preferred=["nvidia-*"],
    )
    world.tree = lambda: {
        str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(root.rglob("*"))
        if path.is_file() and "lists" not in path.parts
    }
    return world


def test_makes_key_source_and_pins(host, root):
    result = host.call()
    assert result["changed"]
    assert result["created"]
    assert sorted(host.tree()) == [
        "etc/apt/keyrings/cuda.gpg",
        "etc/apt/preferences.d/cuda.pref",
        "etc/apt/sources.list.d/cuda.sources",
    ]
    pins = (root / "etc/apt/preferences.d/cuda.pref").read_text()
    assert 'Package: nvidia-*\nPin: origin "there"\nPin-Priority: 990\n' in pins
    assert (root / "etc/apt/keyrings/cuda.gpg").stat().st_mode & 0o777 == 0o644


def test_second_call_changes_nothing_and_asks_nobody(host):
    host.call()
    calls = len(host.calls("apt-get"))
    again = host.call()
    assert not again["changed"]
    assert not again["created"]
    assert again["diff"] == []
    assert len(host.calls("apt-get")) == calls


def test_check_mode_tries_and_leaves_nothing(host):
    result = host.call(check=True)
    assert result["changed"]
    assert host.tree() == {}
    assert [call for call in host.calls("apt-get") if "update" in call]
    assert FINGERPRINT in result["diff"][0]["after"]


def test_check_mode_fetches_with_whom_the_host_is_to_trust(host):
    host.call(check=True, ca="-----BEGIN CERTIFICATE-----")
    [call] = [call for call in host.calls("apt-get") if "update" in call]
    [bundle] = [word.partition("=")[2] for word in call if word.startswith("Acquire::https::CaInfo=")]
    assert not Path(bundle).exists()
    host.call(ca="-----BEGIN CERTIFICATE-----")
    assert not [word for call in host.calls("apt-get")[1:] for word in call if "CaInfo" in word]


def test_the_declared_proxy_goes_before_one_of_the_hosts_apt(host):
    """apt takes what its configuration says first, and asks the environment where that says nothing."""
    host.call(proxy="http://127.0.0.1:9", no_proxy=["127.0.0.1"])
    [call] = [call for call in host.calls("apt-get") if "update" in call]
    assert {"Acquire::http::Proxy=", "Acquire::https::Proxy="} <= set(call)
    host.call(uris=["http://there/other/"])
    assert not [word for call in host.calls("apt-get")[2:] for word in call if "::Proxy" in word]


def test_no_login_of_an_address_is_told(host):
    """Ansible tells a module's parameters with -vvv, and a diff the file's text."""
    result = host.call(proxy="http://me:planted-word@127.0.0.1:9", check=True, no_proxy=["127.0.0.1"])
    assert result["invocation"]["module_args"]["proxy"].endswith("127.0.0.1:9")
    result = [result, host.call(uris=["http://you:planted-word@there/x86_64/"])]
    assert "planted-word" not in str(result)


def test_check_mode_sees_a_repository_that_is_not_there(host):
    host.set(refuses="E: The repository does not have a Release file.")
    assert "does not have a Release file" in host.call(check=True)["msg"]


@pytest.mark.parametrize("status", [100, 0])
def test_a_source_that_apt_refuses_leaves_everything_as_it_was(host, status):
    host.call()
    before = host.tree()
    host.set(refuses="Err:1 http://there\nW: Failed to fetch http://there/InRelease", status=status)
    result = host.call(uris=["http://there/other_x/"])
    assert result["failed"]
    assert "Failed to fetch" in result["msg"]
    assert host.tree() == before


def test_sources_that_contradict_each_other_are_put_back(host):
    host.set(conflict="E: Conflicting values set for option Signed-By regarding source http://there/")
    assert "Conflicting values" in host.call()["msg"]
    assert host.tree() == {}


def test_another_definition_is_switched_off_and_comes_back(host, root):
    other = root / "etc/apt/sources.list.d/cuda-debian13-x86_64.list"
    other.parent.mkdir(parents=True)
    other.write_text("deb [signed-by=/usr/share/keyrings/x.gpg] http://there/x86_64/ /\n")
    before = host.tree()
    assert host.call()["changed"]
    assert other.read_text().startswith("# Disabled by Boxwright: deb ")
    assert not host.call()["changed"]
    assert host.call(state="absent")["changed"]
    assert host.tree() == before


def test_a_foreign_file_that_was_edited_since_is_left(host, root):
    other = root / "etc/apt/sources.list.d/mine.list"
    other.parent.mkdir(parents=True)
    other.write_text("deb http://there/x86_64/ /\n")
    host.call()
    other.write_text("deb http://elsewhere/ /\n")
    host.call(state="absent")
    assert other.read_text() == "deb http://elsewhere/ /\n"


def test_absent_takes_everything_away(host):
    host.call()
    assert host.call(state="absent")["changed"]
    assert host.tree() == {}
    assert not host.call(state="absent")["changed"]


def test_an_unexpected_key_is_refused_before_anything_is_written(host, keys):
    result = host.call(key_url=keys + "/rsa.asc")
    assert "12C3AF4F3C2A4EA35DD4D7DD9F4BC3E4BF27EF89" in result["msg"]
    assert FINGERPRINT in result["msg"]
    assert host.tree() == {}


@pytest.mark.parametrize(
    ("path", "said"),
    [("/missing", "answers 404"), ("/html", "no OpenPGP keyring")],
)
def test_a_key_that_cannot_be_had(host, keys, path, said):
    result = host.call(key_url=keys + path)
    assert said in result["msg"]
    assert keys + path in result["msg"]
    assert host.tree() == {}


def test_a_name_that_does_not_resolve(host):
    assert "does not resolve" in host.call(key_url="http://keys.invalid/k")["msg"]


def test_a_damaged_keyring_is_fetched_anew(host, root):
    host.call()
    keyring = root / "etc/apt/keyrings/cuda.gpg"
    good = keyring.read_bytes()
    keyring.write_bytes(good[:40])
    assert host.call()["changed"]
    assert keyring.read_bytes() == good


def test_lists_that_were_lost_are_read_again_without_a_change(host, root):
    host.call()
    for path in (root / "var/lib/apt/lists").iterdir():
        path.unlink()
    result = host.call()
    assert not result["changed"]
    assert result["lists_read"]


def test_sha1_is_allowed_only_where_asked_and_taken_back(host, root):
    default = root / "usr/share/apt/default-sequoia.config"
    default.parent.mkdir(parents=True)
    default.write_text("[hash_algorithms]\nsha1.second_preimage_resistance = 2026-02-01\n")
    policy = root / "etc/crypto-policies/back-ends/apt-sequoia.config"
    host.call()
    assert not policy.exists()
    host.call(allow_sha1=True)
    assert "sha1.second_preimage_resistance = 2030-02-01" in policy.read_text()
    assert not host.call(allow_sha1=True)["changed"]
    host.call(state="absent")
    assert not policy.exists()


def test_a_sha1_bound_key_is_explained(host):
    host.set(refuses="Err:1\nE: because: SHA1 is not considered secure since 2026-02-01T00:00:00Z")
    assert "bound by SHA-1" in host.call()["msg"]
