"""The files of a box's monitoring, together or not at all; units that read them; what answers is judged."""

import json
import os
import stat
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from ansible.module_utils import kept_files, monitoring_probe
from ansible.module_utils.kept_files import File, KeptError
from ansible.module_utils.systemctl import UnitState

from boxwright.ansible.modules import monitoring_files


@pytest.fixture
def host(tmp_path, monkeypatch, run_module):
    """A host's units and files; call(…) runs the module."""
    return Host(tmp_path, monkeypatch, run_module)


class Host:
    def __init__(self, folder, monkeypatch, run_module):
        self.folder, self.run_module = folder, run_module
        self.units, self.calls = {}, []
        monkeypatch.setattr(kept_files.systemctl, "show", self.show)
        monkeypatch.setattr(kept_files.systemctl, "call", lambda *words, **_: self.calls.append(words))
        monkeypatch.setattr(kept_files.systemctl, "restart", self.restart)
        monkeypatch.setattr(monitoring_files, "group_of", lambda name: os.getgid())
        # Only root gives files away.
        monkeypatch.setattr(kept_files.os, "chown", lambda path, user, group: None)

    def show(self, name):
        active, enabled, began = self.units.get(name, ("inactive", False, None))
        return UnitState("loaded", active, "running", "success", 0, "", 0, enabled, False, began)

    def restart(self, name, timeout=0):
        self.calls.append(("restart", name))
        newest = max(path.stat().st_mtime for path in self.folder.rglob("*"))
        self.units[name] = ("active", True, float(int(newest)))

    def path(self, name):
        return str(self.folder / name)

    def call(self, **arguments):
        arguments = {
            "files": {self.path("etc/main.yml"): "one\n"},
            "units": [{"name": "it.service", "files": [self.path("etc/main.yml")]}],
            **arguments,
        }
        return self.run_module("monitoring_files", **arguments)


def test_files_are_written_and_their_unit_started(host):
    result = host.call()
    assert result["changed"] is True
    assert (result["files"], result["started"]) == ([host.path("etc/main.yml")], ["it.service"])
    assert host.calls == [("daemon-reload",), ("enable", "it.service"), ("restart", "it.service")]


def test_a_rerun_changes_nothing(host):
    host.call()
    host.calls.clear()
    assert host.call()["changed"] is False
    assert host.calls == []


def test_without_units_none_is_touched(host):
    assert host.call(units=[])["changed"] is True
    assert host.calls == []


def test_a_unit_that_began_before_its_file_was_written_is_started_anew(host):
    """As after a run that was killed between the two."""
    host.call(units=[])
    host.units["it.service"] = ("active", True, 1.0)
    assert host.call()["started"] == ["it.service"]


@pytest.mark.parametrize("state", [("inactive", True, None), ("active", False, None)])
def test_a_unit_that_does_not_run_or_would_not_after_a_boot(host, state):
    host.call()
    host.units["it.service"] = state
    assert host.call()["started"] == ["it.service"]


def test_check_mode_tells_and_touches_nothing(host):
    result = host.call(check=True, diff=True, secrets={host.path("password"): "s3cret-word"})
    assert result["changed"] is True
    assert not (host.folder / "etc").exists()
    assert host.calls == []
    assert "s3cret-word" not in json.dumps(result)


def test_a_secret_is_for_its_group_alone_and_never_told(host):
    result = host.call(diff=True, secrets={host.path("password"): "s3cret-word"})
    path = Path(host.path("password"))
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert path.read_text() == "s3cret-word"
    assert "s3cret-word" not in json.dumps(result)
    assert host.call(secrets={host.path("password"): "s3cret-word"})["changed"] is False
    path.chmod(0o644)
    assert host.call(secrets={host.path("password"): "s3cret-word"})["changed"] is True


def test_a_secret_waits_for_its_group(host, monkeypatch):
    monkeypatch.setattr(monitoring_files, "group_of", lambda name: None)
    assert host.call(secrets={host.path("password"): "s3cret-word"})["changed"] is True
    assert not Path(host.path("password")).exists()


def test_what_is_not_meant_any_more_goes(host):
    host.call()
    host.units["other.service"] = ("active", True, None)
    ended = [
        {"name": "it.service", "mark": host.path("etc/main.yml")},
        {"name": "other.service", "mark": host.path("etc/none")},
    ]
    host.calls.clear()
    result = host.call(files={}, units=[], gone=[host.path("etc/main.yml")], ended=ended)
    assert result["changed"] is True
    assert not Path(host.path("etc/main.yml")).exists()
    # The other one is somebody else's: no file of ours is with it.
    assert host.calls == [("disable", "--now", "it.service"), ("daemon-reload",)]


def refusing(folder):
    program = folder / "promtool"
    program.write_text("#!/bin/sh\necho 'unknown field: scrap_configs'\nexit 1\n")
    program.chmod(0o755)
    return [str(program), "check"]


