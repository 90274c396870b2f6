"""Each verb of the day after on three boxes: one serves, one is off, one is broken.

The broken one is what a new system over old disks leaves: its unit is there and fails, the driver and Docker
are not. Each verb tells of the box that serves as if it were alone, and of the two others what is wrong.
"""

import json
import subprocess
import time
from pathlib import Path

import pytest
import yaml

from boxwright.cli import lab as cli_lab
from boxwright.spec.inventory import load

pytestmark = pytest.mark.lab

SERVES, OFF, BROKEN = "boxa", "boxb", "boxc"
HOSTS = {SERVES: "lab1", OFF: "lab2", BROKEN: "lab3"}
UNIT = "[Service]\nExecStart=/usr/bin/docker start --attach boxwright-smollm2\n"


@pytest.fixture(scope="module")
def boxes(first, simulated, tmp_path_factory, verb):
    """An inventory of three boxes; run a verb on all of them, or on some: boxes(words…, hosts=…)."""
    from boxwright import lab

    cli_lab.ensure([HOSTS[OFF], HOSTS[BROKEN]])
    simulated(HOSTS[BROKEN]).do(
        "sh", "-c",
        f"printf '{UNIT}' >/etc/systemd/system/boxwright-smollm2.service; systemctl daemon-reload; "
        "systemctl start boxwright-smollm2.service; true",
    )  # fmt: skip
    subprocess.run(["docker", "stop", simulated(HOSTS[OFF]).container], check=True, capture_output=True)
    known = {name: load([Path("inventory/lab")]).variables(host) for name, host in HOSTS.items()}
    place = tmp_path_factory.mktemp("three boxes")
    hosts = {name: {"ansible_host": host} for name, host in HOSTS.items()}
    (place / "hosts.yml").write_text(yaml.safe_dump({"all": {"hosts": hosts}}))
    (place / "host_vars").mkdir()
    for name, variables in known.items():
        (place / "host_vars" / f"{name}.yml").write_text(yaml.safe_dump(variables))

    def run(*words, hosts=None):
        named = [word for host in hosts for word in ("--host", host)] if hosts else ["--all"]
        return verb(*words, *named, "--inventory", place)

    yield run
    lab.down([HOSTS[OFF], HOSTS[BROKEN]])


def flowing(text):
    return " ".join(text.split())


@pytest.fixture(scope="module")
def told(boxes):
    """Run a verb on all three with --json: its exit status is 1, and what it tells of each."""

    def run(*words):
        ran = boxes(*words, "--json")
        assert ran.status == 1, ran.output
        assert "Traceback" not in ran.output
        assert set(ran.json) == set(HOSTS), ran.output
        assert ran.seconds < 300
        return ran.json

    return run


def test_status(told, boxes):
    found = told("status")
    [serves] = found[SERVES]["deployments"]
    assert (serves["state"], serves["drift"], serves["trial"]) == ("serving", [], False)
    assert serves["model"]
    assert [one["state"] for one in found[BROKEN]["deployments"]] == ["failed"]
    assert "does not answer" in found[OFF]["failure"]
    drawn = boxes("status")
    assert drawn.status == 1
    assert max(map(len, drawn.output.splitlines())) <= 100
    assert "boxb: could not be looked at: the box does not answer" in flowing(drawn.output)


def test_verify(told):
    found = told("verify")
    assert found[SERVES]["as_declared"] is True, found[SERVES]
    assert (found[BROKEN]["failure"], found[BROKEN]["as_declared"]) == (None, False)
    assert "does not answer" in found[OFF]["failure"]


def test_doctor(told):
    found = told("doctor")
    assert found[SERVES]["verdict"] != "fatal"
    assert found[BROKEN]["verdict"] == "fatal"
    assert found[BROKEN]["causes"], found[BROKEN]
    assert "does not answer" in found[OFF]["failure"]


def test_logs(told):
    found = told("logs")
    for name in (SERVES, BROKEN):
        [journal] = found[name]["journals"]
        assert journal["lines"], journal
    assert any("vllm" in line.lower() for line in found[SERVES]["journals"][0]["lines"])
    assert "does not answer" in found[OFF]["failure"]


