"""The Docker daemon's command line: which file it reads, and what it sets beside that file."""

import pytest
from ansible.module_utils import docker_unit
from ansible.module_utils.command import Result
from ansible.module_utils.docker_unit import DaemonUnit


@pytest.mark.parametrize(
    ("options", "path"),
    [
        ([], "/etc/docker/daemon.json"),
        (["-H", "fd://"], "/etc/docker/daemon.json"),
        (["--config-file=/srv/d.json"], "/srv/d.json"),
        (["--config-file", "/srv/d.json", "-H", "fd://"], "/srv/d.json"),
        (["--config-file=/srv/other.json", "--config-file=/srv/d.json"], "/srv/d.json"),
    ],
)
def test_the_units_own_file_is_the_one(options, path):
    unit = DaemonUnit(options, [])
    assert unit.config_path == path
    assert "/srv/d.json" not in unit.others


@pytest.fixture
def unit(tmp_path, monkeypatch):
    """A unit of three files; the drop-in replaces the command line of the unit's own."""
    files = {
        "docker.service": "[Service]\nExecStart=/usr/bin/dockerd -H fd:// --debug\n",
        "drop-in.conf": "[Service]\n# --debug is off here\nExecStart=\n"
        "ExecStart=/usr/bin/dockerd -H fd:// \\\n"
        "  --data-root=/data $DOCKER_OPTS ${ONE}\n",
        "default": "# options\nDOCKER_OPTS='--registry-mirror https://m --log-opt max-size=1m'\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    shown = (
        "ExecStart={ path=/usr/bin/dockerd ; argv[]=/usr/bin/dockerd -H fd:// --data-root=/data $DOCKER_OPTS "
        "${ONE} ; ignore_errors=no ; start_time=[n/a] ; stop_time=[n/a] ; pid=0 ; status=0/0 }\n"
        f"FragmentPath={tmp_path}/docker.service\nDropInPaths={tmp_path}/drop-in.conf\n"
        f'Environment=ONE=-lwarn "OTHER=a b"\nEnvironmentFiles={tmp_path}/default (ignore_errors=yes)\n'
        f"EnvironmentFiles={tmp_path}/missing (ignore_errors=yes)\n"
    )
    monkeypatch.setattr(docker_unit, "run", lambda argv, **kw: Result(0, shown, ""))
    return docker_unit.look()


def test_variables_are_put_in(unit):
    assert unit.options == [
        "-H", "fd://", "--data-root=/data", "--registry-mirror", "https://m", "--log-opt", "max-size=1m",
        "-lwarn",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("key", "flag", "place"),
    [
        ("data-root", "--data-root", "drop-in.conf:5"),
        ("hosts", "-H", "drop-in.conf:4"),
        ("registry-mirrors", "--registry-mirror", "default:2"),
        ("log-opts", "--log-opt", "default:2"),
        ("log-level", "-l", ""),
    ],
)
def test_a_clash_names_flag_file_and_line(unit, tmp_path, key, flag, place):
    (clash,) = unit.clashes({key: "x", "features": {"cdi": True}})
    assert (clash.key, clash.flag) == (key, flag)
    assert clash.place == (f"{tmp_path}/{place}" if place else "")


def test_what_only_one_of_them_sets_is_no_clash(unit):
    assert unit.clashes({"debug": True, "bip": "x", "features": {}, "runtimes": {}}) == []
    assert unit.clashes({"features": {"data-root": "x"}, "default-ulimits": {"hosts": {}}}) == []


@pytest.mark.parametrize(
    ("options", "key", "config"),
    [
        (["-H", "fd://"], "hosts", {"hosts": []}),
        (["-Hfd://"], "hosts", {"hosts": []}),
        (["-H=fd://"], "hosts", {"hosts": []}),
        (["--host", "fd://"], "hosts", {"hosts": []}),
        (["-DH", "fd://"], "hosts", {"hosts": []}),
        (["-g", "/data"], "data-root", {"data-root": "x"}),
        (["-g/data"], "data-root", {"data-root": "x"}),
        (["--graph=/data"], "data-root", {"data-root": "x"}),
        (["--data-root=/data"], "data-root", {"data-root": "x"}),
        (["--feature", "containerd-snapshotter"], "features", {"features": {"cdi": True}}),
        (["--http-proxy=http://p"], "proxies.http-proxy", {"proxies": {"http-proxy": "http://q"}}),
        (["--cdi-spec-dir=/x"], "cdi-spec-dirs", {"cdi-spec-dirs": []}),
    ],
)
def test_every_spelling_of_an_option_is_found(options, key, config):
    assert [clash.key for clash in DaemonUnit(options, []).clashes(config)] == [key]


