"""Faults told to this host, {NAME: VALUE}. They outlive a reboot, as broken hardware does."""

from __future__ import annotations

import json
from typing import Any, Dict, Optional

from . import files, paths

#: Every fault, with what it does.
KNOWN = {
    "no-driver": "nvidia-smi cannot talk to the kernel module (rc 9)",
    "mismatch": "library and kernel module are of two versions (rc 18)",
    "no-devices": "the module is loaded, and no card came up (rc 6)",
    "rebar": "as no-devices, with the kernel messages of a card without Resizable BAR / Above 4G Decoding",
    "gpu-lost": "a card fell off the bus (Xid 79); value: its index, the last card by default",
    "hang": "nvidia-smi never answers",
    "unknown-error": "cells of a card read [Unknown Error]; value: its index, the last card by default",
    "nvml-unknown-error": "NVML answers Unknown Error (rc 255)",
    "containers-lost-devices": "NVML answers Unknown Error in containers, as after daemon-reload (rc 255)",
    "power-unsupported": "-pl is not supported: a warning and rc 0, as on laptops",
    "clocks-unsupported": "-lgc is not supported",
    "clocks-ignored": "-lgc is accepted and not honored",
    "secure-boot": "Secure Boot is on: unsigned modules are rejected",
    "no-efi": "mokutil: EFI variables are not supported on this system",
    "dkms-build": "the module does not build; value: how the versions begin that do not (default: all)",
}


def read() -> Dict[str, Any]:
    """The faults in force, with their values."""
    return dict(files.read_json(paths.FAULTS) or {})


def active(name: str) -> bool:
    """Whether the fault is in force."""
    return name in read()


def concerns(name: str, version: str) -> bool:
    """Whether the fault is in force for a version: for all, or for those that begin as its value says."""
    value = read().get(name)
    return value is True or (value is not None and version.startswith(str(value)))


def card(name: str, count: int) -> Optional[int]:
    """The index of the card of `count` that a fault concerns, or None when it is not in force."""
    values = read()
    if name not in values or not count:
        return None
    value = values[name]
    return count - 1 if value is True else int(value)


def tell(name: str, value: Any) -> None:
    """Put a fault into force."""
    values = read()
    values[name] = value
    files.write(paths.FAULTS, json.dumps(values, indent=1, sort_keys=True) + "\n")


def clear(name: Optional[str] = None) -> None:
    """End one fault, or all."""
    values = {} if name is None else {key: value for key, value in read().items() if key != name}
    files.write(paths.FAULTS, json.dumps(values, indent=1, sort_keys=True) + "\n")
