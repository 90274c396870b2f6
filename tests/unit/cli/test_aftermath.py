"""What a run that failed says at its end: what was left, the next command; and what all of it came to."""

import pytest

from boxwright.cli import run_summary
from boxwright.cli.aftermath import aftermath
from boxwright.cli.ansible_run import HostReport
from boxwright.cli.ssh_trouble import explain, tell_end

PLAN = {
    "facts": {
        "driver": {"loaded_version": "570.195.03"},
        "releases": [
            {"deployment": "qwen", "id": "a1b2a1b2a1b2", "current": True},
            {"deployment": "qwen", "id": "000000000000", "current": False},
        ],
    }
}
SOURCE = {"role": "nvidia_driver", "task": "The source is there", "action": "package_source"}
PACKAGES = {"role": "nvidia_driver", "task": "The driver's packages are held", "action": "held_packages"}
MODULE = {"role": "nvidia_driver", "task": "The kernel has the driver", "action": "nvidia_module"}
DOCKER = {"role": "container_runtime", "task": "Docker has its settings", "action": "docker_daemon_config"}
ENGINE = {"role": "engine", "task": "Every deployment serves", "action": "engine_gate"}
RECEIPT = {"role": None, "task": "What earlier runs recorded", "action": "role_receipt"}
SERVES = "release a1b2a1b2a1b2 of qwen: not touched"
UNSEEN = "release a1b2a1b2a1b2 of qwen: current as before; whether a model answers now was not looked at"
LOADED = "the driver's packages were changed; 570.195.03 is loaded as before, until a reboot at the latest"


def failed(step, *, touched=None, kind="failed", after=()):
    return {**step, "kind": kind, "message": "no", "touched": touched, "after": list(after)}


@pytest.mark.parametrize(
    ("failure", "done", "left"),
    [
        (failed(PACKAGES, touched=False), [], ["nothing was changed", SERVES]),
        (failed(PACKAGES, touched=False), [RECEIPT], ["nothing was changed", SERVES]),
        (failed(PACKAGES, touched=False), [{**SOURCE, "check": True}], ["nothing was changed", SERVES]),
        (
            failed(PACKAGES, touched=True),
            [SOURCE],
            [
                "done before it: The source is there",
                "the step that failed had begun: run again, it goes on from there",
                LOADED,
                SERVES,
            ],
        ),
        (
            failed({**MODULE, "action": "assert"}, touched=False),
            [SOURCE, PACKAGES],
            ["done before it: The source is there; The driver's packages are held", LOADED, SERVES],
        ),
        (
            failed(MODULE, touched=True),
            [PACKAGES],
            [
                "done before it: The driver's packages are held",
                "the step that failed had begun: run again, it goes on from there",
                UNSEEN,
            ],
        ),
        (
            failed({**PACKAGES, "role": "container_runtime"}, touched=True),
            [],
            ["the step that failed had begun: run again, it goes on from there", UNSEEN],
        ),
        (
            failed(DOCKER),
            [],
            [
                "nothing was changed before it; whether the step that failed changed anything is not known",
                UNSEEN,
            ],
        ),
        (
            failed({"role": "model_weights", "task": "w", "action": "model_store"}),
            [DOCKER],
            [
                "done before it: Docker has its settings",
                "what has arrived of the weights is kept, and the next run goes on there",
                UNSEEN,
            ],
        ),
        (
            failed(ENGINE, touched=True, after=["The release before it, a1b2a1b2a1b2, serves again."]),
            [],
            [
                "the step that failed had begun: run again, it goes on from there",
                "The release before it, a1b2a1b2a1b2, serves again.",
            ],
        ),
        (failed(ENGINE, kind="refused", touched=False), [], ["nothing was changed", SERVES]),
    ],
)
def test_what_was_left(failure, done, left):
    assert list(aftermath("box1", failure, done, PLAN, "provision").left) == left


def test_many_changes_are_told_in_a_line():
    done = [{**SOURCE, "task": f"t{number}"} for number in range(7)]
    [told, *_] = aftermath("box1", failed(PACKAGES, touched=False), done, {}, "provision").left
    assert told == "done before it: t0; t1; t2; t3; and 3 more"


