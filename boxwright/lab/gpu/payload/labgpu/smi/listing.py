"""-L, --version and the table that nvidia-smi prints when asked nothing."""

from __future__ import annotations

import sys
import time
from typing import List

from .. import rig
from .driver import Driver, lost_line
from .query import processes
from .reading import take


def cards(driver: Driver) -> int:
    """`nvidia-smi -L`."""
    for card in driver.cards:
        print("GPU %d: %s (UUID: %s)" % (card.index, card.name, card.uuid))
    for card in driver.lost:
        print(lost_line(card), file=sys.stderr)
    return 0


def versions(driver: Driver) -> int:
    """`nvidia-smi --version`."""
    for name, value in (
        ("NVIDIA-SMI version", driver.version),
        ("NVML version", driver.nvml),
        ("DRIVER version", driver.version),
        ("CUDA Version", driver.cuda),
    ):
        print("%-20s: %s" % (name, value))
    return 0


def table(driver: Driver, chosen: List[rig.Card]) -> int:
    """The summary. Its columns have been these since branch 550."""
    for card in driver.lost:
        print(lost_line(card))
    if driver.lost:
        return 15
    left, middle, right = "-" * 41, "-" * 24, "-" * 22
    rule = "+%s+%s+%s+" % (left, middle, right)
    print(time.strftime("%a %b %e %H:%M:%S %Y       "))
    print("+%s+" % ("-" * 89))
    print(
        "| %-33s %-32s %-20s |"
        % (
            "NVIDIA-SMI " + driver.version,
            "Driver Version: " + driver.version,
            "CUDA Version: " + driver.cuda,
        )
    )
    print(rule)
    print("| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |")
    print("| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |")
    print("|%41s|%24s|%21s |" % ("", "", "MIG M."))
    print("|%s+%s+%s|" % ("=" * 41, "=" * 24, "=" * 22))
    for card in chosen:
        now = take(card)
        print(
            "|%4d  %-31s%3s |   %16s Off |%21s |"
            % (card.index, card.name[:30], "On" if now.persistence else "Off", card.smi_bus_id, "N/A")
        )
        print(
            "|%3d%%  %3dC  %4s %14dW / %4dW |%8dMiB / %6dMiB |%7d%%      Default |"
            % (
                44 if now.busy else 0,
                now.temperature,
                now.pstate,
                round(now.power),
                round(now.power_limit),
                now.used,
                card.memory_total,
                now.utilization,
            )
        )
        print("|%41s|%24s|%21s |" % ("", "", "N/A"))
        print(rule)
    print()
    print("+%s+" % ("-" * 89))
    print("| %-87s |" % "Processes:")
    print("|  GPU   GI   CI              PID   Type   Process name                        GPU Memory |")
    print("|        ID   ID                                                               Usage      |")
    print("|%s|" % ("=" * 89))
    running = processes(chosen)
    for card, pid, process, memory in running:
        print("|%5d   N/A  N/A %16d      C   %-32s %11dMiB |" % (card.index, pid, process[:32], memory))
    if not running:
        print("|  %-86s |" % "No running processes found")
    print("+%s+" % ("-" * 89))
    return 0
