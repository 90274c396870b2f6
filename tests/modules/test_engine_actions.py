"""What the controller adds to the engine's modules: the lock of the inventory."""

import json
from types import SimpleNamespace

import pytest
from ansible.errors import AnsibleActionFail

from boxwright.ansible.action.engine_gate import ActionModule as GateAction
from boxwright.ansible.action.engine_release import ActionModule
from boxwright.spec import lock

DIGEST, OTHER = "sha256:" + "a" * 64, "sha256:" + "b" * 64
DEPLOYMENT = {"name": "qwen", "image": "vllm/vllm-openai:v1"}


@pytest.fixture
def play(tmp_path, monkeypatch):
    """play(result of the module, check=…) -> (arguments that the module got, result of the task)."""

    def call(result, *, check=False, **more):
        action = object.__new__(ActionModule)
        action._task = SimpleNamespace(args={"deployments": [DEPLOYMENT], **more}, check_mode=check)
        got = {}

        def execute(module_name, module_args, task_vars):
            got.update(module_args)
            return result

        monkeypatch.setattr(action, "_execute_module", execute)
        monkeypatch.setattr("ansible.plugins.action.ActionBase.run", lambda *_: {})
        answer = action.run(task_vars={"inventory_hostname": "box1", "inventory_dir": str(tmp_path)})
        return got, answer

    return call


def resolved(digest):
    return {"changed": True, "digests": {"qwen": {"image": DEPLOYMENT["image"], "digest": digest}}}


def locked(tmp_path):
    return lock.read(lock.path_of(tmp_path)).entry("box1", "qwen")


def test_what_was_resolved_is_locked_and_used_the_next_time(play, tmp_path):
    got, _ = play(resolved(DIGEST))
    assert got["digests"] == {}
    assert locked(tmp_path).digest_of(DEPLOYMENT["image"]) == DIGEST
    got, _ = play(resolved(DIGEST))
    assert got["digests"] == {"qwen": DIGEST}


def test_a_lock_for_another_image_does_not_count(play, tmp_path):
    lock.update(lock.path_of(tmp_path), "box1", "qwen", image="vllm/vllm-openai:v0", image_digest=OTHER)
    got, _ = play(resolved(DIGEST))
    assert got["digests"] == {}
    assert locked(tmp_path).digest_of(DEPLOYMENT["image"]) == DIGEST


def test_other_entries_stay(play, tmp_path):
    lock.update(lock.path_of(tmp_path), "box1", "qwen", model="org/m", revision="c" * 40)
    play(resolved(DIGEST))
    assert locked(tmp_path).revision_of("org/m") == "c" * 40


@pytest.mark.parametrize("result", [{"failed": True, **resolved(DIGEST)}, {"changed": False, "digests": {}}])
def test_nothing_resolved_nothing_locked(play, tmp_path, result):
    play(result)
    assert not lock.path_of(tmp_path).exists()


def test_check_mode_locks_nothing(play, tmp_path):
    play(resolved(DIGEST), check=True)
    assert not lock.path_of(tmp_path).exists()


def test_a_trial_uses_the_lock_and_locks_nothing(play, tmp_path):
    play(resolved(DIGEST))
    got, _ = play(resolved(OTHER), trial=True)
    assert got["digests"] == {"qwen": DIGEST}
    assert "trial" not in got
    assert locked(tmp_path).digest_of(DEPLOYMENT["image"]) == DIGEST


def test_a_lock_that_cannot_be_read_is_told(play, tmp_path):
    lock.path_of(tmp_path).write_text(json.dumps([]))
    with pytest.raises(AnsibleActionFail, match="lock file cannot be used"):
        play(resolved(DIGEST))


FAILURE = {
    "name": "qwen",
    "release": "bad",
    "kind": "crashed",
    "stage": "loading",
    "what": "qwen: release bad does not serve: it ended with exit status 1 while loading, after 31 s",
    "after": "The release before it, old, serves again.",
    "where": "Its log: journalctl -t boxwright-qwen; kept in /var/lib/boxwright/x/failure.json",
    "log": [
        "(EngineCore pid=7) ERROR 11-29 10:00:00 [x.py:1] Traceback (most recent call last):",
        '(EngineCore pid=7) ERROR 11-29 10:00:00 [x.py:1]   File "/x.py", line 1, in f',
        "(EngineCore pid=7) ERROR 11-29 10:00:00 [x.py:1] ValueError: max_num_seqs (256) exceeds available "
        "Mamba cache blocks (117). Each decode sequence requires one Mamba cache block",
        "(APIServer pid=1) RuntimeError: Engine core initialization failed. See root cause above. "
        "Failed core proc(s): {}",
    ],
    "after_log": [],
}


def gate_message(**changes):
    action = object.__new__(GateAction)
    result = action.finish({"failed": True, "msg": "-", "failures": [{**FAILURE, **changes}]}, {})
    assert "log" not in result["failures"][0]
    return result["msg"].splitlines()


def test_a_release_that_does_not_serve_is_told_with_its_cause_and_the_way_out():
    lines = gate_message()
    assert lines[0] == FAILURE["what"]
    assert "117 fit" in " ".join(lines[1:3])
    assert any("set concurrency: 117 or less" in line for line in lines)
    assert lines[-2:] == [FAILURE["after"], FAILURE["where"]]
    assert max(map(len, lines[1:-2])) <= 100


def test_an_unknown_cause_is_told_in_the_engines_own_words():
    unknown = "(EngineCore pid=7) ERROR 11-29 10:00:00 [x.py:1] ValueError: no room"
    assert "    ValueError: no room" in gate_message(log=[*FAILURE["log"][:2], unknown, FAILURE["log"][3]])


def test_that_nothing_serves_is_said_first_with_both_causes():
    log = ["docker: Error response from daemon: manifest for a/b:c not found"]
    lines = gate_message(after="NOTHING SERVES qwen NOW: the one before did not come back", after_log=log)
    assert lines[0].startswith("NOTHING SERVES qwen NOW")
    assert "There is no such image" in lines[1]
    assert any("117 fit" in line for line in lines)


@pytest.mark.parametrize(("kind", "told"), [("hung", True), ("unexpected", False)])
def test_last_lines_are_told_of_an_end_that_is_not_clear(kind, told):
    log = ["(Worker pid=9) INFO 11-29 10:00:00 [x.py:1] NCCL version 2.27.3"]
    assert any("NCCL version" in line for line in gate_message(kind=kind, log=log)) is told


def test_a_run_without_failures_is_left_as_it_is():
    result = {"changed": True, "results": []}
    assert object.__new__(GateAction).finish(result, {}) is result
