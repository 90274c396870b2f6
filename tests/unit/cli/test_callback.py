"""What a person is told when a task fails."""

from types import SimpleNamespace

import pytest

from boxwright.ansible.callback.boxwright import CallbackModule, _outcome
from boxwright.ansible.failures import text as failure_text
from boxwright.ansible.failures import touched


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ({"msg": "no room on /"}, "no room on /"),
        ({"msg": "apt failed", "stderr": "E: broken\n"}, "apt failed\nE: broken"),
        (
            {"results": [{"failed": True, "msg": "one"}, {"msg": "fine"}, {"failed": True, "msg": "two"}]},
            "one\ntwo",
        ),
        ({"censored": "the output has been hidden"}, "the output has been hidden"),
        ({"msg": "MODULE FAILURE", "module_stderr": ""}, "MODULE FAILURE"),
        (
            {
                "msg": "Traceback (most recent call last):\n  File x\nOSError: no space left",
                "module_stderr": "",
            },
            "OSError: no space left",
        ),
        ({}, "it failed without a message"),
    ],
)
def test_failure_text(result, text):
    assert failure_text(result) == text


@pytest.mark.parametrize(
    ("action", "data", "check", "found"),
    [
        ("held_packages", {"touched": False, "msg": "no such version"}, False, False),
        ("held_packages", {"touched": True, "msg": "failed half-way"}, False, True),
        ("held_packages", {"touched": True}, True, False),
        ("gpu_limits", {"done": ["power limit 400 W"]}, False, True),
        ("gpu_limits", {"done": []}, False, None),
        ("package_source", {"msg": "no key there. Nothing was changed."}, False, False),
        ("engine_gate", {"changed": True}, False, True),
        ("engine_gate", {"changed": False}, False, None),
        ("assert", {"msg": "it is not so"}, False, False),
        ("command", {"results": [{"changed": False}, {"changed": True}]}, False, True),
    ],
)
def test_whether_what_failed_had_changed_something(action, data, check, found):
    assert touched(action, data, check=check) is found


@pytest.mark.parametrize(
    ("tally", "word"),
    [
        ({"ok": 3, "skipped": 1}, "as declared"),
        ({"ok": 3, "changed": 2}, "2 changed"),
        ({"ok": 3, "changed": 2, "failed": 1}, "failed"),
        ({"ok": 3, "unreachable": 1}, "unreachable"),
    ],
)
def test_what_is_said_of_a_role(tally, word):
    assert _outcome(tally)[0] == word


def test_a_role_that_is_not_visited_is_told_in_its_place():
    callback, said = CallbackModule(), []
    callback._display = SimpleNamespace(display=said.append, verbosity=0)
    host = SimpleNamespace(get_name=lambda: "box1")
    passed_by = SimpleNamespace(
        action="ansible.builtin.include_role", args={"name": "gpu_tuning"}, _role=None, _uuid="1"
    )
    a_part = SimpleNamespace(
        action="ansible.builtin.include_role",
        args={"name": "engine", "tasks_from": "install"},
        _role=None,
        _uuid="3",
    )
    one_task = SimpleNamespace(action="ansible.builtin.assert", args={}, _role=None, _uuid="2")
    for task in (passed_by, a_part, one_task):
        callback.v2_playbook_on_task_start(task, False)
        callback.v2_runner_on_skipped(SimpleNamespace(host=host, task=task, result={}))
    assert said == ["box1          gpu_tuning         as declared"]
    assert callback._hosts["box1"]["roles"] == [
        {"role": "gpu_tuning", "changed": 0, "seconds": 0.0, "visited": False}
    ]


def test_a_role_that_no_plan_lists_is_not_told_where_it_is_not_meant():
    callback, said = CallbackModule(), []
    callback._display = SimpleNamespace(display=said.append, verbosity=0)
    task = SimpleNamespace(
        action="ansible.builtin.include_role", args={"name": "gateway"}, _role=None, _uuid="1"
    )
    host = SimpleNamespace(get_name=lambda: "box1")
    callback.v2_playbook_on_task_start(task, False)
    callback.v2_runner_on_skipped(SimpleNamespace(host=host, task=task, result={}))
    assert said == []
    assert callback._hosts["box1"]["roles"] == []


@pytest.mark.parametrize(("ignored", "failed"), [(True, False), (False, True)])
def test_another_host_that_is_done_without_is_no_failure(ignored, failed):
    callback, said = CallbackModule(), []
    callback._display = SimpleNamespace(display=said.append, verbosity=0)
    task = SimpleNamespace(
        action="ansible.builtin.slurp", name="Keys are read", _uuid="1", ignore_unreachable=ignored
    )
    host = SimpleNamespace(get_name=lambda: "box1")
    callback.v2_runner_on_unreachable(SimpleNamespace(host=host, task=task, result={"msg": "no route"}))
    assert bool(callback._hosts.get("box1", {}).get("failure")) is failed
    assert bool(said) is failed


@pytest.mark.parametrize("colour", ["0", "1"])
def test_what_a_host_says_steers_no_terminal(colour, monkeypatch):
    monkeypatch.setenv("BOXWRIGHT_COLOUR", colour)
    callback, said = CallbackModule(), []
    callback._display = SimpleNamespace(display=said.append, verbosity=0)
    hostile = "\x1b[2Jgone\n\x1b]0;title\x07\rover\tand on"
    task = SimpleNamespace(
        name="It serves",
        action="engine_gate",
        ignore_errors=False,
        ignore_unreachable=False,
        check_mode=False,
        _role=None,
        _uuid="1",
    )
    host = SimpleNamespace(get_name=lambda: "box1")
    callback.v2_runner_on_failed(SimpleNamespace(host=host, task=task, result={"msg": hostile}))
    callback.v2_runner_on_unreachable(SimpleNamespace(host=host, task=task, result={"msg": hostile}))
    whole = "".join(said).replace("\x1b[31m", "").replace("\x1b[0m", "")
    assert "gone" in whole
    assert not set(whole) & set("\x1b\x07\r")
    assert ("\x1b[31m" in "".join(said)) == (colour == "1")