def test_a_value_that_looks_like_short_options_is_none():
    assert DaemonUnit(["-lDEBUG"], []).clashes({"debug": True, "hosts": []}) == []


def test_runtimes_may_stand_in_both():
    assert DaemonUnit(["--add-runtime", "nvidia=/x"], []).clashes({"runtimes": {"nvidia": {}}}) == []


@pytest.mark.parametrize(
    "shown", ["", "ExecStart=\nFragmentPath=\n", 'ExecStart={ path=x ; argv[]=x "y ; }\n']
)
def test_a_unit_that_says_nothing_has_no_options(monkeypatch, shown):
    monkeypatch.setattr(docker_unit, "run", lambda argv, **kw: Result(0, shown, ""))
    assert docker_unit.look().clashes({"hosts": []}) == []


def shown_as(monkeypatch, argv, more="", path="/bin/sh"):
    shown = f"ExecStart={{ path={path} ; argv[]={argv} ; ignore_errors=no ; pid=0 ; status=0/0 }}\n{more}"
    monkeypatch.setattr(docker_unit, "run", lambda argv, **kw: Result(0, shown, ""))
    return docker_unit.look()


@pytest.mark.parametrize(
    ("argv", "options"),
    [
        (
            '/bin/sh -c "exec /usr/bin/dockerd -H fd:// $OPTS && true"',
            ["-H", "fd://", "--data-root", "/data"],
        ),
        ("/usr/bin/env A=b dockerd $OPTS", ["--data-root", "/data"]),
        ("/usr/bin/nice -n 5 /usr/bin/dockerd --debug", ["--debug"]),
        (
            '/bin/bash -c "source /etc/x; dockerd ${OPTS} --debug >/dev/null"',
            ["--data-root", "/data", "--debug"],
        ),
        ("/bin/sh -c 'dockerd \"'", []),
    ],
)
def test_a_daemon_that_another_program_starts(monkeypatch, argv, options):
    assert shown_as(monkeypatch, argv, 'Environment="OPTS=--data-root /data"\n').options == options


def test_a_daemon_that_a_script_starts_is_asked_itself(monkeypatch, tmp_path):
    monkeypatch.setattr(docker_unit, "PROC", str(tmp_path))
    for pid, words in (("7", "/usr/bin/dockerd\0--data-root=/data\0-D\0"), ("8", "sleep\0--debug\0")):
        (tmp_path / pid).mkdir()
        (tmp_path / pid / "cmdline").write_text(words)
    assert shown_as(monkeypatch, "/srv/start", "MainPID=7\n").options == ["--data-root=/data", "-D"]
    for other in ("8", "9", "0", "../7"):
        assert shown_as(monkeypatch, "/srv/start", f"MainPID={other}\n").options == []


@pytest.mark.parametrize(
    "table",
    [
        'DOCKER_OPTS="--data-root /data \\\n  --debug"\n',
        "DOCKER_OPTS=--data-root /data \\\n  --debug\n",
        "#DOCKER_OPTS=-H x\nDOCKER_OPTS='--data-root /data\n--debug'\n",
    ],
)
@pytest.mark.parametrize("pattern", ["docker", "dock*"])
def test_options_of_a_file_of_variables_over_several_lines(monkeypatch, tmp_path, table, pattern):
    (tmp_path / "docker").write_text(table)
    unit = shown_as(
        monkeypatch,
        "/usr/sbin/dockerd -H fd:// $DOCKER_OPTS",
        f"EnvironmentFiles={tmp_path}/{pattern} (ignore_errors=yes)\n",
        "/usr/sbin/dockerd",
    )
    assert unit.options == ["-H", "fd://", "--data-root", "/data", "--debug"]
    (clash,) = unit.clashes({"debug": True})
    assert (clash.flag, clash.place.rpartition(":")[0]) == ("--debug", str(tmp_path / "docker"))
