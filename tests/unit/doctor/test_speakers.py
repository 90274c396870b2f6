"""What other programs say in a pasted log is no fault of the engine's, and is told as theirs."""

import json

import pytest

from boxwright.cli import doctoring
from boxwright.doctor import Log, diagnose

NO_CACHE = "ValueError: No available memory for the cache blocks. Try increasing"
ENGINE = (
    "(APIServer pid=1) INFO 11-29 10:00:00 [api_server.py:1839] vLLM API server version 0.29.0",
    "(APIServer pid=1) INFO:     Application startup complete.",
)
TAKEN = "bind() to 0.0.0.0:443 failed: [Errno 98] Address already in use"
ODD = ("Traceback (most recent call last):", '  File "a.py", line 1, in f', "KeyError: 'x'")
LOGIN = "OSError: 429 Client Error: Too Many Requests for url: https://hub.example.org/x"


def journal(*lines):
    return [f"Nov 29 10:00:00 box1 {speaker}: {text}" for speaker, text in lines]


def with_unit(*lines):
    return [f"Mon 2026-11-30 20:50:39 UTC box1 {speaker}: {text}" for speaker, text in lines]


def compose(*lines):
    return [f"{speaker.partition('[')[0] + '-1':<14}| {text}" for speaker, text in lines]


def kubernetes(*lines):
    return [f"[pod/{speaker.partition('[')[0]}-5d9/main] {text}" for speaker, text in lines]


def as_json(*lines):
    return [
        json.dumps(
            {
                "__REALTIME_TIMESTAMP": "1764410400123456",
                "_HOSTNAME": "box1",
                "_PID": "7",
                "SYSLOG_IDENTIFIER": speaker.partition("[")[0],
                "MESSAGE": text,
            }
        )
        for speaker, text in lines
    ]


WRITTEN = [journal, with_unit, compose, kubernetes, as_json]


def found(lines):
    report = diagnose([Log("log", "\n".join(lines).encode())])
    return report, [(one.id, one.severity) for one in report.causes], {
        (one.program.removesuffix("-1").removeprefix("pod/").removesuffix("-5d9/main"), one.id)
        for one in report.others
    }  # fmt: skip


def engine(name):
    return [(name, text) for text in ENGINE]


@pytest.mark.parametrize("written", WRITTEN)
@pytest.mark.parametrize("name", ["boxwright-qwen[9]", "docker[9]", "vllm[9]", "llm[9]"])
@pytest.mark.parametrize("other", ["nginx", "open-webui", "backup"])
def test_another_programs_faults_are_its_own(written, name, other):
    lines = [*engine(name), (f"{other}[8]", TAKEN), (f"{other}[8]", LOGIN)]
    report, causes, others = found(written(*lines))
    assert (report.verdict, causes) == ("fine", [])
    assert others == {(other, "port-in-use"), (other, "hub-rate-limit")}


@pytest.mark.parametrize("written", WRITTEN)
def test_the_engines_own_fault_is_found_beside_them(written):
    lines = [*engine("llm[9]")[:1], ("nginx[8]", TAKEN), ("llm[9]", f"(EngineCore pid=3) {NO_CACHE}")]
    report, causes, others = found(written(*lines))
    assert causes == [("no-memory-for-kv-cache", "fatal")]
    assert others == {("nginx", "port-in-use")}
    assert report.causes[0].program == ""


@pytest.mark.parametrize("written", WRITTEN)
def test_the_same_said_by_the_engine_is_its_fault(written):
    report, causes, others = found(written(*engine("llm[9]"), ("llm[9]", TAKEN), ("nginx[8]", TAKEN)))
    assert causes == [("port-in-use", "fatal")]
    assert others == {("nginx", "port-in-use")}
    assert report.causes[0].count == 1


@pytest.mark.parametrize("written", WRITTEN)
def test_a_fault_of_the_box_counts_whoever_tells_of_it(written):
    full = "could not extend file: No space left on device"
    report, causes, others = found(written(*engine("llm[9]"), ("postgres[8]", full)))
    assert (causes, others) == ([("disk-full", "slows")], set())
    assert "none of the engine's programs" in report.causes[0].cause
    _, causes, _ = found(written(*engine("llm[9]"), ("postgres[8]", full), ("llm[9]", "OSError: " + full)))
    assert causes == [("disk-full", "fatal")]


@pytest.mark.parametrize("written", WRITTEN)
def test_what_another_program_ended_with_is_told_as_its_own(written):
    report, causes, others = found(written(*engine("llm[9]"), *(("backup[8]", text) for text in ODD)))
    assert (report.verdict, causes, others) == ("fine", [], {("backup", "unknown")})
    assert report.others[0].evidence[0].text == "KeyError: 'x'"
    _, causes, others = found(written(*engine("llm[9]")[:1], *(("llm[9]", text) for text in ODD)))
    assert (causes, others) == ([("unknown", "fatal")], set())


@pytest.mark.parametrize(
    ("unit", "ours"),
    [
        ("boxwright-qwen.service", True),
        ("docker.service", True),
        ("nvidia-persistenced.service", True),
        ("postgresql@16-main.service", False),
        ("unattended-upgrades.service", False),
        ("my-backup.service", False),
    ],
)
@pytest.mark.parametrize("said", ["{}: Main process exited, code=exited, status=1/FAILURE",
                                  "{}: Start request repeated too quickly."])  # fmt: skip
def test_systemd_speaks_of_many_units(unit, ours, said):
    start = ("systemd[1]", "Starting boxwright-qwen.service - Boxwright deployment qwen, release a...")
    lines = journal(start, *engine("boxwright-qwen[9]")[:1], ("systemd[1]", said.format(unit)))
    report, _, others = found(lines)
    assert (report.verdict == "fatal") == ours
    assert bool(others) != ours


def test_where_no_engine_is_known_an_unknown_name_may_be_one():
    for name, verdict in (("start-model.sh[7]", "fatal"), ("sshd[7]", "fine"), ("CRON[7]", "fine")):
        assert found(journal((name, TAKEN)))[0].verdict == verdict
    assert (
        found(journal(("systemd[1]", "qwen.service: Failed with result 'exit-code'.")))[0].verdict == "fatal"
    )


def test_another_unit_that_ends_does_not_end_a_start():
    failed = (("llm[9]", ENGINE[0]), ("llm[9]", NO_CACHE), ("systemd[1]", "llm.service: Main process exited"))
    again = (("llm[9]", ENGINE[0]), ("systemd[1]", "nginx.service: Main process exited, code=exited"))
    assert found(journal(*failed, *again))[1] == [("no-memory-for-kv-cache", "fatal")]


def test_a_log_of_a_known_place_is_that_places():
    lines = journal(("nginx[8]", "OSError: [Errno 98] Address already in use"))
    report = diagnose([Log("journal of q", "\n".join(lines).encode(), "engine", "unit")])
    assert report.verdict == "fatal"


def test_a_person_and_a_program_are_told(capsys):
    report, _, _ = found(journal(*engine("llm[9]"), ("nginx[8]", TAKEN)))
    doctoring.draw(report)
    shown = capsys.readouterr().out
    assert "of other programs, none of the engine's" in shown
    assert f"nginx, line 3: {TAKEN}" in shown
    [one] = report.to_json()["others"]
    assert (one["program"], one["id"], one["evidence"][0]["line"]) == ("nginx", "port-in-use", 3)