def test_all_files_are_as_they_were_where_one_is_refused(tmp_path):
    kept, new, gone = (tmp_path / name for name in ("kept", "new", "gone"))
    kept.write_text("one")
    gone.write_text("still there")
    files = [File(str(kept), "two"), File(str(new), "three"), File(str(gone), None)]
    with pytest.raises(KeptError, match="unknown field: scrap_configs"):
        kept_files.put(files, refusing(tmp_path))
    assert (kept.read_text(), new.exists(), gone.read_text()) == ("one", False, "still there")


def test_a_program_that_is_not_there_yet_refuses_nothing(tmp_path):
    path = tmp_path / "new"
    assert kept_files.put([File(str(path), "text")], [str(tmp_path / "none")]) == [str(path)]


EXPORTED = """\
# HELP boxwright_gpu_present Cards on the PCI bus.
boxwright_gpu_present 2.0
boxwright_gpu_answered 2.0
boxwright_gpu_info{name="RTX, {5090}",gpu="0"} 1.0
boxwright_collected_timestamp_seconds 1.0e3
node_textfile_scrape_error 0
"""


def exported(text=EXPORTED, now=1010.0, status=200):
    return monitoring_probe.exporter_problems(status, text, now)


def test_an_exporter_that_is_well():
    assert exported() == []


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"status": 0, "text": "Connection refused"}, "does not answer (Connection refused)"),
        ({"status": 503}, "does not answer (503)"),
        ({"text": "node_textfile_scrape_error 0\n"}, "nothing of the cards"),
        ({"now": 1200.0}, "200 s old"),
        ({"text": EXPORTED.replace("error 0", "error 1")}, "cannot read a file"),
        ({"text": EXPORTED.replace("answered 2.0", "answered 1.0")}, "1 of 2 cards answer"),
    ],
)
def test_what_is_wrong_with_an_exporter(arguments, told):
    (problem,) = exported(**arguments)
    assert told in problem


def target(job="boxwright-node", instance="127.0.0.1:9100", health="up"):
    return {"labels": {"job": job, "instance": instance}, "health": health}


def judged(*targets, rules=({"name": "EngineDown", "health": "ok"},)):
    groups = [{"name": "engines", "rules": list(rules)}] if rules else []
    return monitoring_probe.server_problems(
        {"data": {"activeTargets": list(targets)}},
        {"data": {"groups": groups}},
        [["boxwright-node", "127.0.0.1:9100"]],
    )


@pytest.mark.parametrize("health", ["up", "down"])
def test_a_server_that_asks_is_well_whatever_it_is_answered(health):
    assert judged(target(health=health)) == []


@pytest.mark.parametrize(
    ("targets", "rules", "told"),
    [
        ([], [{"health": "ok"}], "does not ask 127.0.0.1:9100 (boxwright-node)"),
        ([target(job="other")], [{"health": "ok"}], "does not ask"),
        ([target(health="unknown")], [{"health": "ok"}], "has not asked 127.0.0.1:9100 (boxwright-node) yet"),
        ([target()], [], "has no rules"),
        (
            [target()],
            [{"name": "Xid", "health": "err", "lastError": "many-to-many"}],
            "Xid fails: many-to-many",
        ),
    ],
)
def test_what_is_wrong_with_a_server(targets, rules, told):
    (problem,) = judged(*targets, rules=rules)
    assert told in problem


@pytest.fixture
def endpoint():
    """A server that answers a path's text, or 404; texts: path to text."""
    texts = {}

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self):
            text = texts.get(self.path.partition("?")[0])
            self.send_response(200 if text is not None else 404)
            self.end_headers()
            self.wfile.write((text or "").encode())

        def log_message(self, *_):
            pass

    running = HTTPServer(("127.0.0.1", 0), Answers)
    threading.Thread(target=running.serve_forever, daemon=True).start()
    running.texts = texts
    yield running
    running.shutdown()
    running.server_close()


def test_verified_asks_both(endpoint, run_module):
    place = {"host": "127.0.0.1", "port": endpoint.server_port}
    both = {"state": "verified", "exporter": place, "server": {**place, "expected": []}, "wait_s": 0}
    endpoint.texts |= {"/metrics": EXPORTED, "/-/ready": "ready"}
    result = run_module("monitoring_files", **both)
    assert result["failed"] is True
    assert "s old" in result["msg"]
    assert "does not answer /api/v1/targets" in result["msg"]
    endpoint.texts |= {
        "/metrics": EXPORTED.replace("1.0e3", "9.9e12"),
        "/api/v1/targets": json.dumps({"data": {"activeTargets": []}}),
        "/api/v1/rules": json.dumps({"data": {"groups": [{"rules": [{"health": "ok"}]}]}}),
    }
    assert run_module("monitoring_files", **both)["changed"] is False


def test_what_becomes_well_in_time_is_well(monkeypatch):
    monkeypatch.setattr(monitoring_probe, "PAUSE_S", 0)
    answers = iter([["not yet"], ["not yet"], []])
    assert monitoring_probe.settled(lambda: next(answers), wait_s=600) == []


def test_what_stays_wrong_is_told():
    assert monitoring_probe.settled(lambda: ["for ever"], wait_s=0) == ["for ever"]
