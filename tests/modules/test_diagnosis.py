"""The module diagnosis on doubles of the host's programs, and on this very machine."""

import json
import os
import stat
import time

import pytest
from ansible.module_utils import diagnosis_reading
from ansible.module_utils.engine_store import Store

KEY = "0123456789abcdef0123"
JOURNALCTL = f"""\
for word in "$@"; do case "$word" in
  --dmesg) echo "$KERNEL"; exit 0;;
  --boot=-1) echo "1764400000.0 box1 systemd-journald[1]: Journal stopped"; exit 0;;
  --unit=docker.service) echo "1764400000.0 box1 dockerd[1]: level=warning"; exit 0;;
  --unit=boxwright-*) echo "1764410000.0 box1 ${{word#--unit=}}[9]: api_key={KEY} and a line"; exit 0;;
esac; done; exit 1
"""
SYSTEMCTL = r"printf 'LoadState=loaded\nActiveState=failed\nSubState=failed\nExecMainStatus=1\nNRestarts=4\n'"


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """Programs of ours come first on PATH: programs(name, script)."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setenv("KERNEL", "1764400000.0 box1 kernel: NVRM: loaded")

    def write(name, script):
        path = folder / name
        path.write_text("#!/bin/sh\n" + script)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    write("journalctl", JOURNALCTL)
    write("systemctl", SYSTEMCTL)
    write("nvidia-smi", 'case "$*" in *query*) echo "0, 0x0000000000000000";; *) echo "all cards";; esac')
    return write


@pytest.fixture
def raw(run_module, tmp_path):
    """raw(names, …) -> what the module read."""

    def call(*names, **arguments):
        places = {"root_dir": str(tmp_path / "root"), "config_dir": str(tmp_path / "etc")}
        result = run_module("diagnosis", check=True, deployments=list(names), **{**places, **arguments})
        assert result["changed"] is False
        return result["raw"]

    return call


def release(tmp_path):
    state = {"name": "qwen", "bind": "127.0.0.1", "port": 9, "key_file": "x"}
    Store(str(tmp_path / "root"), "qwen").write("r1", state, {"name": "qwen"}, "unit\n")


def test_dockers_own_service_is_read(raw, programs):
    programs(
        "systemctl",
        "case \"$*\" in *docker.service*) printf 'LoadState=masked\\nActiveState=inactive\\n';; esac",
    )
    found = raw("qwen")["docker_unit"]
    assert (found["load"], found["active"], found["down"]) == ("masked", "inactive", True)


def test_everything_is_read_in_one_trip(programs, raw):
    found = raw("qwen")
    assert found["kernel"]["text"].endswith("NVRM: loaded")
    assert found["smi"] == {"rc": 0, "text": "all cards"}
    assert found["throttle"]["text"] == "0, 0x0000000000000000"
    assert "Journal stopped" in found["previous_boot"]["text"]
    one = found["deployments"][0]
    assert (one["name"], one["unit"]["active"], one["unit"]["restarts"]) == ("qwen", "failed", 4)
    assert "a line" in one["journal"]["text"]
    assert (one["health"], one["metrics"], one["release"]) == (None, "", None)


def test_recorded_deployments_are_read_beside_declared_ones(programs, raw, tmp_path):
    release(tmp_path)
    assert [one["name"] for one in raw("chat")["deployments"]] == ["chat", "qwen"]


def test_records_of_releases_come_where_they_are_asked_for(programs, raw, tmp_path):
    release(tmp_path)
    Store(str(tmp_path / "root"), "qwen").promote("r1")
    assert "releases" not in raw("qwen")["deployments"][0]
    [kept] = raw("qwen", releases=True)["deployments"][0]["releases"]
    assert (kept["id"], kept["link"], kept["unit"]) == ("r1", "current", "unit\n")
    assert (kept["state"]["port"], kept["plan"]) == (9, {"name": "qwen"})
    assert raw("chat", releases=True)["deployments"][0]["releases"] == []


def test_no_secret_leaves_the_host(programs, raw, tmp_path):
    place = tmp_path / "etc" / "engines" / "qwen"
    place.mkdir(parents=True)
    (place / "api-key").write_text(KEY + "\n")
    programs("nvidia-smi", f"echo 'in some text: {KEY}.'")
    assert KEY not in json.dumps(raw("qwen"))


def test_the_kernels_own_buffer_where_the_journal_has_none(programs, raw, monkeypatch):
    monkeypatch.setenv("KERNEL", "")
    programs("dmesg", "echo '[    5.559842] NVRM: from dmesg'")
    assert raw("qwen")["kernel"]["text"] == "[    5.559842] NVRM: from dmesg"


def test_an_older_drivers_name_for_throttling(programs, raw):
    refused = 'echo "Field is not a valid field to query."; exit 2'
    programs("nvidia-smi", f'case "$*" in *clocks_event*) {refused};; *) echo "0, 0x0000000000000040";; esac')
    assert raw()["throttle"]["text"] == "0, 0x0000000000000040"


def test_a_card_that_hangs_does_not_hang_the_doctor(programs, raw, monkeypatch):
    monkeypatch.setattr(diagnosis_reading, "TIMEOUT_S", 1)
    programs("nvidia-smi", "sleep 600")
    began = time.monotonic()
    assert raw()["smi"]["rc"] == 124
    assert time.monotonic() - began < 300


def test_a_long_text_keeps_its_end(programs, raw, monkeypatch):
    monkeypatch.setattr(diagnosis_reading, "LARGEST", 100)
    programs("nvidia-smi", "i=0; while [ $i -lt 200 ]; do echo line $i; i=$((i+1)); done")
    text = raw()["smi"]["text"]
    assert text.splitlines() == [f"line {number}" for number in range(189, 200)]


def test_the_last_failure_is_read_and_a_broken_record_passed_over(programs, raw, tmp_path):
    release(tmp_path)
    record = {"when": "2026-11-29T10:00:00Z", "what": "it ended", "log": ["first", "second"]}
    for name, text in (("r2", json.dumps(record)), ("r3", "{")):
        place = tmp_path / "root" / "releases" / "qwen" / name
        place.mkdir()
        (place / "failure.json").write_text(text)
    failure = raw("qwen")["deployments"][0]["failure"]
    assert (failure["release"], failure["what"], failure["log"]) == ("r2", "it ended", "first\nsecond")


def test_a_host_without_any_of_it_is_read_all_the_same(raw, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    found = raw("qwen")
    assert found["smi"]["rc"] == 127
    assert "error" in found["deployments"][0]["unit"]


def test_this_machine(raw):
    assert raw()["format"] == diagnosis_reading.FORMAT
