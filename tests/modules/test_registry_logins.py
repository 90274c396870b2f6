"""Root's logins to registries: kept beside everybody's, found when pulling, gone when declared no more."""

import base64
import json
import stat
import subprocess

import pytest
from ansible.module_utils import registry_logins
from ansible.module_utils.command import Result
from ansible.module_utils.docker_api import DockerError
from ansible.module_utils.registry_logins import HUB_KEY, LoginError, find

from boxwright.ansible.modules import docker_registries

HOST = "registry.example.org:5443"
WRONG = "login attempt to https://registry.example.org:5443/v2/ failed with status: 401 Unauthorized"


def auth(text):
    return base64.b64encode(text.encode()).decode()


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    """A certificate in PEM form."""
    folder = tmp_path_factory.mktemp("ca")
    words = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=lab -days 3"
    subprocess.run(
        ["openssl", *words.split(), "-keyout", folder / "k", "-out", folder / "c"], check=True, timeout=60,
        capture_output=True,
    )  # fmt: skip
    return (folder / "c").read_text()


class Host:
    """A host with a Docker that knows which logins are good."""

    def __init__(self, tmp_path, monkeypatch):
        self.config = tmp_path / "docker" / "config.json"
        self.certificates = tmp_path / "certs.d"
        self.receipt = tmp_path / "etc" / "registry-logins.json"
        self.tried, self.refuses = [], ""
        monkeypatch.setenv("DOCKER_CONFIG", str(self.config.parent))
        monkeypatch.setattr(registry_logins, "CERTIFICATES", str(self.certificates))
        host = self

        class Docker:
            def login(self, login):
                host.tried.append((login.key, login.username, login.password))
                if host.refuses:
                    raise DockerError(host.refuses, 401)

        monkeypatch.setattr(docker_registries, "Docker", Docker)

    def write(self, content):
        self.config.parent.mkdir(parents=True, exist_ok=True)
        self.config.write_text(content if isinstance(content, str) else json.dumps(content))

    def read(self):
        return json.loads(self.config.read_text())

    @property
    def certificate(self):
        return self.certificates / HOST / "boxwright.crt"


@pytest.fixture
def host(tmp_path, monkeypatch):
    return Host(tmp_path, monkeypatch)


@pytest.fixture
def declare(host, run_module):
    def call(*registries, **kw):
        return run_module("docker_registries", registries=list(registries), receipt=str(host.receipt), **kw)

    return call


LOGIN = {"host": HOST, "username": "me", "password": "pa:ss word"}


def test_a_login_is_tried_kept_for_root_alone_and_found(host, declare):
    result = declare(LOGIN)
    assert (result["changed"], result["logins"]) == (True, [HOST])
    assert host.tried == [(HOST, "me", "pa:ss word")]
    assert host.read() == {"auths": {HOST: {"auth": auth("me:pa:ss word")}}}
    for path in (host.config, host.receipt):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert find(HOST).password == "pa:ss word"
    assert find("other.example.org") is None
    assert declare(LOGIN)["changed"] is False
    assert len(host.tried) == 1, "nothing new, nothing tried"


def test_a_file_that_was_not_there_goes_again(host, declare):
    declare(LOGIN)
    assert declare()["changed"] is True
    assert not host.config.parent.exists()
    assert declare()["changed"] is False


def test_no_result_holds_the_password(host, declare):
    assert "pa:ss" not in json.dumps(declare(LOGIN))
    host.refuses = WRONG
    assert "pa:ss" not in json.dumps(declare({**LOGIN, "password": "pa:ss other"}))
    assert auth("me:pa:ss word") not in json.dumps(declare(LOGIN, check=True))


def test_docker_hub_has_a_name_of_its_own(host, declare):
    declare({**LOGIN, "host": "docker.io"})
    assert list(host.read()["auths"]) == [HUB_KEY]
    assert find(None).username == "me"


