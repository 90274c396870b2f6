"""Reaching the simulated driver, and the recorded ways in which that fails."""

from __future__ import annotations

import dataclasses
import os
import time
from typing import List, NamedTuple, Optional, Tuple

from .. import faults, paths, rig, state

NO_DRIVER = (
    "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest "
    "NVIDIA driver is installed and running.\n"
)
#: CUDA version of the driver API by driver branch.
CUDA = {550: "12.4", 570: "12.8", 575: "12.9", 580: "13.0", 590: "13.1", 595: "13.2"}


class Failure(Exception):
    """nvidia-smi ends: the text for stdout, and the exit status."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class Driver(NamedTuple):
    """A driver that answers. cards: those visible, numbered from 0; lost: those that fell off the bus."""

    version: str
    cards: Tuple[rig.Card, ...]
    lost: Tuple[rig.Card, ...]
    rig: rig.Rig

    @property
    def branch(self) -> int:
        """The driver branch, such as 580."""
        return int(self.version.split(".", 1)[0])

    @property
    def cuda(self) -> str:
        """The newest CUDA version that the driver serves."""
        return CUDA[self.branch]

    @property
    def nvml(self) -> str:
        """The version of the NVML library, which leaves out the driver's third part."""
        return nvml_version(self.version)


def nvml_version(version: str) -> str:
    """580.105.08 -> 580.105."""
    return ".".join(version.split(".")[:2])


def connect(library: str) -> Driver:
    """The driver, for a library of that version. Raises Failure, worded and numbered as recorded."""
    told = faults.read()
    while "hang" in told:
        time.sleep(3600)
    module = state.read()["modules"].get("nvidia")
    if module is None or "no-driver" in told:
        raise Failure(9, NO_DRIVER)
    in_container = not os.path.isdir(paths.at("/usr/lib/lab-gpu"))
    if "nvml-unknown-error" in told or (in_container and "containers-lost-devices" in told):
        raise Failure(255, "Failed to initialize NVML: Unknown Error")
    if module["version"] != library or "mismatch" in told:
        raise Failure(
            18,
            "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: "
            + nvml_version(library),
        )
    this_rig = rig.load()
    visible = [
        card for card in this_rig.cards if os.path.exists(os.path.join(paths.DEV, "nvidia%d" % card.index))
    ]
    if not module.get("initialized") or "no-devices" in told or "rebar" in told or not visible:
        raise Failure(6, "No devices were found")
    broken = faults.card("gpu-lost", len(this_rig.cards))
    numbered = [(index, card) for index, card in enumerate(visible)]
    return Driver(
        module["version"],
        tuple(dataclasses.replace(card, index=index) for index, card in numbered if card.index != broken),
        tuple(dataclasses.replace(card, index=index) for index, card in numbered if card.index == broken),
        this_rig,
    )


def lost_line(card: rig.Card) -> str:
    """What is said of a card that fell off the bus."""
    return "Unable to determine the device handle for GPU%d: %s: Unknown Error" % (
        card.index,
        card.bus_id.upper(),
    )


def select(driver: Driver, wanted: Optional[str]) -> List[rig.Card]:
    """The cards that -i names: indices, UUIDs or bus addresses, separated by commas."""
    if wanted is None:
        return list(driver.cards)
    chosen = []
    for name in wanted.split(","):
        found = [
            card
            for card in driver.cards
            if name.strip().lower()
            in (
                str(card.index),
                card.uuid.lower(),
                card.smi_bus_id.lower(),
                card.bus_id.lower(),
                card.bus_id[5:].lower(),
            )
        ]
        if not found:
            raise Failure(6, "No devices were found")
        chosen += found
    return chosen