def test_history(told):
    found = told("history")
    assert found[SERVES]["runs"][-1]["verb"] == "provision"
    assert found[BROKEN]["failure"] is None
    assert "does not answer" in found[OFF]["failure"]


def test_report(boxes, tmp_path):
    path = tmp_path / "report.json"
    ran = boxes("report", "--yes", "--output", path)
    assert ran.status == 1, ran.output
    found = json.loads(path.read_text())["boxes"]
    assert len(found) == 3
    assert sorted(one["failure"] is None for one in found.values()) == [False, True, True]
    [serves] = [one for one in found.values() if one.get("release", {}).get("smollm2")]
    assert serves["release"]["smollm2"][0]["link"] == "current"
    assert "journal of smollm2" in serves["logs"]
    assert serves["facts"]
    assert "bench" in serves


def test_page(told, tmp_path):
    found = told("page", "--output", tmp_path / "pages")
    assert [one["failure"] is None for one in map(found.get, HOSTS)] == [True, False, True]
    assert found[BROKEN]["verdict"] == "fatal"
    assert sorted(one.name for one in (tmp_path / "pages").iterdir()) == ["boxa.html", "boxc.html"]


def test_export(told, tmp_path):
    found = told("export", "--format", "compose", "--output", tmp_path / "out")
    assert "compose.yaml" in found[SERVES]["files"]
    assert "does not answer" in found[OFF]["failure"]
    assert found[BROKEN]["failure"] == "no deployment serves there"
    assert [one.name for one in (tmp_path / "out").iterdir()] == [SERVES]


def test_bench(told, boxes):
    """What it measures of a box that serves has a test of its own in the whole way."""
    ran = boxes("bench", "--concurrency", "1", "--context", "none", "--json", hosts=[OFF, BROKEN])
    assert ran.status == 1, ran.output
    assert "does not answer" in ran.json[OFF]["failure"]
    assert ran.json[BROKEN]["failure"]
    listed = told("bench", "--runs")
    assert (listed[SERVES]["failure"], listed[SERVES]["runs"]) == (None, [])
    assert "does not answer" in listed[OFF]["failure"]


def test_key(told, key, boxes):
    found = told("key")
    assert found[SERVES] == {"key": key, "failure": None}
    assert "does not answer" in found[OFF]["failure"]
    assert found[BROKEN]["key"] is None
    said = boxes("key", hosts=[BROKEN])
    assert said.status == 1
    assert "provision it first: ./invoke provision --host boxc" in flowing(said.output)


def test_models(told):
    found = told("models")
    assert found[SERVES]["revisions"][0]["used"]
    assert found[BROKEN]["revisions"] == []
    assert "does not answer" in found[OFF]["failure"]


def test_chat(told, boxes):
    found = told("chat", "--prompt", "Hello.", "--max-tokens", "4")
    assert found[SERVES]["text"]
    assert found[SERVES]["failure"] is None
    assert 0 < found[SERVES]["tokens"] <= 4
    assert "does not answer" in found[OFF]["failure"]
    assert "the box has made no key: it was not provisioned" in found[BROKEN]["failure"]
    said = boxes("chat", "--prompt", "Hello.", "--max-tokens", "4", hosts=[SERVES])
    assert said.status == 0, said.output


def test_tune(boxes):
    """What it finds on a box that serves has a level of its own."""
    ran = boxes("tune", "--what", "sequences", "--candidates", "1", "--json", hosts=[OFF, BROKEN])
    assert ran.status == 1, ran.output
    assert "does not answer" in ran.json[OFF]["failure"]
    assert ran.json[BROKEN]["failure"]


def test_one_box_alone_that_is_off_or_broken_is_an_error(boxes):
    for words in (
        ("chat", "--prompt", "Hello."),
        ("tune", "--what", "sequences", "--candidates", "1"),
        ("rollback",),
    ):
        for name, why in ((OFF, "does not answer"), (BROKEN, None)):
            began = time.monotonic()
            ran = boxes(*words, hosts=[name])
            assert ran.status in (1, 2, 3), (words, ran.output)
            assert "Traceback" not in ran.output
            assert name in ran.output
            assert why is None or why in flowing(ran.output), (words, ran.output)
            assert time.monotonic() - began < 120
