"""Lines of rc.local that set the cards: found where the shell sees them, and given back to the byte."""

import pytest
from ansible.module_utils import boot_commands

TAKEN = boot_commands.TAKEN.encode()
#: What Python takes for the end of a line and the shell does not.
ODD_ENDS = ["\x0c", "\x0b", "\x1c", "\x85", "\u2028", "\r"]


@pytest.fixture
def host(tmp_path):
    (tmp_path / "etc").mkdir()
    script = tmp_path / "etc" / "rc.local"

    def make(content):
        script.write_bytes(content)
        script.chmod(0o755)
        return str(tmp_path), script

    return make


def lines_of(root):
    return [one["line"] for one in boot_commands.found(root) if one["movable"]]


@pytest.mark.parametrize("odd", ODD_ENDS)
@pytest.mark.parametrize("end", ["", "\n"])
def test_lines_are_those_of_the_shell(host, odd, end):
    before = f"#!/bin/sh\n# page{odd} two\nmodprobe zfs\nnvidia-smi -pl 400{end}".encode()
    root, script = host(before)
    assert lines_of(root) == [4]
    boot_commands.take_over([4], root)
    assert script.read_bytes() == before.replace(b"nvidia-smi", TAKEN + b"nvidia-smi")
    assert boot_commands.taken(root) == [4]
    assert boot_commands.found(root) == [], "what was taken over is no other place any more"
    boot_commands.give_back(root)
    assert script.read_bytes() == before


def test_bytes_that_are_no_utf_8_stay(host):
    before = b"#!/bin/sh\r\n# caf\xe9\r\nnvidia-smi -pl 400\n"
    root, script = host(before)
    boot_commands.take_over(lines_of(root), root)
    assert script.read_bytes() == before.replace(b"nvidia-smi", TAKEN + b"nvidia-smi")
    boot_commands.give_back(root)
    assert script.read_bytes() == before
    assert list(script.parent.iterdir()) == [script], "the copy that says no more is gone"


@pytest.mark.parametrize("content", [b"\0nvidia-smi -pl 400\n", b"#" * (boot_commands.LONGEST + 1)])
def test_what_is_no_script_is_not_read(host, content):
    assert boot_commands.found(host(content)[0]) == []
