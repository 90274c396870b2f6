"""Docker's settings on a host: written when they differ, tried first, taken back when it does not start."""

import json
from pathlib import Path

import pytest
from ansible.module_utils import docker_daemon, systemctl
from ansible.module_utils.command import Result
from ansible.module_utils.docker_daemon import DaemonError, Version, config_path, unit_options
from ansible.module_utils.docker_settings import drop_in_text, due, ours, overlay

from boxwright.ansible.action.docker_daemon_config import describe
from boxwright.ansible.modules import docker_daemon_config

NEW, OLD = Version("26.1.5", 26), Version("20.10.24", 20)
OURS = {"features": {"cdi": True}, "runtimes": {"nvidia": {"path": "nvidia-container-runtime"}}}


@pytest.mark.parametrize(
    ("version", "current", "wanted"),
    [
        (NEW, {}, OURS),
        (None, {}, OURS),
        (OLD, {}, {"runtimes": OURS["runtimes"]}),
        (NEW, {"runtimes": {"nvidia": {"path": "/bin/sh"}}}, {"features": {"cdi": True}}),
        (NEW, {"runtimes": {"nvidia": {"path": "/gone"}}}, OURS),
        (NEW, {"runtimes": {"nvidia": {"path": 5}}}, OURS),
        (NEW, {"runtimes": "x"}, OURS),
        (NEW, {"runtimes": {"nvidia": "x"}}, OURS),
    ],
)
def test_what_is_ours(version, current, wanted):
    assert ours(version, current) == wanted


def test_the_declared_goes_before_ours():
    assert overlay(OURS, {"features": {"cdi": False}, "bip": "x"}) == {
        "features": {"cdi": False},
        "runtimes": OURS["runtimes"],
        "bip": "x",
    }


@pytest.mark.parametrize(
    ("before", "after", "by"),
    [
        ({}, {}, "none"),
        ({"a": 1}, {"a": 1}, "none"),
        ({}, {"insecure-registries": ["x"]}, "reload"),
        ({"debug": True}, {"labels": ["x"]}, "reload"),
        ({}, {"data-root": "/data"}, "restart"),
        ({}, {"debug": True, "bip": "x"}, "restart"),
        ({}, OURS, "restart"),
    ],
)
def test_no_restart_where_a_reload_will_do(before, after, by):
    assert due(before, after) == by


@pytest.mark.parametrize(
    ("options", "path"),
    [
        ([], "/etc/docker/daemon.json"),
        (["-H", "fd://"], "/etc/docker/daemon.json"),
        (["--config-file=/srv/d.json"], "/srv/d.json"),
        (["--config-file", "/srv/d.json", "-H", "fd://"], "/srv/d.json"),
    ],
)
def test_the_units_own_file_is_the_one(options, path):
    assert config_path(options) == path


def test_the_units_options(monkeypatch):
    shown = (
        "ExecStart={ path=/usr/sbin/dockerd ; argv[]=/usr/sbin/dockerd -H fd:// --containerd=/run/c.sock "
        "$DOCKER_OPTS ; ignore_errors=no ; start_time=[n/a] ; stop_time=[n/a] ; pid=0 ; status=0/0 }\n"
    )
    monkeypatch.setattr(docker_daemon, "run", lambda argv, **kw: Result(0, shown, ""))
    assert unit_options() == ["-H", "fd://", "--containerd=/run/c.sock"]


def test_an_old_daemon_cannot_try_but_a_clash_with_the_unit_is_seen(monkeypatch):
    monkeypatch.setattr(docker_daemon, "run", lambda argv, **kw: pytest.fail("it has no --validate"))
    docker_daemon.check(OLD, "/x", ["-H", "fd://"], {"bip": "x"})
    with pytest.raises(DaemonError, match="hosts"):
        docker_daemon.check(OLD, "/x", ["-H", "fd://"], {"hosts": ["x"]})


def test_a_new_daemon_tries_with_the_units_options(monkeypatch):
    seen = []
    monkeypatch.setattr(docker_daemon, "run", lambda argv, **kw: seen.append(argv) or Result(1, "", "bad"))
    with pytest.raises(DaemonError, match="bad"):
        docker_daemon.check(NEW, "/trial", ["-H", "fd://", "--config-file", "/x"], {})
    assert seen == [["dockerd", "--validate", "--config-file=/trial", "-H", "fd://"]]


def test_a_proxys_drop_in():
    assert drop_in_text("", []) is None
    text = drop_in_text("http://me:p%40ss$w@proxy:3128", ["localhost", "::1"])
    assert 'Environment="HTTP_PROXY=http://me:p%%40ss$w@proxy:3128"' in text
    assert "Environment=NO_PROXY=localhost,::1" in text


