"""The verb doctor on logs, and on what a run over hosts brought."""

import json
from types import SimpleNamespace

import pytest

from boxwright.cli import doctoring
from boxwright.cli.ansible_run import HostReport, RunReport
from boxwright.errors import UserError

FATAL = "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization`\n"
HARMLESS = "WARNING 11-29 10:00:00 [x.py:1] Add 3 padding layers, may waste at most 6.25% KV cache memory\n"


def run(capsys, *, hosts=(), **options):
    status = 0
    try:
        doctoring.doctor(hosts, (), **options)
    except SystemExit as error:
        status = error.code
    return status, capsys.readouterr().out


@pytest.fixture
def log(tmp_path):
    def write(text):
        path = tmp_path / "engine.log"
        path.write_text(text)
        return str(path)

    return write


def test_a_log_with_a_fatal_fault(capsys, log):
    status, out = run(capsys, log=log(FATAL + HARMLESS))
    assert status == 1
    assert "1 fatal, 1 harmless" in out
    assert "no-memory-for-kv-cache" in out
    assert "padding-layers" in out
    assert max(map(len, out.splitlines()[1:])) <= 100


def test_a_log_without(capsys, log):
    assert run(capsys, log=log(HARMLESS))[0] == 0


def test_a_log_of_which_nothing_is_known_is_not_called_well(capsys, log):
    said = "no line of it is known"
    status, out = run(capsys, log=log("Mix flour and water.\n"))
    assert status == 0
    assert said in " ".join(out.split())
    assert max(map(len, out.splitlines())) <= 100
    assert said not in " ".join(run(capsys, log=log(HARMLESS))[1].split())
    assert said not in " ".join(run(capsys, log=log(FATAL))[1].split())


def test_json_has_stable_keys(capsys, log):
    status, out = run(capsys, log=log(FATAL), as_json=True)
    found = json.loads(out)
    assert status == 1
    assert set(found) == {"log", "verdict", "causes", "consequences", "harmless", "others"}
    keys = "id severity cause fix link count values because past program evidence"
    assert set(found["causes"][0]) == set(keys.split())


def test_a_log_and_a_host_at_once_are_refused():
    with pytest.raises(UserError, match="without any host"):
        doctoring.doctor(("box1",), (), log="x")


UNIT = {"load": "loaded", "active": "active", "sub": "running", "running": True, "restarts": 0, "began": 1.0}
RAW = {"deployments": [{"name": "qwen", "release": "r1", "unit": UNIT, "health": 200, "metrics": "",
                        "journal": {"rc": 0, "text": ""}}]}  # fmt: skip
PLAN = {
    "gates": [{"id": "cards-differ", "message": "cards differ", "fix": ["look"], "path": ""}],
    "advice": [],
}


@pytest.fixture
def hosts(monkeypatch):
    """hosts(**reports): a run that brought these."""

    def build(**reports):
        inventory = SimpleNamespace(location=lambda *_: None, place_of=lambda _: None, variables=lambda _: {})
        monkeypatch.setattr(
            doctoring,
            "targets",
            lambda given, _, *, every: (inventory, list(reports if every else given), []),
        )
        monkeypatch.setattr(doctoring.lab, "ensure_simulated", lambda *_, **__: None)
        monkeypatch.setattr(doctoring, "play", lambda *_, **__: RunReport(0, 1.0, reports))

    return build


def host(name, raw=None, plan=None, failure=None):
    results = {"diagnosis": [{"raw": raw}]} if raw else {}
    if plan:
        results["plan"] = [{"ansible_facts": {"box_plan": plan}}]
    return HostReport(name, results=results, failure=failure)


def test_hosts_are_told_one_by_one_and_one_that_is_down_holds_up_none(capsys, hosts):
    down = {"kind": "unreachable", "message": "Connection refused"}
    broken = {
        **RAW,
        "kernel": {"rc": 0, "text": "NVRM: Xid (PCI:0000:01:00): 79, GPU has fallen off the bus."},
    }
    hosts(a=host("a", RAW), b=host("b", failure=down), c=host("c", broken, PLAN))
    status, out = run(capsys, every=True)
    assert status == 1
    assert "a: nothing fatal" in out
    assert "b: could not be looked at\n  nothing answers on its SSH port: Connection refused" in out
    assert "xid-79" in out
    assert "cards-differ" in out
    assert max(map(len, out.splitlines())) <= 100


def test_json_of_hosts(capsys, hosts):
    hosts(a=host("a", RAW, PLAN), b=host("b", failure={"kind": "unreachable", "message": "no route"}))
    found = json.loads(run(capsys, every=True, as_json=True)[1])
    keys = {"failure", "deployments", "verdict", "causes", "consequences", "harmless", "others", "plan"}
    assert set(found["a"]) == keys
    assert found["a"]["deployments"] == [{"name": "qwen", "release": "r1", "state": "serving", "what": ""}]
    assert found["a"]["plan"]["gates"][0]["id"] == "cards-differ"
    assert (found["b"]["failure"], found["b"]["verdict"]) == ("no route", None)


def test_one_host_is_told_by_its_name_too_and_a_plan_that_failed_takes_nothing_away(capsys, hosts):
    hosts(a=host("a", RAW, failure={"kind": "failed", "message": "the hub is down"}))
    status, out = run(capsys, hosts=("a",), as_json=True)
    assert (status, json.loads(out)["a"]["verdict"], json.loads(out)["a"]["plan"]) == (0, "fine", None)


def test_a_name_of_a_log_moves_no_cursor(capsys, tmp_path):
    path = tmp_path / "a\nb\x1b[2J\u202e.log"
    path.write_text(HARMLESS)
    first = run(capsys, log=str(path))[1].splitlines()[0]
    assert "a\\nb\\x1b[2J\\u202e.log: " in first
    out = run(capsys, log=str(path), as_json=True)[1]
    assert "\u202e" not in out
    assert json.loads(out)["log"] == str(path)
