"""The way into hosts, also from a checkout whose path is unusual."""

import subprocess
from pathlib import Path

import pytest

from boxwright.lab import ssh
from boxwright.lab.programs import find
from boxwright.lab.state import Lab


@pytest.fixture
def lab(tmp_path):
    root = tmp_path / "my check%out"
    root.mkdir()
    return Lab(root=root, cache=tmp_path / "cache")


def test_the_configuration_has_a_block_a_host():
    text = ssh.config_text(Path("/src/boxwright/.lab"), {"lab2": "172.28.0.11", "lab1": "172.28.0.10"})
    blocks = text.split("\n\n")[1:]
    assert [block.splitlines()[0] for block in blocks] == ["Host lab1", "Host lab2"]
    assert "    HostName 172.28.0.10" in blocks[0].splitlines()
    assert "    IdentityFile /src/boxwright/.lab/id_ed25519" in blocks[0].splitlines()
    assert "    StrictHostKeyChecking accept-new" in blocks[0].splitlines()


@pytest.mark.skipif(find("ssh") is None, reason="no ssh client")
def test_ssh_itself_reads_the_paths_of_an_unusual_checkout(lab):
    ssh.ensure_key(lab, print)
    ssh.host_key(lab, "lab1", print)
    ssh.configure(lab, {"lab1": "172.28.0.10"})
    told = subprocess.run(
        ["ssh", "-F", str(lab.directory / "ssh_config"), "-G", "lab1"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    assert "hostname 172.28.0.10" in told
    assert "user ops" in told
    # Some values are told as written, with percent signs doubled, and some as they are understood.
    files = [line.replace("%%", "%") for line in told if line.startswith(("identityfile", "userknownhosts"))]
    assert files == [
        f"identityfile {lab.directory}/id_ed25519",
        f"userknownhostsfile {lab.directory}/known_hosts",
    ]


def test_keys_are_made_once_and_are_private(lab):
    first = ssh.ensure_key(lab, print).read_bytes()
    assert ssh.ensure_key(lab, print).read_bytes() == first
    assert (lab.directory / "id_ed25519").stat().st_mode & 0o077 == 0


def test_hosts_are_known_by_keys_of_their_own_that_stay(lab):
    one = {file.path: file for file in ssh.files(lab, "lab1", print)}
    again = {file.path: file for file in ssh.files(lab, "lab1", print)}
    other = {file.path: file for file in ssh.files(lab, "lab2", print)}
    key = "/etc/ssh/ssh_host_ed25519_key"
    assert one == again
    assert one[key] != other[key]
    assert one[key].mode == 0o600
    authorized = one["/home/ops/.ssh/authorized_keys"]
    assert authorized == other["/home/ops/.ssh/authorized_keys"]
    assert authorized.owner == ssh.USER_ID


def test_known_hosts_follow_the_addresses(lab):
    ssh.host_key(lab, "lab1", print)
    ssh.configure(lab, {"lab1": "172.28.0.10"})
    ssh.configure(lab, {"lab1": "172.28.9.10"})
    lines = (lab.directory / "known_hosts").read_text(encoding="ascii").splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("lab1,172.28.9.10 ssh-ed25519 ")
