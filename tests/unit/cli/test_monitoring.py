"""The verbs monitor and dashboards."""

import json

import pytest

from boxwright.cli import monitoring
from boxwright.cli.ansible_run import HostReport, RunReport
from boxwright.errors import UserError

HOSTS = """
all:
  hosts:
    box1: {monitoring_exporters: true}
    watcher: {monitoring_exporters: true, monitoring_server: true, monitoring_server_bind: 192.0.2.1}
    other: {}
"""
OFF = {"kind": "failed", "message": "it is full", "role": "monitoring"}


@pytest.fixture
def monitor(monkeypatch, tmp_path, capsys):
    (tmp_path / "hosts.yml").write_text(HOSTS)
    asked = {}

    def call(*names, failing=(), changed=True, **options):
        def play(playbook, hosts, paths, **given):
            asked.update(given, playbook=playbook)
            failures = dict.fromkeys(failing, OFF)
            reports = {
                name: HostReport(name, changed=2 * changed, failure=failures.get(name)) for name in hosts
            }
            return RunReport(2 if failing else 0, 1.0, reports)

        monkeypatch.setattr(monitoring, "play", play)
        status = 0
        try:
            monitoring.monitor(list(names), [str(tmp_path)], **options)
        except SystemExit as error:
            status = error.code
        return status, capsys.readouterr().out

    call.asked = asked
    return call


def test_each_box_says_what_it_is(monitor):
    status, out = monitor("box1", "watcher", "other")
    assert status == 0
    assert out.splitlines() == [
        "box1: is watched (brought there now)",
        "watcher: is watched and watches at http://192.0.2.1:9090 (brought there now)",
        "other: declares no monitoring, and has none (brought there now)",
    ]
    assert monitor.asked["playbook"] == "monitor.yml"


def test_a_rerun_says_that_nothing_had_to_change(monitor):
    assert monitor("box1", changed=False)[1] == "box1: is watched (nothing had to change)\n"


def test_check_says_what_would(monitor):
    _, out = monitor("box1", check=True)
    assert out == "box1: is watched (something would change)\n"
    assert monitor.asked["check"] is True


def test_a_failure_is_one(monitor):
    status, out = monitor("box1", "watcher", failing=["box1"])
    assert status == 1
    assert "box1: is watched" not in out
    assert "watcher: is watched" in out


def test_json(monitor):
    _, out = monitor("watcher", as_json=True)
    assert json.loads(out) == {
        "hosts": {
            "watcher": {
                "watched": True,
                "prometheus": "http://192.0.2.1:9090",
                "changed": True,
                "failure": None,
            }
        }
    }


@pytest.mark.parametrize("format_", ["grafana", "perses"])
def test_dashboards_are_written_and_none_is_replaced(format_, tmp_path, capsys):
    folder = tmp_path / "boards"
    monitoring.dashboards(format_=format_, output=str(folder))
    written = sorted(path.name for path in folder.iterdir())
    assert written == ["boxwright-boxes.json", "boxwright-models.json"]
    kinds = {json.loads((folder / name).read_text()).get("kind") for name in written}
    assert kinds == {"Dashboard" if format_ == "perses" else None}
    assert capsys.readouterr().out.count("written: ") == 2
    with pytest.raises(UserError, match="already"):
        monitoring.dashboards(format_=format_, output=str(folder))


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"format_": "kibana", "output": "x"}, 'none named "kibana"'),
        ({"format_": "", "output": "x"}, "which format?"),
        ({"format_": "perses", "output": ""}, "where to?"),
    ],
)
def test_what_is_missing_is_asked_for(options, told):
    with pytest.raises(UserError, match=told) as error:
        monitoring.dashboards(**options)
    assert error.value.status == 2
    assert error.value.ways_out
