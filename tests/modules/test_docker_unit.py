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


def test_runtimes_may_stand_in_both():
    assert DaemonUnit(["--add-runtime", "nvidia=/x"], []).clashes({"runtimes": {"nvidia": {}}}) == []


@pytest.mark.parametrize(
    "shown", ["", "ExecStart=\nFragmentPath=\n", 'ExecStart={ path=x ; argv[]=x "y ; }\n']
)
def test_a_unit_that_says_nothing_has_no_options(monkeypatch, shown):
    monkeypatch.setattr(docker_unit, "run", lambda argv, **kw: Result(0, shown, ""))
    assert docker_unit.look().clashes({"hosts": []}) == []