@pytest.mark.parametrize(
    ("failure", "verb", "ways"),
    [
        (failed(ENGINE), "provision", ["doctor", "provision"]),
        (failed({"role": "model_weights", "action": "model_store"}), "provision", ["provision"]),
        (failed({}, kind="refused"), "provision", ["plan"]),
        (failed({}, kind="unreachable"), "provision", ["provision"]),
        (failed(ENGINE), "rollback", ["doctor", "status"]),
        (failed({}), "status", ["doctor"]),
        (failed({}), "doctor", []),
    ],
)
def test_what_to_type_next(failure, verb, ways):
    words = ("--inventory", "my boxes")
    found = aftermath("box1", failure, [], PLAN, verb, words).ways_out
    assert [way.partition("./invoke ")[2] for way in found] == [
        f"{name} --host box1 --inventory 'my boxes'" for name in ways
    ]
    assert aftermath("box1", failure, [], PLAN, "status").left == ()


class Declared:
    def variables(self, host):
        return {}


@pytest.mark.parametrize(
    ("failure", "told"),
    [
        (failed(PACKAGES, touched=False),
         ["box1: failed at nvidia_driver: no", "Left: nothing was changed", "not touched",
          "./invoke doctor --host box1", "./invoke provision --host box1"]),
        ({**failed({}, kind="unreachable", touched=False), "message": "ssh: Connection refused"},
         ["box1: nothing answers on its SSH port", "Left: nothing was changed", "see that sshd runs there"]),
    ],
)  # fmt: skip
def test_the_end_of_a_run_that_failed(failure, told, capsys):
    found = aftermath("box1", failure, [], PLAN, "provision")
    failure = {**failure, "left": found.left, "next": found.ways_out}
    explain("box1", failure, Declared())
    tell_end("box1", failure)
    said = capsys.readouterr().out
    for words in told:
        assert words in said
    assert max(map(len, said.splitlines())) <= 110


def host(changed=0, kind=None):
    return {"changed": changed, "failure": {"kind": kind} if kind else None}


@pytest.mark.parametrize(
    ("changed", "check", "sentence"),
    [
        (0, False, "box1: nothing had to change, in 12 s"),
        (1, False, "box1: 1 change was made, in 12 s"),
        (2, False, "box1: 2 changes were made, in 12 s"),
        (0, True, "box1: nothing would change; nothing was done"),
        (1, True, "box1: 1 change would be made; nothing was done"),
        (14, True, "box1: 14 changes would be made; nothing was done"),
    ],
)
def test_the_sentence_of_a_host(changed, check, sentence):
    assert run_summary.of_host("box1", changed, 12.3, check=check) == sentence


@pytest.mark.parametrize(
    ("hosts", "check", "sentence"),
    [
        ([host()], False, ""),
        ([host(), host()], False, "All 2 hosts are as declared, in 2 min"),
        ([host(1), host(2)], False, "All 2 hosts changed (3 changes), in 2 min"),
        ([host(1), host()], False, "Of 2 hosts 1 changed (1 change) and 1 is as declared, in 2 min"),
        ([host(1), host()], True,
         "Of 2 hosts 1 would change (1 change) and 1 is as declared, in 2 min; nothing was done"),
        ([host(kind="unreachable")] * 2, False, "All 2 hosts could not be reached, in 2 min"),
        ([host(), host(kind="unreachable"), host(3, kind="failed"), host(kind="refused")], False,
         "Of 4 hosts 1 is as declared, 1 was refused (box3), 1 failed (box2) and 1 could not be reached "
         "(box1), in 2 min"),
        ([host(), *[host(kind="odd")] * 7], False,
         "Of 8 hosts 1 is as declared and 7 failed (box1, box2, box3, box4, box5 and 2 more), in 2 min"),
    ],
)  # fmt: skip
def test_the_sentence_of_all(hosts, check, sentence):
    found = {f"box{number}": one for number, one in enumerate(hosts)}
    assert run_summary.of_all(found, 121.0, check=check) == sentence


def test_a_failed_report_says_what_was_left(monkeypatch):
    from boxwright.cli import ansible_run, run_logs

    run_logs.begin("provision", words=["--inventory", "mine"])
    plan = {"ansible_facts": {"box_plan": PLAN}}
    report = HostReport("box1", changed_tasks=[PACKAGES], results={"plan": [plan]}, failure=failed(ENGINE))
    failure = ansible_run.concluded(report).failure
    assert failure["left"][-1] == UNSEEN
    assert failure["next"][0].endswith("./invoke doctor --host box1 --inventory mine")
    assert ansible_run.concluded(HostReport("box1")) == HostReport("box1")
