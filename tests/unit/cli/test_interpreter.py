"""A host's Python: looked at by a shell, told in words, installed by apt or dnf."""

import subprocess
import sys

import pytest

from boxwright.ansible.interpreter import Found, complaint, install, look, read, suspected


def shell(script, path="/usr/bin:/bin"):
    done = subprocess.run(
        ["/bin/sh"], input=script, capture_output=True, text=True, check=True, env={"PATH": path}, timeout=60
    )
    return done.stdout + done.stderr


def test_a_python_that_will_do():
    found = read(shell(look(sys.executable)))
    assert found.version == sys.version_info[:2]
    assert complaint(found) is None
    assert found.clock is not None


def test_no_python(tmp_path):
    found = read(shell(look(str(tmp_path / "python3"))))
    assert (found.version, found.problem) == (None, "")
    assert "there is no Python on the box" in complaint(found)


def test_a_python_that_does_not_run(tmp_path):
    python = tmp_path / "my python3"
    python.write_text("#!/bin/sh\necho 'pyenv: version 3.9.1 is not installed' >&2\nexit 1\n")
    python.chmod(0o755)
    found = read(shell(look(str(python))))
    assert found.version is None
    assert "pyenv: version 3.9.1 is not installed" in complaint(found, str(python))


@pytest.mark.parametrize(
    ("found", "told"),
    [
        (Found((3, 8)), "is Python 3.8, and 3.9 is the oldest"),
        (Found(installer="dnf"), "dnf install python3"),
        (Found(), "apt-get install python3"),
        (Found(problem="broken", installer="dnf"), "dnf reinstall python3"),
        (Found(problem="broken", installer="apt-get"), "apt-get install --reinstall python3-minimal"),
    ],
)
def test_told(found, told):
    assert told in complaint(found)


def test_an_interpreter_of_ones_own_is_not_installed():
    assert "ansible_python_interpreter" in complaint(Found(), "/opt/python/bin/python3")


@pytest.mark.parametrize(
    ("result", "python"),
    [
        ({"failed": True, "msg": "The module interpreter '/usr/bin/python3' was not found."}, True),
        ({"failed": True, "msg": "ansible-core requires a minimum of Python version 3.8."}, True),
        ({"failed": True, "msg": "MODULE FAILURE", "module_stderr": "/usr/bin/python3: not found"}, True),
        ({"failed": True, "msg": "no room on /"}, False),
        ({"changed": False, "msg": "interpreter"}, False),
    ],
)  # fmt: skip
def test_only_a_failure_that_python_may_have_caused_is_looked_into(result, python):
    assert suspected(result) is python


@pytest.mark.parametrize(("installer", "line"), [("apt-get", "install --no-install-recommends python3"),
                                                 ("dnf", "dnf -q -y install python3")])  # fmt: skip
def test_the_script_is_one_of_a_shell(installer, line):
    script = install(installer, "http://me:it's@proxy:1", [".example.org"])
    assert line in script
    assert ("-o Acquire::http::Proxy= " in script) is (installer == "apt-get")
    assert "Proxy=" not in install(installer)
    subprocess.run(["/bin/sh", "-n"], input=script, text=True, check=True, timeout=60)
    first = "\n".join(script.splitlines()[:3]) + '\nprintf "%s %s" "$https_proxy" "$no_proxy"\n'
    assert shell(first) == "http://me:it's@proxy:1 localhost,127.0.0.1,::1,.example.org"


@pytest.mark.parametrize("said", ["", "me is not in the sudoers file.", "sudo: a password is required"])
def test_a_shell_that_did_not_run_says_nothing_of_python(said):
    assert read(said) is None
