"""The verb verify: what is not as declared, from the plan and from each role's own check."""

import json

import pytest

from boxwright.cli import verifying
from boxwright.cli.ansible_run import HostReport, RunReport

CHANGE = {"role": "gpu_tuning", "text": "clock lock none -> 0 to 2100 MHz"}
FAILURE = {
    "role": "nvidia_driver",
    "task": "The cards answer",
    "message": "The cards of this host do not answer:\nGPU is lost.",
    "kind": "failed",
}
LAST = {
    "role": None,
    "task": "Every role is as declared",
    "message": "Not as declared: nvidia_driver.",
    "kind": "failed",
}
ANSWER = {"name": "qwen", "answer": "Paris.", "seconds": 0.4, "reasons": []}
OFF = {
    "kind": "unreachable",
    "message": "ssh: connect to host box1 port 22: Connection timed out",
    "role": None,
}


def host(*, changes=(), gates=(), failures=(), answers=(ANSWER,)):
    plan = {"changes": list(changes), "gates": list(gates)}
    results = {"plan": [{"ansible_facts": {"box_plan": plan}}], "engine_gate": [{"results": list(answers)}]}
    failures = [*failures, *([LAST] if failures else [])]
    return HostReport("box1", results=results, failures=failures, failure=failures[-1] if failures else None)


@pytest.fixture
def verify(monkeypatch, tmp_path, capsys):
    (tmp_path / "hosts.yml").write_text("all: {hosts: {box1: {}}}\n")

    def call(report, **options):
        monkeypatch.setattr(verifying, "play", lambda *_, **__: RunReport(0, 1.0, {"box1": report}))
        status = 0
        try:
            verifying.verify(["box1"], [str(tmp_path)], **options)
        except SystemExit as error:
            status = error.code
        return status, capsys.readouterr().out

    return call


def test_a_box_as_declared(verify):
    status, out = verify(host())
    assert status == 0
    assert out.startswith("box1: as declared\n")
    assert "qwen answered in 0.4 s: Paris." in out


@pytest.mark.parametrize(
    ("report", "words"),
    [
        (host(changes=[CHANGE]), ["drift", CHANGE["text"]]),
        (host(gates=[{"id": "driver-too-old", "message": "the image needs 580"}]), ["driver-too-old", "580"]),
        (host(failures=[FAILURE]), ["nvidia_driver: The cards of this host do not answer:", "GPU is lost."]),
    ],
)
def test_what_is_not_as_declared_is_told_with_what_to_do(verify, report, words):
    status, out = verify(report)
    assert status == 1
    assert "box1: NOT as declared" in out
    assert all(word in out for word in words)
    assert "invoke provision --host box1" in out
    assert max(map(len, out.splitlines())) <= 100


def test_a_failure_is_told_once(verify):
    assert "Not as declared: nvidia_driver." not in verify(host(failures=[FAILURE]))[1]


def test_a_box_that_is_off(verify):
    status, out = verify(HostReport("box1", failure=OFF))
    assert status == 1
    assert "box1: could not be looked at" in out


def test_json_has_stable_keys(verify):
    status, out = verify(host(changes=[CHANGE], failures=[FAILURE]), as_json=True)
    found = json.loads(out)["box1"]
    assert status == 1
    assert set(found) == {"as_declared", "failure", "changes", "gates", "failed_checks", "deployments"}
    assert found["failed_checks"] == [
        {"role": "nvidia_driver", "check": "The cards answer", "message": FAILURE["message"]}
    ]
    assert found["deployments"] == [{"name": "qwen", "answer": "Paris.", "seconds": 0.4}]


def test_a_box_that_goes_away_after_its_plan_is_told_so(verify):
    report = HostReport("box1", results=host(changes=[CHANGE]).results, failure=OFF)
    status, out = verify(report)
    assert status == 1
    assert "box1: could not be looked at: the box does not answer" in out
    status, out = verify(report, as_json=True)
    [one] = json.loads(out).values()
    assert (one["as_declared"], one["changes"]) == (False, [CHANGE])
    assert one["failure"]
