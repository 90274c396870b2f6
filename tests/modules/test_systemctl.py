"""systemd's answers as values, and a unit's lines from one start on."""

import pytest
from ansible.module_utils import systemctl
from ansible.module_utils.command import Result
from ansible.module_utils.systemctl import Journal, UnitError, show

SHOWN = """\
Result=success
NRestarts=2
ExecMainStartTimestamp=@1795995856
ExecMainCode=1
ExecMainStatus=143
LoadState=loaded
ActiveState=active
SubState=running
UnitFileState=enabled
NeedDaemonReload=no
InvocationID=fb1a364e06ff488c93eea19ad3a2cc58
DropInPaths=/usr/lib/systemd/system/service.d/10-all.conf /etc/systemd/system/x.service.d/override.conf
"""


@pytest.fixture
def answers(monkeypatch):
    """Replies of systemctl and journalctl in order; calls: how they were called."""

    class Answers(list):
        calls = []

    found = Answers()
    found.calls = []

    def run(argv, **kw):
        found.calls.append(argv)
        return found.pop(0)

    monkeypatch.setattr(systemctl, "run", run)
    return found


def state(answers, text):
    answers.append(Result(0, text, ""))
    return show("x.service")


def test_a_unit_that_runs(answers):
    found = state(answers, SHOWN)
    assert (found.running, found.down, found.enabled, found.stale) == (True, False, True, False)
    assert (found.restarts, found.status, found.began) == (2, 143, 1795995856.0)
    assert found.invocation == "fb1a364e06ff488c93eea19ad3a2cc58"
    assert found.drop_ins == (
        "/usr/lib/systemd/system/service.d/10-all.conf",
        "/etc/systemd/system/x.service.d/override.conf",
    )


def test_a_unit_that_does_not_exist(answers):
    text = (
        "LoadState=not-found\nActiveState=inactive\nSubState=dead\nExecMainStartTimestamp=\nUnitFileState=\n"
    )
    found = state(answers, text)
    assert (found.load, found.running, found.down, found.enabled) == ("not-found", False, True, False)
    assert (found.restarts, found.began, found.invocation) == (0, None, "")
    assert found.drop_ins == ()


@pytest.mark.parametrize(
    ("active", "sub", "down"),
    [
        ("active", "running", False),
        ("activating", "start-pre", False),
        ("activating", "start", False),
        ("deactivating", "stop-sigterm", False),
        ("activating", "auto-restart", True),
        ("activating", "auto-restart-queued", True),
        ("failed", "failed", True),
        ("failed", "failed-before-auto-restart", True),
        ("inactive", "dead", True),
    ],
)
def test_whether_it_ended(answers, active, sub, down):
    assert state(answers, f"ActiveState={active}\nSubState={sub}\n").down is down


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("ExecMainCode=1\nExecMainStatus=125\n", "ended with exit status 125"),
        ("ExecMainCode=2\nExecMainStatus=9\n", "was killed by signal 9"),
        ("Result=start-limit-hit\n", "ended too often in a row; systemd gave up starting it"),
    ],
)
def test_how_it_ended(answers, text, said):
    assert state(answers, text).ending == said


def test_a_refusal_is_told(answers):
    answers.append(Result(1, "", "Failed to connect to bus"))
    with pytest.raises(UnitError, match="Failed to connect to bus"):
        show("x.service")
    answers.append(Result(5, "", "Unit x.service not loaded."))
    with pytest.raises(UnitError, match=r"systemctl stop x\.service: Unit x\.service not loaded"):
        systemctl.call("stop", "x.service")


def test_a_unit_that_failed_too_often_can_be_started(answers):
    answers += [Result(1, "", "not loaded"), Result(0, "", "")]
    systemctl.restart("x.service")
    assert [call[1] for call in answers.calls] == ["reset-failed", "restart"]


def test_lines_of_one_start_are_read_once(answers):
    answers += [
        Result(0, "one\ntwo\r10%\r20%\n-- cursor: s=abc\n", ""),
        Result(0, "", ""),
        Result(0, "three\n-- cursor: s=def\n", ""),
    ]
    journal = Journal.of_start("f00")
    assert journal.new() == ["one", "two\r10%\r20%"]
    assert journal.new() == []
    assert journal.new() == ["three"]
    assert all("_SYSTEMD_INVOCATION_ID=f00" in call for call in answers.calls)
    assert "--lines=5000" in answers.calls[0]
    assert "--after-cursor=s=abc" in answers.calls[1]
    assert "--after-cursor=s=abc" in answers.calls[2]


def test_lines_since_a_moment(answers):
    answers.append(Result(0, "", ""))
    assert Journal.since("dockerd", 12.5).new() == []
    assert {"--identifier=dockerd", "--since=@12.500"} <= set(answers.calls[0])


def test_a_journal_that_cannot_be_read(answers):
    answers.append(Result(1, "", "No journal files were found."))
    with pytest.raises(UnitError, match="No journal files"):
        Journal.of_start("f00").new()
