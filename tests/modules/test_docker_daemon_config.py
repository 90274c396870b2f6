"""Docker's settings on a host: written when they differ, tried first, taken back when it does not start."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from ansible.module_utils import docker_daemon, docker_proxy, docker_unit, systemctl, systemd_texts
from ansible.module_utils.command import Result
from ansible.module_utils.daemon_json import ConfigError
from ansible.module_utils.docker_daemon import DaemonError, Version
from ansible.module_utils.docker_proxy import ProxyError, drop_in_text, variables_text
from ansible.module_utils.docker_settings import due, ours, overlay
from ansible.module_utils.docker_unit import DaemonUnit
from hypothesis import example, given
from hypothesis import strategies as st

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
        ({"debug": True}, {"debug": False, "labels": ["x"]}, "reload"),
        ({"insecure-registries": ["x", "y"]}, {"insecure-registries": ["y"]}, "reload"),
        ({"max-concurrent-downloads": 2}, {}, "reload"),
        ({"registry-mirrors": ["http://x"]}, {}, "restart"),
        ({"insecure-registries": ["x"]}, {"debug": True}, "restart"),
        ({}, {"data-root": "/data"}, "restart"),
        ({}, {"debug": True, "bip": "x"}, "restart"),
        ({}, OURS, "restart"),
    ],
)
def test_no_restart_where_a_reload_will_do(before, after, by):
    assert due(before, after) == by


def test_an_old_daemon_cannot_try_but_a_clash_with_the_unit_is_seen(monkeypatch):
    monkeypatch.setattr(docker_daemon, "run", lambda argv, **kw: pytest.fail("it has no --validate"))
    docker_daemon.check(OLD, "/x", DaemonUnit(["-H", "fd://"], []), {"bip": "x"})
    with pytest.raises(DaemonError, match="hosts"):
        docker_daemon.check(OLD, "/x", DaemonUnit(["-H", "fd://"], []), {"hosts": ["x"]})


def test_a_new_daemon_tries_with_the_units_options(monkeypatch):
    seen = []
    monkeypatch.setattr(docker_daemon, "run", lambda argv, **kw: seen.append(argv) or Result(1, "", "bad"))
    with pytest.raises(DaemonError, match="bad"):
        docker_daemon.check(NEW, "/trial", DaemonUnit(["-H", "fd://", "--config-file", "/x"], []), {})
    assert seen == [["dockerd", "--validate", "--config-file=/trial", "-H", "fd://"]]


def test_a_proxys_files():
    assert variables_text("", []) is None
    text = variables_text('http://me:p%40ss$"w@proxy:3128', [".example.org", "::1"])
    assert 'HTTP_PROXY="http://me:p%40ss\\$\\"w@proxy:3128"\n' in text
    assert 'NO_PROXY="localhost,127.0.0.1,::1,.example.org"\n' in text
    assert "EnvironmentFile=-/etc/boxwright/docker-proxy.env\n" in drop_in_text(
        "/etc/boxwright/docker-proxy.env"
    )


@given(
    st.text(alphabet=st.characters(exclude_categories=["Cs", "Cc"]), min_size=1),
    st.lists(st.text(alphabet="%$\"'\\\\ #;`é.*", max_size=8), max_size=3),
)
@example("http://me:p%40s\"s'w`$HOME${X}\\\\#;@proxy:3128", ["a b", "%n", "$x", "\\\\"])
def test_systemd_reads_back_what_is_declared_of_a_proxy(proxy, no_proxy):
    proxy = proxy.replace(" ", "")
    text = variables_text(proxy, no_proxy)
    if text is None:
        assert not proxy
        return
    assert systemd_texts.variables(text) == {
        "HTTP_PROXY": proxy,
        "HTTPS_PROXY": proxy,
        "NO_PROXY": ",".join(dict.fromkeys(["localhost", "127.0.0.1", "::1", *no_proxy])),
    }


@pytest.mark.parametrize(
    ("proxy", "no_proxy", "variable"),
    [
        ("http://proxy:3128\nLD_PRELOAD=/x", [], "box_proxy"),
        ("http://proxy:3128\r", [], "box_proxy"),
        ("http://proxy :3128", [], "box_proxy"),
        ("http://proxy\0", [], "box_proxy"),
        ("http://\ud800", [], "box_proxy"),
        ("http://proxy:3128", ["a", "b\nX=1"], "box_no_proxy"),
        ("http://proxy:3128", ["\udc80"], "box_no_proxy"),
    ],
)
def test_a_proxy_that_no_file_can_hold_is_refused(proxy, no_proxy, variable):
    with pytest.raises(ProxyError, match=variable) as error:
        variables_text(proxy, no_proxy)
    str(error.value).encode("ascii")


@pytest.mark.parametrize("path", ["/etc/100%/b w", "/etc/*", "/etc/[a]?", "/etc/x\\y"])
def test_the_drop_in_names_its_file_and_no_pattern(path):
    line = drop_in_text(path).splitlines()[-1]
    assert line.startswith("EnvironmentFile=-")
    read_as = line.partition("=-")[2].replace("%%", "%")
    assert re.sub(r"\\(.)", r"\1", read_as) == path
    assert "%" not in line.replace("%%", "")


def test_a_directory_that_no_unit_can_name_is_refused():
    with pytest.raises(ProxyError, match="box_config_dir"):
        drop_in_text("/etc/a\nExecStart=/bin/x")


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd is not here")
@pytest.mark.parametrize("path", ["/etc/boxwright/x.env", "/etc/100%n/b w/x.env", "/etc/a\"b'c/x.env"])
def test_systemd_itself_takes_the_drop_in(tmp_path, path):
    unit = tmp_path / "boxwright-test.service"
    unit.write_text("[Unit]\nDescription=x\n[Service]\nExecStart=/bin/true\n" + drop_in_text(path))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", "--generators=no", str(unit)],
        capture_output=True, text=True, check=False, env={**os.environ, "SYSTEMD_LOG_LEVEL": "info"},
    )  # fmt: skip
    assert "boxwright-test.service:" not in done.stderr, done.stderr
    broken = tmp_path / "boxwright-broken.service"
    broken.write_text(unit.read_text().replace("EnvironmentFile=-/", "EnvironmentFile=-"))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", "--generators=no", str(broken)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "boxwright-broken.service:" in done.stderr, "it tells of a value that it cannot take"


class Host:
    """A host with a Docker: what was done to it, and how it takes it."""

    def __init__(self, tmp_path, monkeypatch):
        self.config = tmp_path / "etc" / "docker" / "daemon.json"
        self.receipt = tmp_path / "etc" / "boxwright" / "receipt.json"
        self.pending = tmp_path / "run" / "due"
        self.drop_in = tmp_path / "etc" / "systemd" / "proxy.conf"
        self.calls, self.running, self.version = [], {}, NEW
        self.up, self.refuses, self.fails, self.enabled = True, None, 0, True
        for name, value in {
            "installed": lambda: self.version,
            "check": self.check,
            "restart": self.restart,
            "wait": lambda seconds=0: {
                "Runtimes": {"nvidia": {}, "runc": {}},
                "DockerRootDir": "/var/lib/docker",
            },
        }.items():
            monkeypatch.setattr(docker_daemon, name, value)
        self.unit = DaemonUnit([f"--config-file={self.config}"], [])
        monkeypatch.setattr(docker_unit, "look", lambda: self.unit)
        monkeypatch.setattr(systemctl, "show", lambda unit: self.state())
        monkeypatch.setattr(systemctl, "call", lambda *words, **kw: self.calls.append(words))
        monkeypatch.setattr(docker_daemon_config, "PENDING", str(self.pending))
        monkeypatch.setattr(docker_proxy, "DROP_IN", str(self.drop_in))
        self.variables = self.receipt.with_name("docker-proxy.env")
        self.live = False
        monkeypatch.setattr(docker_daemon_config, "HOOK", str(tmp_path / "hook"))
        host = self

        class Docker:
            def running(self):
                return host.running

            def info(self):
                return {"LiveRestoreEnabled": host.live}

        monkeypatch.setattr(docker_daemon_config, "Docker", Docker)

    def state(self):
        word = ("active", "running") if self.up else ("inactive", "dead")
        return systemctl.UnitState("loaded", *word, "success", 0, "", 0, self.enabled, False, 1000.0)

    def check(self, version, path, unit, config):
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


def test_a_docker_that_does_not_start_at_boot_is_enabled(host, configure):
    configure()
    host.calls.clear()
    host.enabled = False
    looked = configure(check=True)
    assert (looked["changed"], looked["applied"], host.calls) == (True, "none", [])
    mended = configure()
    assert (mended["changed"], host.calls) == (True, [("enable", "docker.service")])
    host.enabled = True
    assert configure()["changed"] is False
    assert not host.backups()


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


@pytest.mark.parametrize(
    "content",
    [
        '{"debug": true,\n"debug": false}',
        '{"debug":\n1e400}',
        '{"debug":\n-Infinity}',
        '{"debug":\nNaN}',
        '{\n"runtimes": "x"}',
        '{"a":' + "[" * 600 + "]" * 600 + "}",
    ],
)
def test_what_cannot_be_kept_is_left_alone_and_named_with_its_line(host, configure, content):
    host.write(content)
    result = configure()
    line = 1 + content.count("\n")
    assert f"{host.config}:{line}" in result["msg"]
    assert "left as it is" in result["msg"]
    assert (host.config.read_text(), host.calls, host.backups()) == (content, [], [])


def test_half_a_character_and_odd_numbers_come_back(host, configure):
    before = '{\n    "labels": [\n        "\\ud800=1"\n    ],\n    "x": 1.10,\n    "mtu": 1e3\n}\n'
    host.write(before)
    configure(config={"mtu": 1400, "labels": ["a=1"]})
    assert '"\\ud800=1"' in host.config.read_text()
    assert '"x": 1.10' in host.config.read_text()
    assert '"mtu": 1400' in host.config.read_text()
    configure(state="absent")
    assert host.config.read_text() == before


@pytest.mark.parametrize("value", [float("inf"), float("nan"), "\ud800", 10**400, {"x": [float("-inf")]}])
def test_a_declared_value_that_json_has_not_is_refused(host, value):
    # As a module has it: its parameters come from JSON that Python wrote, with Infinity in it.
    with pytest.raises(ConfigError, match=r"container_runtime_daemon_config\.bip.*nothing was changed"):
        docker_daemon_config.Daemon(
            {"config": {"bip": value}, "state": "present", "receipt": str(host.receipt), "proxy": None}
        )


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
    assert [path.name for path in host.config.parent.iterdir() if ".before-" in path.name] == []
    assert configure(state="absent")["changed"] is False


def test_uninstall_takes_a_file_that_was_ours_as_a_whole(host, configure):
    configure()
    configure(state="absent")
    assert not host.config.exists()


def test_a_proxy_goes_into_a_file_for_root_alone_and_out_again(host, configure):
    configure(proxy="http://me:secret@proxy:3128")
    assert "secret" in host.variables.read_text()
    assert host.variables.stat().st_mode & 0o777 == 0o600
    assert "secret" not in host.drop_in.read_text(), "systemd shows a unit to every user"
    assert str(host.variables) in host.drop_in.read_text()
    assert host.calls == [("daemon-reload",), ("restart",)]
    host.calls.clear()
    assert configure(proxy="http://me:secret@proxy:3128")["changed"] is False
    assert configure(proxy="")["applied"] == "restart"
    assert not host.drop_in.exists()
    assert not host.variables.exists()


def test_uninstall_takes_the_proxy_away(host, configure):
    configure(proxy="http://me:secret@proxy:3128")
    configure(state="absent", proxy="http://me:secret@proxy:3128")
    assert not host.drop_in.exists()
    assert not host.variables.exists()


def test_what_the_unit_sets_too_is_refused_before_anything_is_written(host, configure, tmp_path):
    drop_in = tmp_path / "data.conf"
    drop_in.write_text("[Service]\nExecStart=\nExecStart=/usr/bin/dockerd --data-root=/data\n")
    host.unit = DaemonUnit([*host.unit.options, "--data-root=/data"], [str(drop_in)])
    result = configure(config={"data-root": "/other"})
    assert f"data-root, which --data-root sets too in {drop_in}:3" in result["msg"]
    assert "one of the two" in result["msg"]
    assert "container_runtime_daemon_config" in result["msg"]
    assert (host.calls, host.config.exists()) == ([], False)
    assert configure()["changed"] is True


def test_a_clash_that_somebody_made_is_seen_before_the_next_restart_finds_it(host, configure):
    host.write({"debug": True, **OURS})
    configure()
    host.unit = DaemonUnit([*host.unit.options, "-D"], [])
    assert "debug, which -D sets too" in configure()["msg"]


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda path: path.mkdir(), "is a directory"),
        (lambda path: path.symlink_to("/nowhere/daemon.json"), "symbolic link to /nowhere/daemon.json"),
        (lambda path: path.symlink_to(path), "circle"),
        (lambda path: path.write_bytes('{"a": "é"}'.encode("latin-1")), "not UTF-8"),
        (lambda path: path.write_text('{"debug": true}', encoding="utf-16"), "UTF-16"),
        (lambda path: path.write_text('{\n "a": 1,\n}'), ":2 is not valid JSON"),
        (lambda path: path.write_text('{"max-concurrent-downloads": NaN}'), "not valid JSON"),
        (lambda path: path.write_text("[1]"), ":1 is not valid JSON that can be kept: a list in"),
        (lambda path: path.write_text("[" * 100000), "not valid JSON"),
        (os.mkfifo, "no regular file"),
    ],
)
def test_a_file_that_cannot_be_taken_is_left_alone(host, configure, make, said):
    host.config.parent.mkdir(parents=True)
    make(host.config)
    before = os.lstat(host.config)
    result = configure()
    assert said in result["msg"], result["msg"]
    assert str(host.config) in result["msg"]
    assert (os.lstat(host.config).st_ino, os.lstat(host.config).st_mtime_ns) == (
        before.st_ino,
        before.st_mtime_ns,
    )
    assert (host.calls, list(host.config.parent.iterdir())) == ([], [host.config])


def test_a_file_that_cannot_be_written_is_told(host, configure, monkeypatch):
    host.write({"debug": True})

    def refuse(path, text, mode=0o644):
        if path == str(host.config):
            raise OSError(1, "Operation not permitted", path)
        write(path, text, mode)

    write = docker_daemon_config.write
    monkeypatch.setattr(docker_daemon_config, "write", refuse)
    result = configure()
    assert "immutable" in result["msg"]
    assert (host.read(), host.calls, host.pending.exists()) == ({"debug": True}, [], False)
    assert host.backups() == []


def test_a_directory_that_cannot_be_written_is_told(host, configure, monkeypatch):
    host.write({"debug": True})

    def refuse(path, text, mode=0o644):
        raise OSError(30, "Read-only file system", path)

    monkeypatch.setattr(docker_daemon_config, "write", refuse)
    assert "mounted read-only" in configure()["msg"]
    assert (host.read(), host.calls) == ({"debug": True}, [])


def test_a_reload_that_fails_brings_the_old_file_back(host, configure, monkeypatch):
    configure()
    before = host.config.read_text()

    def refuse(*words, **kw):
        if words[0] == "reload":
            raise systemctl.UnitError("systemctl reload docker.service: Job failed")

    monkeypatch.setattr(systemctl, "call", refuse)
    result = configure(config={"labels": ["a=b"]})
    assert "runs with the old ones again: systemctl reload" in result["msg"]
    assert host.config.read_text() == before


@pytest.mark.parametrize("content", ["{", "[]", '{"entries": 1}', '{"entries": [{}], "made": []}'])
def test_a_receipt_that_makes_no_sense_is_told(host, configure, content):
    configure()
    host.receipt.write_text(content)
    assert f"{host.receipt}, which keeps what of the settings is ours" in configure()["msg"]


def test_with_live_restore_only_our_engines_stop(host, configure):
    host.running, host.live = {"web": "nginx", "boxwright-qwen": "x"}, True
    assert configure(announce=True)["announced"] == ["boxwright-qwen"]


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
