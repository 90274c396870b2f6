"""The verb status: rows, remarks, JSON and exit statuses."""

import importlib.util
import json
from pathlib import Path

import pytest

from boxwright.cli import statuses
from boxwright.cli.ansible_run import HostReport, RunReport
from boxwright.errors import UserError

spec = importlib.util.spec_from_file_location(
    "glances", Path(__file__).parents[1] / "doctor" / "test_glance.py"
)
glances = importlib.util.module_from_spec(spec)
spec.loader.exec_module(glances)


@pytest.fixture
def show(monkeypatch, tmp_path, capsys):
    """Run the verb on hosts that were read so: raw answer, or None for one that is off."""
    (tmp_path / "hosts.yml").write_text("all: {hosts: {box1: {}, box2: {}, box3: {}}}\n")

    def call(raws, **options):
        off = {"kind": "unreachable", "message": "ssh: connect to host box2 port 22: No route to host"}
        hosts = {
            name: HostReport(
                name, results={"box_status": [{"raw": raw}]} if raw else {}, failure=None if raw else off
            )
            for name, raw in raws.items()
        }
        monkeypatch.setattr(statuses, "play", lambda *_, **__: RunReport(0, 1.0, hosts))
        status = 0
        try:
            statuses.status(list(raws), [str(tmp_path)], **options)
        except SystemExit as error:
            status = error.code
        return status, capsys.readouterr().out

    return call


def test_a_row_says_what_else_than_text_is_served(show):
    one = glances.RAW["deployments"][0]
    raw = {**glances.RAW, "deployments": [{**one, "plan": {**one["plan"], "serves": "embeddings"}}]}
    _, out = show({"box1": raw})
    assert "serving embeddings" in out


def test_a_row_a_deployment_and_a_card_within_the_page(show):
    status, out = show({"box1": glances.RAW})
    assert status == 0
    assert max(map(len, out.splitlines())) <= 100
    lines = out.splitlines()
    words = [" ".join(line.split()) for line in lines]
    assert words[0] == "host deployment state release context run+wait tok/s KV drafts up"
    assert words[1] == "box1 qwen serving 0123456789ab 262,144 2+1 100.0 25% 75% 2 min"
    assert "RTX 5090" in out
    assert "\033[" not in out


def test_a_box_that_is_off_holds_nobody_up(show):
    status, out = show({"box1": glances.RAW, "box2": None})
    assert status == 1
    assert "qwen" in out
    assert "box2: could not be looked at:" in out
    assert "No route to host" in " ".join(out.split())


def test_a_failed_deployment_and_drift_are_told_with_what_to_do(show):
    raw = json.loads(json.dumps(glances.RAW))
    raw["deployments"][0].update(
        unit={"load": "loaded", "active": "failed", "sub": "failed", "ending": "exit code 1", "restarts": 5},
        health=None,
    )
    raw["receipts"]["engine"]["drift"] = [
        {"kind": "file", "subject": f"/etc/{n}", "now": "gone"} for n in range(5)
    ]
    status, out = show({"box1": raw})
    assert status == 1
    assert "box1: qwen: failed: exit code 1" in out
    assert "/etc/0 gone; /etc/1 gone; /etc/2 gone; and 2 more" in " ".join(out.split())
    assert "invoke provision --host box1" in " ".join(out.split())


def test_json_has_a_box_a_key(show):
    status, out = show({"box1": glances.RAW, "box2": None}, as_json=True)
    found = json.loads(out)
    assert status == 1
    assert found["box1"]["deployments"][0]["tokens_per_s"] == pytest.approx(100)
    assert found["box1"]["unreachable"] is None
    assert set(found["box2"]) == {"unreachable"}


def test_a_name_cannot_draw_on_the_terminal(show):
    raw = json.loads(json.dumps(glances.RAW))
    raw["cards"]["rows"][0]["name"] = "RTX\033[31m 5090"
    assert "\033" not in show({"box1": raw})[1]


def test_watch_needs_a_terminal(show):
    with pytest.raises(UserError, match="--watch"):
        show({"box1": glances.RAW}, watch=True)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, "-"), (59, "59 s"), (119, "119 s"), (120, "2 min"), (7200, "2 h"), (172800, "2 d")],
)
def test_durations(seconds, text):
    assert statuses.duration(seconds) == text
