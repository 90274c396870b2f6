"""From the raw texts of the module host_facts to HostFacts, without any I/O."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from boxwright.facts.model import (
    Clock,
    HostFacts,
    OperatingSystem,
    Release,
)
from boxwright.facts.parse_containers import docker, published_ports
from boxwright.facts.parse_containers import images as parse_images
from boxwright.facts.parse_hardware import cards, driver
from boxwright.facts.parse_kept import kept
from boxwright.facts.parse_models import models
from boxwright.facts.parsers import linux_texts
from boxwright.facts.raw import Raw
from boxwright.facts.room import Filesystem, Listener, Memory


def parse(raw: Mapping[str, Any], host: str = "") -> HostFacts:
    """Typed facts of a raw answer. Never raises for texts that say something unforeseen: they become None."""
    data = Raw(raw)
    found_cards = cards(data)
    meminfo = linux_texts.meminfo(data.file("meminfo"))
    return HostFacts(
        host=host,
        os=_operating_system(data),
        cards=found_cards,
        driver=driver(data, found_cards),
        docker=docker(data),
        memory=Memory(*(meminfo.get(name, 0) for name in ("MemTotal", "MemAvailable", "SwapTotal"))),
        addresses=linux_texts.addresses(data.command("addresses").stdout, data.command("routes").stdout),
        cpus=data.integer("cpus"),
        processor=_processor(data.file("cpuinfo")),
        filesystems=tuple(_filesystem(one) for one in data.objects("filesystems")),
        listening=_listeners(data),
        images=parse_images(data),
        models=models(data),
        releases=tuple(_release(one) for one in data.objects("releases")),
        tuning=json_object(data.get("tuning")),
        clock=_clock(data.object("clock")),
        kept=kept(data),
        firewalls=tuple(_firewalls(data)),
        repositories=tuple(str(one.get("id", "")) for one in data.objects("repositories")),
    )


def _firewalls(data: Raw) -> Iterator[str]:
    if re.search(r"^\s*ENABLED\s*=\s*[\"']?yes\b", data.file("ufw"), re.MULTILINE | re.IGNORECASE):
        yield "ufw"
    if data.command("firewalld").stdout.strip() == "active":
        yield "firewalld"


def json_object(text: object) -> dict[str, Any]:
    """The object that a JSON text holds; empty for anything else."""
    try:
        found = json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _operating_system(data: Raw) -> OperatingSystem:
    release, uname = linux_texts.os_release(data.file("os-release")), data.object("uname")
    return OperatingSystem(
        id=release.get("ID", ""),
        version_id=release.get("VERSION_ID", ""),
        codename=release.get("VERSION_CODENAME", ""),
        name=release.get("PRETTY_NAME", ""),
        architecture=str(uname.get("machine", "")),
        kernel=str(uname.get("release", "")),
        boot_id=data.file("boot-id").strip() or None,
        reboot_required=bool(data.get("reboot_required")),
        selinux={"1": "enforcing", "0": "permissive"}.get(data.file("selinux").strip()),
    )


def _processor(cpuinfo: str) -> str:
    lines = (line.partition(":") for line in cpuinfo.splitlines())
    return next((rest.strip() for name, _, rest in lines if name.strip() == "model name"), "")


def _filesystem(one: Mapping[str, Any]) -> Filesystem:
    return Filesystem(
        path=str(one.get("path", "")),
        mount=str(one.get("mount", "")),
        device=str(one.get("device", "")),
        size=_whole(one.get("size")),
        available=_whole(one.get("available")),
        read_only=bool(one.get("read_only")),
    )


def _clock(one: Mapping[str, Any]) -> Clock:
    known = {name: one.get(name) for name in ("host", "controller")}
    return Clock(**{name: value for name, value in known.items() if type(value) is int})


def _whole(value: object) -> int:
    return value if isinstance(value, int) else 0


def _listeners(data: Raw) -> tuple[Listener, ...]:
    containers: Sequence[tuple[int, str]] = published_ports(data)
    names = dict(containers)
    return tuple(
        Listener(one.port, one.address, one.process, names.get(one.port))
        for one in linux_texts.sockets(data.command("sockets").stdout)
    )


def _release(one: Mapping[str, Any]) -> Release:
    return Release(
        str(one.get("deployment", "")),
        str(one.get("id", "")),
        bool(one.get("current")),
        json_object(one.get("record")),
    )
