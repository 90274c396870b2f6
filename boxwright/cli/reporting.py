"""The verb report: what somebody who helps needs to see of boxes, in one file, without secrets and names."""

from __future__ import annotations

import json
import os
import platform
import re
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from boxwright import __version__
from boxwright.cli import lab
from boxwright.cli.ansible_run import HostReport, play
from boxwright.cli.console import say, say_aside, show_json, table, wrapped
from boxwright.cli.paths import named, output_file
from boxwright.cli.ssh_trouble import reason
from boxwright.cli.targets import targets
from boxwright.doctor.anonymous import (
    Anonymizer,
    hosts_of_journals,
    hosts_of_ssh,
    secrets_of,
    short_names,
    size_of,
    texts_of,
    users_of_homes,
)
from boxwright.doctor.host import examine
from boxwright.errors import EXIT_BAD_INPUT, EXIT_FAILED, UserError
from boxwright.spec.inventory import Inventory
from boxwright.spec.places import shown_path

#: Hosts of addresses that everybody knows: they tell nothing about anybody.
PUBLIC = (
    "huggingface.co", "modelscope.cn", "pypi.org", "docker.com", "nvidia.com", "nvidia.github.io",
    "docker.io", "github.com",
)  # fmt: skip
FORMAT = 1


def report(
    hosts: Sequence[str],
    inventories: Sequence[str],
    *,
    every: bool = False,
    output: str = "",
    show: bool = False,
    yes: bool = False,
    as_json: bool = False,
) -> None:
    """Gather, take out who and where, show what is left, and write it once that is agreed to.

    show: print the whole file. Exit status 1 where a box cannot be looked at: the others are in the file.
    """
    path = named(output or time.strftime("boxwright-report-%Y%m%d-%H%M%S.json"))
    if output_file("--output", path):
        raise UserError(
            "there is such a file already",
            where=str(path),
            status=EXIT_BAD_INPUT,
            ways_out=("--output another one",),
        )
    inventory, names, paths = targets(hosts, inventories, every=every)
    lab.ensure_simulated(inventory, names, as_json=as_json)
    ran = play("doctor.yml", names, paths, quiet=True)
    boxes = {name: box(ran.hosts.get(name, HostReport(name))) for name in names}
    anonymizer = anonymizer_for(inventory, names, boxes)
    bundle = anonymizer.value(
        {
            "format": FORMAT,
            "boxwright": __version__,
            "made": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "controller": {"python": platform.python_version(), "system": platform.system()},
            "boxes": boxes,
        }
    )
    text = json.dumps(bundle, indent=1, ensure_ascii=False) + "\n"
    if show and not as_json:
        say(text)
    if not as_json:
        summary(bundle, anonymizer)
    if yes or (not as_json and agreed(path)):
        write(path, text)
        if not as_json:
            say(f"written: {shown_path(path)}")
    if as_json:
        show_json(
            {"file": str(path) if yes else None, "replaced": dict(anonymizer.replaced), "report": bundle}
        )
    if any(one["unreachable"] for one in boxes.values()):
        raise SystemExit(EXIT_FAILED)


def box(host: HostReport) -> dict[str, Any]:
    """What was seen of a box, by section."""
    raw = next(iter(host.results.get("diagnosis", ())), {}).get("raw")
    if raw is None:
        return {"unreachable": reason(host.name, host.failure)}
    deployments, found = examine(raw)
    plan = next(iter(host.results.get("plan", ())), {}).get("ansible_facts", {}).get("box_plan", {})
    return {
        "unreachable": None,
        "diagnosis": {"deployments": [one.to_json() for one in deployments], **found.to_json()},
        "facts": plan.get("facts"),
        "plan": {key: value for key, value in plan.items() if key != "facts"},
        "readings": raw,
    }


