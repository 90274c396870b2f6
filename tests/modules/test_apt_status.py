"""How far apt-get is, by what it writes to its status pipe."""

import os
import stat
from types import SimpleNamespace

import pytest
from ansible.module_utils import apt_manager
from ansible.module_utils.apt_manager import AptManager
from ansible.module_utils.apt_status import Share, parse, watched
from ansible.module_utils.command import Result
from ansible.module_utils.packages import Plan


@pytest.mark.parametrize(
    ("line", "step"),
    [
        (
            "dlstatus:1:3.4083:Retrieving file 1 of 12 (1min remaining)",
            Share("dlstatus", 3.4083),
        ),
        ("pmstatus:libcuda1:42.1053:Unpacking libcuda1 (amd64)", Share("pmstatus", 42.1053)),
        ("pmstatus:libc6:i386:50.0000:Configuring libc6:i386", Share("pmstatus", 50.0)),
        ("pmstatus:dpkg-exec:20:Running dpkg", Share("pmstatus", 20.0)),
        ("pmerror:/var/cache/x.deb:80.0:trying to overwrite", None),
        ("pmconffile:/etc/x:50.0:'/etc/x' '/etc/x.dpkg-new' 1 1", None),
        ("dlstatus:1:nan:what", None),
        ("dlstatus:1:1000:what", None),
        ("media-change: one:two", None),
        ("", None),
    ],
)
def test_a_line(line, step):
    assert parse(line) == step


@pytest.fixture
def apt_get(tmp_path):
    """A program that says on its status pipe what it is given, and more than a pipe holds."""

    def make(body):
        program = tmp_path / "apt-get"
        program.write_text(
            '#!/bin/sh\ntest "$1" = -o || exit 9\nto=/proc/self/fd/"${2#APT::Status-Fd=}"\n' + body
        )
        program.chmod(stat.S_IRWXU)
        return [str(program), "install", "x"]

    return make


def test_what_it_says_is_told_in_order(apt_get):
    body = (
        'echo "dlstatus:1:10:a" >>$to\necho noise >>$to\necho "pmstatus:x:99.5:b" >>$to\necho out; exit 3\n'
    )
    steps = []
    done = watched(apt_get(body), steps.append, 60, dict(os.environ))
    assert steps == [Share("dlstatus", 10.0), Share("pmstatus", 99.5)]
    assert (done.rc, done.stdout) == (3, "out\n")


def test_a_step_that_cannot_be_told_holds_up_nothing(apt_get):
    step = 'echo "pmstatus:package:50.0:Unpacking a package" >>$to'
    body = f"n=0; while [ $n -lt 5000 ]; do {step}; n=$((n+1)); done\n"

    def told(step):
        raise OSError("the disk is full")

    assert watched(apt_get(body), told, 60, dict(os.environ)).rc == 0


def test_a_program_that_is_not_there(tmp_path):
    assert watched([str(tmp_path / "none")], print, 60, {}).rc == 127


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda manager: manager.refresh(), ["reading the package lists anew"]),
        (lambda manager: manager.download(Plan([], ["install", "x"])), ["downloading packages"]),
        (lambda manager: manager.carry_out(Plan([], ["install", "x"])), ["installing packages"]),
        (lambda manager: manager.repair([]), []),
    ],
)
def test_each_call_tells_of_its_own_part_alone(call, told, monkeypatch):
    """What apt says of fetching while it installs is of files that are here; of a simulation nothing is."""

    def watched(argv, tell, timeout, env):
        tell(Share("dlstatus", 96.0))
        tell(Share("pmstatus", 50.0))
        return Result(0, "", "")

    monkeypatch.setattr(apt_manager, "watched", watched)
    monkeypatch.setattr(apt_manager, "run", lambda *words, **more: Result(0, "", ""))
    monkeypatch.setattr(AptManager, "installed", lambda self: {})
    manager, stages = AptManager("", 60, 60, None, recommends=False), []
    manager.progress = SimpleNamespace(update=lambda stage, *amount: stages.append((stage, amount)))
    call(manager)
    assert [stage for stage, _ in stages] == told
    assert all(amount in ((96.0, 100, "%"), (50.0, 100, "%")) for _, amount in stages)
