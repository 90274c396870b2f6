"""Boxwright's own files on a host, of a raw answer."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

from boxwright.facts.kept import (
    LIMITS_AT_BOOT,
    LOADED_AT_BOOT,
    NOUVEAU_OFF,
    BootCommand,
    CardLimits,
    Drift,
    Kept,
    PackageGroup,
    PortAccess,
    Receipt,
)
from boxwright.facts.parsers import pem
from boxwright.facts.raw import Raw

_AUTHORITIES = ("/usr/local/share/ca-certificates/", "/etc/pki/ca-trust/source/anchors/")
_LIMITS = "/run/boxwright/gpu-tuning.json"
#: Where the proxy of Docker's stands; releases before had it in the unit's own drop-in.
_PROXY, _OLD_PROXY = "/docker-proxy.env", "/etc/systemd/system/docker.service.d/boxwright-proxy.conf"


def kept(data: Raw) -> Kept:
    """What the files say; nothing where they say nothing."""
    files = {str(path): text for path, text in data.object("kept").items() if isinstance(text, str)}
    receipts = _object(files.get(_LIMITS))
    if receipts.get("driver_load") != data.get("driver_load"):
        receipts = {}  # the driver was loaded anew since, and remembers nothing of them
    return Kept(
        sources=dict(_sources(files)),
        pins=dict(_pins(files)),
        groups=dict(_groups(files)),
        limits=dict(_limits(receipts)),
        daemon_keys=tuple(_daemon_keys(files)),
        docker_proxy=_proxy(
            next((text for path, text in files.items() if path.endswith(_PROXY)), files.get(_OLD_PROXY))
        ),
        registries=_names(data.get("registries")),
        authorities=tuple(
            one
            for path, text in sorted(files.items())
            if path.startswith(_AUTHORITIES)
            for one in pem.fingerprints(text)
        ),
        cdi_driver=str(data.get("cdi_driver")) if data.get("cdi_driver") else None,
        files=tuple(path for path in (NOUVEAU_OFF, LOADED_AT_BOOT, LIMITS_AT_BOOT) if path in files),
        receipts={str(role): _receipt(one) for role, one in data.object("receipts").items()},
        boot_commands=tuple(_boot_commands(data)),
        port_access=_port_access(data),
    )


def _object(text: object) -> Mapping[str, Any]:
    try:
        found = json.loads(text) if isinstance(text, str) else None
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _named(files: Mapping[str, str], folder: str, ending: str) -> Iterator[tuple[str, str]]:
    """Stem without our prefix -> text, of the files of a folder."""
    for path, text in files.items():
        name = PurePosixPath(path).name
        if path.startswith(f"{folder}/") and name.endswith(ending):
            yield name.removesuffix(ending).removeprefix("boxwright-"), text


def _sources(files: Mapping[str, str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    for name, text in _named(files, "/etc/apt/sources.list.d", ".sources"):
        found = re.search(r"^URIs:(.*)$", text, re.MULTILINE)
        yield name, tuple(found.group(1).split()) if found else ()
    for name, text in _named(files, "/etc/yum.repos.d", ".repo"):
        found = re.search(r"^baseurl=(.*)$", text, re.MULTILINE)
        yield name, tuple(found.group(1).split()) if found else ()


def _pins(files: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for name, text in _named(files, "/etc/apt/preferences.d", ".pref"):
        found = re.search(r"^Pin:\s*version\s+(\S+)", text, re.MULTILINE)
        if found:
            yield name.removeprefix("held-"), found.group(1)


def _groups(files: Mapping[str, str]) -> Iterator[tuple[str, PackageGroup]]:
    for name, text in _named(files, "/var/lib/boxwright/holds", ".json"):
        record = _object(text)
        yield name, PackageGroup(*(_names(record.get(key)) for key in ("declared", "installed", "holds")))


def _names(value: object) -> tuple[str, ...]:
    return tuple(str(one) for one in value) if isinstance(value, list) else ()


def _limits(receipts: Mapping[str, Any]) -> Iterator[tuple[str, CardLimits]]:
    cards, unsupported = receipts.get("cards"), receipts.get("unsupported")
    cards = cards if isinstance(cards, dict) else {}
    unsupported = unsupported if isinstance(unsupported, dict) else {}
    for uuid in {**cards, **unsupported}:
        one = cards.get(uuid)
        one = one if isinstance(one, dict) else {}
        clocks, memory, power = (one.get(key) for key in ("clocks_mhz", "memory_clock_mhz", "power_limit_w"))
        yield (
            str(uuid),
            CardLimits(
                tuple(mhz for mhz in clocks if isinstance(mhz, int)) if isinstance(clocks, list) else (),
                memory if isinstance(memory, int) and not isinstance(memory, bool) else None,
                float(power) if isinstance(power, (int, float)) and not isinstance(power, bool) else None,
                _names(unsupported.get(uuid)),
            ),
        )


def _receipt(one: object) -> Receipt:
    known = one if isinstance(one, dict) else {}
    drift = known.get("drift")
    return Receipt(
        _names(known.get("differs")),
        tuple(
            Drift(*(str(entry.get(key, "")) for key in ("kind", "subject", "was", "now")))
            for entry in (drift if isinstance(drift, list) else ())
            if isinstance(entry, dict)
        ),
    )


def _daemon_keys(files: Mapping[str, str]) -> Iterator[str]:
    receipt = next((text for path, text in files.items() if path.endswith("/container-runtime.json")), None)
    entries = _object(receipt).get("entries")
    for entry in entries if isinstance(entries, list) else ():
        path = entry.get("path") if isinstance(entry, dict) else None
        if isinstance(path, list):
            yield ".".join(str(step) for step in path)


def _proxy(text: str | None) -> str | None:
    found = re.search(r"HTTPS_PROXY=\"?([^\"\s]+)", text or "")
    return found.group(1) if found else None


def _boot_commands(data: Raw) -> Iterator[BootCommand]:
    for one in data.objects("boot_commands"):
        card = one.get("card")
        yield BootCommand(
            path=str(one.get("path", "")),
            line=line if isinstance(line := one.get("line"), int) else 0,
            text=str(one.get("text", "")),
            what=str(one.get("what", "")),
            card=card if isinstance(card, str) else None,
            movable=one.get("movable") is True,
            via=str(one.get("via") or ""),
        )


def _port_access(data: Raw) -> PortAccess | None:
    raw = data.object("port_access")
    declared = _object(raw.get("declared"))
    if not declared:
        return None
    ports = declared.get("ports")
    return PortAccess(
        _names(declared.get("allow_from")),
        tuple(
            (str(one.get("bind")), str(one.get("port")))
            for one in (ports if isinstance(ports, list) else ())
            if isinstance(one, dict)
        ),
        _names(raw.get("wrong")),
    )
