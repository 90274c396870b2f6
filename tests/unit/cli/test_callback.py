"""What a person is told when a task fails."""

import pytest

from boxwright.ansible.callback.boxwright import _outcome, failure_text


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