def test_others_logins_and_settings_stay_and_come_back(host, declare):
    before = {
        "auths": {"a.example.org": {"auth": auth("a:b")}, HOST: {"auth": auth("they:x")}},
        "psFormat": "x",
    }
    host.write(before)
    declare(LOGIN)
    assert host.read() == {**before, "auths": {**before["auths"], HOST: {"auth": auth("me:pa:ss word")}}}
    assert declare()["changed"] is True
    assert host.read() == before
    assert not host.receipt.exists()


def test_a_store_of_others_keeps_theirs_and_not_ours(host, declare, monkeypatch):
    host.write({"credsStore": "pass"})
    declare(LOGIN)
    assert host.read()["credHelpers"] == {HOST: ""}
    monkeypatch.setattr(
        registry_logins, "run", lambda argv, **kw: Result(0, '{"Username": "s", "Secret": "t"}', "")
    )
    assert find(HOST).username == "me"
    assert find("other.example.org").username == "s"
    declare()
    assert host.read() == {"credsStore": "pass"}


def test_a_refused_login_leaves_everything_as_it_was(host, declare, authority):
    host.write({"auths": {}})
    host.refuses = WRONG
    result = declare({**LOGIN, "ca": authority})
    assert "does not accept the login of me" in result["msg"]
    assert "container_runtime_registries" in result["msg"]
    assert host.read() == {"auths": {}}
    assert not host.receipt.exists()
    assert not host.certificates.exists() or not list(host.certificates.iterdir())
    host.refuses = ""
    assert declare({**LOGIN, "ca": authority})["changed"] is True


def test_a_certificate_that_nobody_vouches_for_is_told(host, declare):
    host.refuses = (
        'Get "https://registry.example.org:5443/v2/": x509: certificate signed by unknown authority'
    )
    result = declare(LOGIN)
    assert "certificate of registry.example.org:5443 is not trusted" in result["msg"]
    assert "ca: …" in result["msg"]


def test_an_authority_lies_beside_those_of_others(host, declare, authority):
    theirs = host.certificates / HOST / "ca.crt"
    theirs.parent.mkdir(parents=True)
    theirs.write_text("theirs")
    assert declare({"host": HOST, "ca": authority})["authorities"] == [HOST]
    assert host.certificate.read_text() == authority
    assert host.tried == []
    assert declare({"host": HOST, "ca": authority})["changed"] is False
    declare()
    assert not host.certificate.exists()
    assert theirs.read_text() == "theirs"


def test_a_changed_authority_has_the_login_tried_again(host, declare, authority):
    declare(LOGIN)
    declare({**LOGIN, "ca": authority})
    assert len(host.tried) == 2


@pytest.mark.parametrize("text", ["-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----", "x"])
def test_what_is_no_certificate_is_refused(host, declare, text):
    assert "is no certificate in PEM form" in declare({**LOGIN, "ca": text})["msg"]
    assert (host.tried, host.config.exists()) == ([], False)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('{"auths": ', "not valid JSON"),
        ({"auths": {HOST: {"auth": "", "identitytoken": "t"}}}, "docker logout"),
        ({"auths": []}, "config.json:1: auths is a list there. Put"),
        ({"auths": [1]}, "auths is a list there. Put"),
        ({"auths": {HOST: "secret"}}, f"{HOST} is a text there. Put"),
        ('{"auths": {"x": 1,\n"x": 2}}', "config.json:2 is not valid JSON that can be kept"),
    ],
)
def test_a_file_that_cannot_be_kept_is_left_alone(host, declare, content, said):
    host.write(content)
    before = host.config.read_text()
    assert said in declare(LOGIN)["msg"]
    assert (host.config.read_text(), host.tried) == (before, [])


def test_check_mode_tries_and_keeps_nothing(host, declare, authority):
    assert declare({**LOGIN, "ca": authority}, check=True)["changed"] is True
    assert (host.tried, host.config.exists(), host.certificates.exists()) == ([], False, False)


