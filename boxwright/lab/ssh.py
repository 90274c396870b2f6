"""The way into simulated hosts: a key made for the lab, host keys that stay, and an ssh configuration."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

from boxwright.errors import UserError
from boxwright.lab.payload import Payload
from boxwright.lab.programs import program
from boxwright.lab.state import Lab, Report, write_atomically

USER, USER_ID = "ops", 1000


def ensure_key(lab: Lab, report: Report) -> Path:
    """The lab's private key, made when it is missing."""
    key = lab.directory / "id_ed25519"
    if not key.exists() or not key.with_suffix(".pub").exists():
        _generate(key, f"boxwright-lab-{lab.id}", report)
    return key


def host_key(lab: Lab, name: str, report: Report) -> Path:
    """The private key by which the host called `name` is known; it stays until the whole lab goes."""
    key = lab.directory / "host_keys" / name
    if not key.exists() or not key.with_suffix(".pub").exists():
        _generate(key, name, report)
    return key


def files(lab: Lab, name: str, report: Report) -> list[Payload]:
    """What a host gets so that it can be entered: its own key, and the lab's key as an authorized one."""
    own, mine = host_key(lab, name, report), ensure_key(lab, report)
    return [
        Payload("/etc/ssh/ssh_host_ed25519_key", own.read_bytes(), mode=0o600),
        Payload("/etc/ssh/ssh_host_ed25519_key.pub", own.with_suffix(".pub").read_bytes()),
        Payload(
            f"/home/{USER}/.ssh/authorized_keys",
            mine.with_suffix(".pub").read_bytes(),
            mode=0o600,
            owner=USER_ID,
        ),
    ]


def configure(lab: Lab, addresses: Mapping[str, str]) -> None:
    """Write ssh_config and known_hosts for the hosts, given as name and address."""
    known = []
    for name, address in sorted(addresses.items()):
        public = (lab.directory / "host_keys" / name).with_suffix(".pub")
        if public.exists():
            kind, key = public.read_text(encoding="ascii").split()[:2]
            known.append(f"{name},{address} {kind} {key}\n")
    write_atomically(lab.directory / "known_hosts", "".join(known), mode=0o600)
    write_atomically(lab.directory / "ssh_config", config_text(lab.directory, addresses), mode=0o600)


def config_text(directory: Path, addresses: Mapping[str, str]) -> str:
    """The ssh configuration: one block a host, with absolute paths."""
    blocks = [
        f"""\
Host {name}
    HostName {address}
    User {USER}
    IdentityFile {_word(directory / "id_ed25519")}
    IdentitiesOnly yes
    UserKnownHostsFile {_word(directory / "known_hosts")}
    HostKeyAlias {name}
    StrictHostKeyChecking accept-new
    UpdateHostKeys no
"""
        for name, address in sorted(addresses.items())
    ]
    return "\n".join(["# Written by boxwright.lab; the next `up` or `down` overwrites it.\n", *blocks])


def _word(path: Path) -> str:
    """A path as one argument of ssh_config(5): quoted, its percent signs kept from being expanded."""
    text = str(path).replace("%", "%%")
    return f'"{text}"' if " " in text else text


def _generate(key: Path, comment: str, report: Report) -> None:
    ssh_keygen = program("ssh-keygen", "openssh-client", report, "simulated hosts are reached by ssh")
    key.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    key.unlink(missing_ok=True)
    done = subprocess.run(
        [ssh_keygen, "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", str(key)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    if done.returncode:
        raise UserError("ssh-keygen could not make a key", where=str(key), why=done.stderr.strip())