class Host:
    """A host with a Docker: what was done to it, and how it takes it."""

    def __init__(self, tmp_path, monkeypatch):
        self.config = tmp_path / "etc" / "docker" / "daemon.json"
        self.receipt = tmp_path / "etc" / "boxwright" / "receipt.json"
        self.pending = tmp_path / "run" / "due"
        self.drop_in = tmp_path / "etc" / "systemd" / "proxy.conf"
        self.calls, self.running, self.version = [], {}, NEW
        self.up, self.refuses, self.fails = True, None, 0
        for name, value in {
            "installed": lambda: self.version,
            "unit_options": list,
            "config_path": lambda options: str(self.config),
            "check": self.check,
            "restart": self.restart,
            "wait": lambda seconds=0: {
                "Runtimes": {"nvidia": {}, "runc": {}},
                "DockerRootDir": "/var/lib/docker",
            },
        }.items():
            monkeypatch.setattr(docker_daemon, name, value)
        monkeypatch.setattr(systemctl, "show", lambda unit: self.state())
        monkeypatch.setattr(systemctl, "call", lambda *words, **kw: self.calls.append(words))
        monkeypatch.setattr(docker_daemon_config, "PENDING", str(self.pending))
        monkeypatch.setattr(docker_daemon_config, "DROP_IN", str(self.drop_in))
        monkeypatch.setattr(docker_daemon_config, "HOOK", str(tmp_path / "hook"))
        host = self

        class Docker:
            def running(self):
                return host.running

        monkeypatch.setattr(docker_daemon_config, "Docker", Docker)

    def state(self):
        word = ("active", "running") if self.up else ("inactive", "dead")
        return systemctl.UnitState("loaded", *word, "success", 0, "", 0, True, False, 1000.0)

    def check(self, version, path, options, config):
        assert json.loads(Path(path).read_text()) == config
        if self.refuses:
            raise DaemonError(f"{path}: {self.refuses}")

    def restart(self):
        self.calls.append(("restart",))
        if self.fails:
            self.fails -= 1
            raise DaemonError("failed to start daemon: no such driver")
        self.up = True

    def write(self, content):
        self.config.parent.mkdir(parents=True, exist_ok=True)
        self.config.write_text(content if isinstance(content, str) else json.dumps(content))

    def read(self):
        return json.loads(self.config.read_text())

    def backups(self):
        return sorted(self.config.parent.glob("daemon.json.before-*"))


@pytest.fixture
def host(tmp_path, monkeypatch):
    return Host(tmp_path, monkeypatch)


@pytest.fixture
def configure(host, run_module):
    return lambda **kw: run_module("docker_daemon_config", receipt=str(host.receipt), **kw)


def test_a_fresh_host(host, configure):
    result = configure(config={"bip": "172.30.0.1/16"})
    assert (result["changed"], result["applied"], result["cdi"]) == (True, "restart", True)
    assert host.read() == {**OURS, "bip": "172.30.0.1/16"}
    assert host.calls == [("restart",)]
    assert not host.pending.exists()
    again = configure(config={"bip": "172.30.0.1/16"})
    assert (again["changed"], again["applied"], host.calls) == (False, "none", [("restart",)])


def test_other_settings_order_mode_and_a_copy_stay(host, configure):
    host.write('{\n  "log-opts": {"max-size": "100m"},\n  "data-root": "/data"\n}\n')
    host.config.chmod(0o600)
    before = host.config.read_text()
    configure()
    assert list(host.read()) == ["log-opts", "data-root", "features", "runtimes"]
    assert host.config.stat().st_mode & 0o777 == 0o600
    assert [backup.read_text() for backup in host.backups()] == [before]
    assert '\n  "log-opts"' in host.config.read_text()


def test_a_symbolic_link_stays_one(host, configure, tmp_path):
    real = tmp_path / "real.json"
    real.write_text('{"debug": true}')
    host.config.parent.mkdir(parents=True)
    host.config.symlink_to(real)
    configure()
    assert host.config.is_symlink()
    assert json.loads(real.read_text()) == {"debug": True, **OURS}


@pytest.mark.parametrize("content", ["", "\ufeff", "  "])
def test_an_empty_file_is_an_empty_one(host, configure, content):
    host.write(content)
    configure()
    assert host.read() == OURS


def test_a_byte_order_mark_does_not_hide_settings(host, configure):
    host.write('\ufeff{"debug": true}')
    configure()
    assert host.read() == {"debug": True, **OURS}


def test_what_is_no_json_is_left_alone(host, configure):
    host.write('{"a": 1,}')
    result = configure()
    assert result["failed"] is True
    assert "not valid JSON" in result["msg"]
    assert host.config.read_text() == '{"a": 1,}'
    assert host.calls == []


def test_what_docker_refuses_is_not_written(host, configure):
    host.write({"debug": True})
    host.refuses = "invalid logging level: loud"
    result = configure(config={"log-level": "loud"})
    assert "does not accept the settings" in result["msg"]
    assert f"{host.config}: invalid logging level" in result["msg"]
    assert host.read() == {"debug": True}
    assert (host.calls, list(host.config.parent.iterdir())) == ([], [host.config])