@pytest.mark.parametrize(
    "content", ['{"auths": {"%s": {"auth": "!"}}}', '{"auths": {"%s": {"auth": "bm8="}}}']
)
def test_a_broken_login_is_named(host, content):
    host.write(content % HOST)
    with pytest.raises(LoginError, match="docker login"):
        find(HOST)


def test_what_facts_tell_are_names_alone(host, declare, authority):
    declare(LOGIN, {"host": "other:1", "ca": authority})
    assert registry_logins.kept(str(host.receipt.parent)) == ["other:1", HOST]
    host.receipt.write_text("{")
    assert registry_logins.kept(str(host.receipt.parent)) == ["other:1"]


@pytest.mark.parametrize(
    "name",
    [
        "", "..", "../..", "../../../tmp/x", "a/../b", "a/b", "/etc", "a b", "a\nb", "a:5000\n",
        "a:", "a:port", "a:70000", "https://a", "a%2f", "-a", "a-", "é.example", "a\\b", "a" * 300,
        "[::1", "user@a",
    ],
)  # fmt: skip
def test_a_host_that_is_no_registry_is_refused_before_anything(host, declare, authority, name):
    result = declare({**LOGIN, "host": name, "ca": authority})
    assert result["failed"] is True
    assert "container_runtime_registries" in result["msg"]
    assert "nothing was changed" in result["msg"]
    assert host.tried == []
    assert not host.config.exists()
    assert not host.certificates.exists()


@pytest.mark.parametrize(
    "name", ["a", "registry.example.org", "10.0.0.5:5000", "[::1]:5000", "[fe80::1]", "docker.io"]
)
def test_names_of_registries_are_taken(host, declare, name):
    assert declare({**LOGIN, "host": name})["changed"] is True


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("username", "me:you"),
        ("username", "me\n"),
        ("password", "secret-word\n"),
        ("password", "secret-word\0"),
    ],
)
def test_a_login_that_cannot_be_sent_is_refused_without_a_word_of_it(host, declare, field, value):
    result = declare({**LOGIN, field: value})
    assert result["failed"] is True
    assert f"the {field} for {HOST} holds" in result["msg"]
    assert "secret-word" not in json.dumps(result["msg"])
    assert (host.tried, host.config.exists()) == ([], False)


@pytest.mark.parametrize("password", ["p\"w'$x%`\\\\ é ü;#", "ünï 密码", "-x", " "])
def test_odd_passwords_come_back_as_they_are(host, declare, password):
    declare({**LOGIN, "password": password})
    assert find(HOST).password == password


def test_an_authority_with_words_of_other_languages_around_it_is_taken(host, declare, authority):
    text = "# Főtanúsítvány ü\r\n" + authority
    assert declare({**LOGIN, "ca": text})["changed"] is True
    assert "Főtanúsítvány" in host.certificate.read_text()
    assert declare({**LOGIN, "ca": text})["changed"] is False


@pytest.mark.parametrize("field", ["host", "username", "password", "ca"])
@pytest.mark.parametrize("half", [chr(0xD800), chr(0xDC80)])
def test_half_a_character_is_refused_and_not_written_out(field, half):
    one = {**LOGIN, "ca": "", field: "secret-word" + half}
    (told,) = registry_logins.mistakes(one)
    told.encode("ascii")
    assert field in told
    assert "secret-word" not in told or field == "host"


@pytest.mark.parametrize("damage", ["cut", "altered", "none"])
def test_an_authority_that_is_none_is_refused(host, declare, authority, damage):
    text = {
        "cut": authority[: len(authority) // 2],
        "altered": authority.replace("MII", "!!!", 1),
        "none": "é",
    }[damage]
    result = declare({**LOGIN, "ca": text})
    assert result["failed"] is True
    assert f"ca of {HOST}" in result["msg"]
    assert not host.certificates.exists()