def anonymizer_for(
    inventory: Inventory,
    names: Sequence[str],
    boxes: Mapping[str, Any],
    *,
    users: Iterable[str] = (),
    hosts: Iterable[str] = (),
    keep: Iterable[str] = (),
) -> Anonymizer:
    """Knows the boxes' users, hosts and secrets, and those of this machine.

    users, hosts: more of them. keep: names of hosts that may stay.
    """
    users = {os.environ.get("USER", ""), os.environ.get("SUDO_USER", ""), *users}
    own, hosts, secrets = {platform.node()}, set(hosts), set[str]()
    for name in names:
        known = inventory.variables(name)
        secrets |= secrets_of(known)
        users |= {str(known.get(key) or "") for key in ("ansible_user", "ansible_become_user")}
        own |= {name, str(known.get("ansible_host") or "")}
        urls = (text for text in texts_of(known) if "://" in text)
        hosts |= {host for url in urls if (host := hostname(url)) and not host.endswith(PUBLIC)}
        for user, host in jumps(known):
            users.add(user)
            hosts.add(host)
    told = list(texts_of(boxes))
    hosts |= own | short_names(own) | hosts_of_journals(told)
    hosts |= {host for host in hosts_of_ssh(told) if not host.endswith(PUBLIC)}
    users |= users_of_homes(told)
    hosts -= set(keep)
    return Anonymizer(users=sorted(filter(None, users)), hosts=sorted(filter(None, hosts)), secrets=secrets)


def jumps(variables: Mapping[str, Any]) -> list[tuple[str, str]]:
    """User ("" for none) and name of each jump host in what ssh is given beside the box's own address."""
    given = " ".join(
        str(variables.get(name) or "")
        for name in ("ansible_ssh_common_args", "ansible_ssh_extra_args", "ansible_ssh_args")
    )
    found = re.findall(r"(?:-J\s{0,4}|ProxyJump[= ]\s{0,4})([^\s\"']{1,500})", given)
    one = re.compile(r"(?:ssh://)?(?:([^\s@,\"'=/]{1,64})@)?(\[[0-9A-Fa-f:]+\]|[\w.-]{1,255})(?::\d+)?")
    places = [place for listed in found for place in one.findall(listed)]
    return [
        (user, host.strip("[]"))
        for user, host in [*places, *re.findall(r"([\w.-]{1,64})@([\w.-]{1,255})", given)]
    ]


def hostname(url: str) -> str | None:
    """The host of an address, None of what is none."""
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None


def summary(bundle: Mapping[str, Any], anonymizer: Anonymizer) -> None:
    """What is in the file, and what was taken out."""
    rows = [
        [name, section, f"{size_of(value) / 1000:.1f}"]
        for name, one in bundle["boxes"].items()
        for section, value in one.items()
        if section != "unreachable" and value
    ]
    if rows:
        table(["box", "part", "kB"], rows, right=(2,))
        say()
    for name, one in bundle["boxes"].items():
        if one["unreachable"]:
            say_aside(wrapped(f"{name}: could not be looked at: {one['unreachable']}", hang=2))
    counts = ", ".join(f"{count} {kind}" for kind, count in anonymizer.replaced.items() if count)
    say(
        wrapped(
            f"replaced by words: {counts or 'nothing'}; secrets are ***. --show prints all of it.", hang=2
        )
    )


def agreed(path: Path) -> bool:
    """Ask, where there is somebody to ask; otherwise nothing is written without --yes."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        say(f"not written; --yes writes it to {shown_path(path)}")
        return False
    return input(f"write it to {shown_path(path)}? [y/N] ").strip().lower() in ("y", "yes")


def write(path: Path, text: str) -> None:
    """Write a new file that only its owner reads. Raises UserError."""
    try:
        with os.fdopen(
            os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8"
        ) as file:
            file.write(text)
    except OSError as error:
        raise UserError(
            f"the report cannot be written: {error.strerror or error}",
            where=str(path),
            ways_out=("--output a place where you may write",),
        ) from error
