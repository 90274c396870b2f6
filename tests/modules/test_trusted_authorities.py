"""Whom a host trusts: our files and no others, the bundle made anew, and back where that fails."""

import json
from types import SimpleNamespace

import pytest
from ansible.module_utils import pem
from ansible.module_utils.command import Result

from boxwright.ansible.modules import trusted_authorities as module
from boxwright.lab import realm

BUNDLE = "/etc/ssl/certs/ca-certificates.crt"
FOLDER = "/usr/local/share/ca-certificates"


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """Two authorities."""
    return [realm.ensure(tmp_path_factory.mktemp(name), name).authority for name in ("one", "two")]


class Host:
    """A host whose update-ca-certificates does what it is for, or fails."""

    def __init__(self, root, monkeypatch):
        self.root, self.calls, self.fails, self.docker = root, 0, 0, True
        self.passed_over, self.seen_due = (), []
        for folder in (FOLDER, "/etc/ssl/certs", "/run"):
            (root / folder[1:]).mkdir(parents=True)
        self.file(BUNDLE).write_text("")
        monkeypatch.setattr(module, "ROOT", str(root))
        monkeypatch.setattr(module, "run", self.run)
        monkeypatch.setattr(
            module.shutil, "which", lambda name: f"/sbin/{name}" if "update-ca-c" in name else None
        )
        monkeypatch.setattr(module.systemctl, "show", lambda unit: SimpleNamespace(running=self.docker))

    def file(self, path):
        return self.root / path[1:]

    def run(self, argv, timeout):
        self.calls += 1
        self.seen_due.append(self.docker_due)
        if self.fails:
            self.fails -= 1
            return Result(1, "", "no room")
        texts = [path.read_text() for path in sorted(self.file(FOLDER).glob("*.crt"))]
        texts = [text for text in texts if text not in self.passed_over]
        self.file(BUNDLE).write_text("".join(texts))
        return Result(0, "", "")

    def names(self):
        return sorted(path.name for path in self.file(FOLDER).iterdir())

    @property
    def docker_due(self):
        return self.file(module.DOCKER_DUE).exists()


@pytest.fixture
def host(tmp_path, monkeypatch):
    return Host(tmp_path, monkeypatch)


def test_each_is_a_file_of_its_own_and_again_nothing_changes(host, two):
    (host.file(FOLDER) / "theirs.crt").write_text("theirs")
    assert module.make_true("\n".join(two), check=True)["changed"]
    assert host.names() == ["theirs.crt"], "check mode changes nothing"
    result = module.make_true("\r\n".join(two).replace("\n", "\r\n"), check=False)
    assert result["changed"]
    assert host.names() == ["boxwright-1.crt", "boxwright-2.crt", "theirs.crt"]
    assert host.docker_due, "a daemon that runs knows only whom it knew at its start"
    assert result["fingerprints"] == pem.fingerprints("".join(two))
    assert not module.make_true("".join(two), check=False)["changed"]
    assert host.calls == 1


def test_a_run_that_ended_between_the_files_and_the_bundle_is_made_up_for(host, two):
    module.make_true(two[0], check=False)
    host.file(BUNDLE).write_text("")
    assert module.make_true(two[0], check=False)["changed"]
    assert pem.certificates(host.file(BUNDLE).read_text()) == pem.certificates(two[0])


def test_what_is_declared_no_more_is_trusted_no_more(host, two):
    module.make_true("".join(two), check=False)
    result = module.make_true(two[1], check=False)
    assert result["said"] == "1 trusted, 1 no more"
    assert host.names() == ["boxwright-1.crt"]
    module.make_true("", check=False)
    assert (host.names(), host.file(BUNDLE).read_text()) == ([], "")
    assert not module.make_true("", check=False)["changed"]


def test_a_failure_leaves_everything_as_it_was(host, two):
    module.make_true(two[0], check=False)
    before = host.file(BUNDLE).read_text()
    host.fails = 1
    with pytest.raises(module.TrustError, match="as they were: no room"):
        module.make_true("".join(two), check=False)
    assert host.names() == ["boxwright-1.crt"]
    assert host.file(BUNDLE).read_text() == before


def test_a_certificate_that_is_passed_over_is_told_once_and_not_kept(host, two):
    """As p11-kit does with what is no authority's: each run would restart Docker for it otherwise."""
    module.make_true(two[0], check=False)
    host.file(module.DOCKER_DUE).unlink()
    host.passed_over = pem.certificates(two[1])
    with pytest.raises(module.TrustError, match=r"no certificate 2 of box_ca: is it an authority's"):
        module.make_true("".join(two), check=False)
    assert host.names() == ["boxwright-1.crt"]
    assert not host.docker_due
    assert not module.make_true(two[0], check=False)["changed"]


def test_a_full_disk_leaves_everything_as_it_was(host, two, monkeypatch):
    module.make_true(two[0], check=False)
    write = module.write

    def full(path, *rest):
        if path.endswith("boxwright-2.crt"):
            raise OSError(28, "No space left on device", path)
        write(path, *rest)

    monkeypatch.setattr(module, "write", full)
    with pytest.raises(module.TrustError, match="No space left"):
        module.make_true("".join(reversed(two)), check=False)
    assert host.file(f"{FOLDER}/boxwright-1.crt").read_text() == pem.certificates(two[0])[0]
    assert not module.make_true(two[0], check=False)["changed"]


def test_the_restart_is_due_before_anything_is_exchanged(host, two):
    """A run that is killed after the bundle was made would otherwise leave Docker without it for ever."""
    module.make_true(two[0], check=False)
    assert host.seen_due == [True]


def test_one_that_stands_there_twice_is_one(host, two):
    again = two[0].replace("\n", "\r\n")
    assert module.make_true(two[0] + two[1] + again, check=False)["said"] == "2 trusted"


@pytest.mark.parametrize(
    "text",
    [
        "no certificate",
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
        "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n",
    ],
)
def test_what_is_no_certificate_is_refused_before_anything_changes(host, text):
    with pytest.raises(module.TrustError, match="nothing was changed"):
        module.make_true(text, check=False)
    assert (host.names(), host.calls) == ([], 0)


def test_a_host_that_keeps_no_authorities_is_told(host, two, monkeypatch):
    monkeypatch.setattr(module.shutil, "which", lambda name: None)
    with pytest.raises(module.TrustError, match="ca-certificates"):
        module.make_true(two[0], check=False)
    assert not host.docker_due


def test_without_docker_no_restart_is_due(host, two):
    host.docker = False
    module.make_true(two[0], check=False)
    assert not host.docker_due


def test_the_marker_is_the_one_that_docker_is_restarted_for():
    from boxwright.ansible.modules import docker_daemon_config

    assert module.DOCKER_DUE == docker_daemon_config.PENDING


def test_the_result_is_json(host, two):
    json.dumps(module.make_true(two[0], check=False))
