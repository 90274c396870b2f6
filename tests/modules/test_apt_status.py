"""How far apt-get is, by what it writes to its status pipe."""

import os
import stat

import pytest
from ansible.module_utils.apt_status import Step, parse, watched


@pytest.mark.parametrize(
    ("line", "step"),
    [
        (
            "dlstatus:1:3.4083:Retrieving file 1 of 12 (1min remaining)",
            Step("downloading packages", 3.4083),
        ),
        ("pmstatus:libcuda1:42.1053:Unpacking libcuda1 (amd64)", Step("installing packages", 42.1053)),
        ("pmstatus:libc6:i386:50.0000:Configuring libc6:i386", Step("installing packages", 50.0)),
        ("pmstatus:dpkg-exec:20:Running dpkg", Step("installing packages", 20.0)),
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
    assert steps == [Step("downloading packages", 10.0), Step("installing packages", 99.5)]
    assert (done.rc, done.stdout) == (3, "out\n")


def test_a_step_that_cannot_be_told_holds_up_nothing(apt_get):
    step = 'echo "pmstatus:package:50.0:Unpacking a package" >>$to'
    body = f"n=0; while [ $n -lt 5000 ]; do {step}; n=$((n+1)); done\n"

    def told(step):
        raise OSError("the disk is full")

    assert watched(apt_get(body), told, 60, dict(os.environ)).rc == 0


def test_a_program_that_is_not_there(tmp_path):
    assert watched([str(tmp_path / "none")], print, 60, {}).rc == 127
