"""The verb status: rows, remarks, JSON and exit statuses."""

import importlib.util
import json
import sys
from pathlib import Path

import pytest

from boxwright.cli import ansible_run, status_tables, statuses
from boxwright.cli.ansible_run import HostReport, RunReport
from boxwright.cli.verb import told
from boxwright.errors import UserError

spec = importlib.util.spec_from_file_location(
    "glances", Path(__file__).parents[1] / "doctor" / "test_glance.py"
)
glances = importlib.util.module_from_spec(spec)
spec.loader.exec_module(glances)


OFF = {"kind": "unreachable", "message": "ssh: connect to host box2 port 22: No route to host"}


def host(name, raw):
    """A box that was read so; None for one that is off."""
    results = {"box_status": [{"raw": raw}]} if raw else {}
    return HostReport(name, results=results, failure=None if raw else OFF)


@pytest.fixture
def show(monkeypatch, tmp_path, capsys):
    """Run the verb on hosts that were read so: raw answer, or None for one that is off."""
    (tmp_path / "hosts.yml").write_text("all: {hosts: {box1: {}, box2: {}, box3: {}}}\n")

    def call(raws, **options):
        hosts = {name: host(name, raw) for name, raw in raws.items()}
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
    assert words[0] == "host deployment state release model context up"
    assert words[1] == "box1 qwen serving 0123456789ab RedHatAI/Qwen3.8-27B-INT4 262,144 2 min"
    assert words[3] == "host deployment running waiting tokens/s KV use drafts accepted"
    assert words[4] == "box1 qwen 2 1 100.0 25% 75%"
    assert "RTX 5090" in out
    assert "\033[" not in out


def test_long_names_fit_the_page_too(show):
    raw = json.loads(json.dumps(glances.RAW))
    one = raw["deployments"][0]
    one.update(name="a-deployment-with-a-rather-long-name", health=200)
    one["plan"] = {**one["plan"], "model": "organisation/" + "Qwen3.8-235B-A22B-" * 4, "serves": "embeddings"}
    status, out = show({"box1": raw})
    assert status == 0
    assert max(map(len, out.splitlines())) <= 100
    assert "embeddings" in out


def test_what_loads_has_no_load_yet_and_is_no_failure(show):
    raw = json.loads(json.dumps(glances.RAW))
    raw["deployments"][0].update(health=0, metrics="", metrics_before="")
    status, out = show({"box1": raw})
    assert status == 0
    assert "loading" in out.splitlines()[1]
    assert "tokens/s" not in out
    assert "box1: qwen: loading: its unit runs and it does not answer yet" in out


def test_a_deployment_that_is_not_what_its_release_says_is_drifted(show):
    raw = json.loads(json.dumps(glances.RAW))
    raw["deployments"][0]["drift"] = ["/etc/systemd/system/boxwright-qwen.service was edited"]
    raw["receipts"]["engine"]["drift"] = [
        {"kind": "file", "subject": "/etc/systemd/system/boxwright-qwen.service", "now": "edited"}
    ]
    status, out = show({"box1": raw})
    assert status == 0
    assert " ".join(out.splitlines()[1].split()).startswith("box1 qwen drifted 0123456789ab")
    assert "100.0" in out
    text = " ".join(out.split())
    assert "box1: qwen: drifted from release 0123456789ab: /etc/systemd/system/boxwright-qwen.service" in text
    assert text.count("boxwright-qwen.service") == 1
    assert "edited; invoke provision --host box1 mends it" in text
    _, out = show({"box1": raw}, as_json=True)
    [one] = json.loads(out)["box1"]["deployments"]
    assert (one["state"], len(one["drift"])) == ("drifted", 1)


def test_a_container_alone_that_drifted_needs_only_its_unit_started_anew(show):
    raw = json.loads(json.dumps(glances.RAW))
    raw["deployments"][0]["drift"] = ["its container has another port"]
    _, out = show({"box1": raw})
    assert "another port; systemctl restart boxwright-qwen there mends it" in " ".join(out.split())


def test_a_release_on_trial_is_told_and_is_no_drift(show):
    raw = json.loads(json.dumps(glances.RAW))
    raw["deployments"][0]["trial"] = True
    status, out = show({"box1": raw})
    assert status == 0
    assert "serving" in out.splitlines()[1]
    assert "box1: qwen: a run is trying another release in the place of 0123456789ab" in out


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
    assert found["box1"]["failure"] is None
    assert set(found["box2"]) == {"failure"}