def test_when_docker_does_not_start_the_old_file_comes_back(host, configure):
    host.write({"debug": True})
    host.fails = 1
    result = configure()
    assert "runs with the old ones again" in result["msg"]
    assert host.read() == {"debug": True}
    assert host.calls == [("restart",), ("restart",)]
    assert not host.pending.exists()
    assert configure()["changed"] is True
    assert host.read() == {"debug": True, **OURS}


def test_a_file_that_was_not_there_goes_again_when_docker_does_not_start(host, configure):
    host.fails = 1
    assert "failed" in configure()
    assert not host.config.exists()


def test_when_it_starts_with_neither_both_reasons_are_told(host, configure):
    host.write({"debug": True})
    host.fails = 2
    assert "neither with the new settings" in configure()["msg"]


def test_a_reload_is_enough_for_some(host, configure):
    configure()
    host.calls.clear()
    result = configure(config={"insecure-registries": ["depot:5000"]})
    assert (result["applied"], host.calls) == ("reload", [("reload", "docker.service")])


def test_what_is_declared_no_more_goes_back(host, configure):
    host.write({"log-level": "warn"})
    configure(config={"log-level": "debug", "bip": "x"})
    configure()
    assert host.read() == {"log-level": "warn", **OURS}


def test_an_interrupted_run_is_finished_by_the_next(host, configure):
    configure()
    host.calls.clear()
    host.pending.parent.mkdir(exist_ok=True)
    host.pending.write_text("")
    assert configure()["applied"] == "restart"
    assert (host.calls, host.pending.exists()) == ([("restart",)], False)


def test_a_docker_that_is_down_is_started(host, configure):
    configure()
    host.calls.clear()
    host.up = False
    result = configure()
    assert (result["changed"], result["applied"], host.calls) == (True, "start", [("restart",)])


def test_without_cdi_a_hook_that_came_later_needs_a_restart(host, configure, tmp_path):
    host.version = OLD
    configure()
    host.calls.clear()
    (tmp_path / "hook").write_text("")
    assert configure()["applied"] == "restart"


def test_what_a_restart_stops_is_told_first(host, configure):
    host.running = {"web": "nginx", "boxwright-qwen": "x"}
    result = configure(announce=True)
    assert result["announced"] == ["boxwright-qwen", "web"]
    assert (host.calls, host.config.exists()) == ([], False)
    assert configure(announce=False)["announced"] == []
    assert host.calls == [("restart",)]
    assert configure(announce=True)["announced"] == [], "nothing is due any more"


def test_nothing_runs_nothing_to_tell(host, configure):
    assert configure(announce=True)["announced"] == []
    assert host.calls == [("restart",)]


def test_check_mode_shows_and_leaves(host, configure):
    host.write({"debug": True})
    result = configure(check=True, diff=True, config={"proxies": {"http-proxy": "http://me:secret@proxy"}})
    assert (result["changed"], host.read(), host.calls) == (True, {"debug": True}, [])
    assert "***@proxy" in result["diff"]["after"]
    assert "secret" not in result["diff"]["after"]


def test_check_mode_without_docker(host, configure):
    host.version = None
    result = configure(check=True)
    assert (result["changed"], result["cdi"], result.get("failed")) == (True, True, None)


def test_without_docker_it_says_so(host, configure):
    host.version = None
    assert "not installed" in configure()["msg"]


def test_uninstall_takes_only_ours(host, configure):
    host.write({"log-opts": {"max-size": "1m"}, "runtimes": {"other": {"path": "/x"}}})
    configure(config={"bip": "x"})
    configure(state="absent")
    assert host.read() == {"log-opts": {"max-size": "1m"}, "runtimes": {"other": {"path": "/x"}}}
    assert not host.receipt.exists()
    assert configure(state="absent")["changed"] is False


def test_uninstall_takes_a_file_that_was_ours_as_a_whole(host, configure):
    configure()
    configure(state="absent")
    assert not host.config.exists()


def test_a_proxy_goes_into_the_unit_for_root_alone_and_out_again(host, configure):
    configure(proxy="http://me:secret@proxy:3128")
    assert "secret" in host.drop_in.read_text()
    assert host.drop_in.stat().st_mode & 0o777 == 0o600
    assert host.calls == [("daemon-reload",), ("restart",)]
    host.calls.clear()
    assert configure(proxy="http://me:secret@proxy:3128")["changed"] is False
    assert configure(proxy="")["applied"] == "restart"
    assert not host.drop_in.exists()


@pytest.mark.parametrize(
    ("containers", "said"),
    [
        (["boxwright-q"], "boxwright-q (started again by systemd"),
        (["web"], "web (back only with a restart policy"),
        (["boxwright-q", "web"], ") and web"),
    ],
)
def test_the_announcement(containers, said):
    line = describe(containers, "is being")
    assert line.startswith("Docker is being restarted; this stops ")
    assert said in line
