"""How ssh reaches a box: the words of the command, and what its configuration makes of them."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

TIMEOUT_S = 10


@dataclass(frozen=True)
class Route:
    """Where ssh goes. host, port: of the box, names of ~/.ssh/config resolved; jump: what lies between."""

    host: str
    port: int
    jump: str = ""


def ssh_words(host: str, variables: Mapping[str, object]) -> list[str]:
    """The ssh command that reaches a host as Ansible does."""
    words = ["ssh"]
    for name in ("ansible_ssh_common_args", "ansible_ssh_extra_args"):
        words += shlex.split(str(variables.get(name) or ""))
    for option, name in (
        ("-i", "ansible_ssh_private_key_file"),
        ("-p", "ansible_port"),
        ("-l", "ansible_user"),
    ):
        if variables.get(name):
            words += [option, str(variables[name])]
    return [*words, str(variables.get("ansible_host") or host)]


def route(words: Sequence[str]) -> Route | None:
    """What ssh would do with these words; None where it does not say, or there is none."""
    try:
        done = subprocess.run(
            [words[0], "-G", *words[1:]],
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=TIMEOUT_S,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired, ValueError):
        return None
    return parse(done.stdout) if done.returncode == 0 else None


def parse(text: str) -> Route | None:
    """The route in what `ssh -G` printed."""
    said = dict(line.split(" ", 1) for line in text.splitlines() if " " in line)
    if "hostname" not in said or not said.get("port", "").isdecimal():
        return None
    jump = next(
        (said[name] for name in ("proxyjump", "proxycommand") if said.get(name, "none") != "none"), ""
    )
    return Route(said["hostname"], int(said["port"]), jump)
