"""What the controller adds to the engine's modules: the lock of the inventory."""

import json
from types import SimpleNamespace

import pytest
from ansible.errors import AnsibleActionFail

from boxwright.ansible.action.engine_release import ActionModule
from boxwright.spec import lock

DIGEST, OTHER = "sha256:" + "a" * 64, "sha256:" + "b" * 64
DEPLOYMENT = {"name": "qwen", "image": "vllm/vllm-openai:v1"}


@pytest.fixture
def play(tmp_path, monkeypatch):
    """play(result of the module, check=…) -> (arguments that the module got, result of the task)."""

    def call(result, *, check=False):
        action = object.__new__(ActionModule)
        action._task = SimpleNamespace(args={"deployments": [DEPLOYMENT]}, check_mode=check)
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


def test_a_lock_that_cannot_be_read_is_told(play, tmp_path):
    lock.path_of(tmp_path).write_text(json.dumps([]))
    with pytest.raises(AnsibleActionFail, match="lock file cannot be used"):
        play(resolved(DIGEST))