def test_a_name_cannot_draw_on_the_terminal(show):
    raw = json.loads(json.dumps(glances.RAW))
    raw["cards"]["rows"][0]["name"] = "RTX\033[31m 5090"
    assert "\033" not in show({"box1": raw})[1]


class Screen:
    """Looks that follow each other, a clock that goes on by the pauses, and what each screen showed."""

    def __init__(self, capsys, *looks):
        self.looks, self.now, self.pauses, self.screens = list(looks), 0, [], []
        self.capsys, self.options = capsys, []

    def play(self, *_, **options):
        self.options.append(options)
        look = self.looks.pop(0)
        if isinstance(look, Exception):
            raise look
        return RunReport(0, 1.0, {name: host(name, raw) for name, raw in look.items()})

    def pause(self, seconds):
        self.pauses.append(seconds)
        self.now += seconds
        self.screens.append(self.capsys.readouterr().out)
        if not self.looks:
            raise KeyboardInterrupt


@pytest.fixture
def watched(monkeypatch, tmp_path, capsys):
    """Run `status --watch` on a terminal through these looks, and then Ctrl-C; its screens and status."""
    (tmp_path / "hosts.yml").write_text("all: {hosts: {box1: {}, box2: {}}}\n")

    def call(*looks):
        screen = Screen(capsys, *looks)
        monkeypatch.setattr(statuses, "play", screen.play)
        monkeypatch.setattr(statuses.time, "sleep", screen.pause)
        monkeypatch.setattr(statuses.time, "strftime", lambda _: f"00:00:{screen.now:02}")
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
        monkeypatch.setenv("NO_COLOR", "1")
        with pytest.raises(SystemExit) as end:
            told(lambda **_: statuses.status(["box1", "box2"], [str(tmp_path)], watch=True))(json=False)
        return screen, end.value.code

    return call


def test_watch_refreshes_in_place_until_it_is_stopped_by_hand(watched):
    screen, status = watched({"box1": glances.RAW, "box2": glances.RAW}, {"box1": glances.RAW, "box2": None})
    assert status == 130
    assert screen.pauses == [statuses.WATCH_S] * 2
    assert all(one.startswith(statuses.CLEAR) for one in screen.screens)
    assert ["00:00:00" in screen.screens[0], "00:00:05" in screen.screens[1]] == [True, True]
    assert all(option["quiet"] for option in screen.options)


def test_watch_goes_on_when_a_box_goes_away_in_the_middle_and_comes_back(watched):
    both = {"box1": glances.RAW, "box2": glances.RAW}
    screen, status = watched(both, {"box1": glances.RAW, "box2": None}, both)
    assert status == 130
    gone = ["box2: could not be looked at" in one for one in screen.screens]
    assert gone == [False, True, False]
    assert all("box1  qwen" in one for one in screen.screens)


def test_watch_goes_on_when_a_look_cannot_be_made_and_says_so(watched):
    both = {"box1": glances.RAW, "box2": glances.RAW}
    screen, status = watched(both, UserError("Ansible stopped before it ran anything", why="a comma"), both)
    assert status == 130
    assert "box1  qwen" in screen.screens[1]
    assert "00:00:00   every" in screen.screens[1]
    assert (
        "00:00:05: not looked at again: Ansible stopped before it ran anything: a comma" in screen.screens[1]
    )
    assert "not looked at" not in screen.screens[2]


def test_watch_ends_where_the_first_look_cannot_be_made(watched):
    screen, status = watched(UserError("Ansible stopped before it ran anything"))
    assert (status, screen.pauses) == (1, [])


def test_a_glance_does_not_wait_long_for_a_box_that_is_off(tmp_path):
    hasty = ansible_run.environment(tmp_path, connecting_s=statuses.CONNECTING_S)
    assert (hasty["ANSIBLE_TIMEOUT"], hasty["ANSIBLE_SSH_RETRIES"]) == (str(statuses.CONNECTING_S), "0")
    assert "ANSIBLE_TIMEOUT" not in ansible_run.environment(tmp_path)


def test_watch_needs_a_terminal(show):
    with pytest.raises(UserError, match="--watch"):
        show({"box1": glances.RAW}, watch=True)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, "-"), (59, "59 s"), (119, "119 s"), (120, "2 min"), (7200, "2 h"), (172800, "2 d")],
)
def test_durations(seconds, text):
    assert status_tables.duration(seconds) == text
