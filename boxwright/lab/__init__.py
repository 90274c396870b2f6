"""The lab: simulated GPU hosts in containers, reached over real SSH, with all that they fetch close by."""

from __future__ import annotations

from boxwright.lab.hosts import HostRequest
from boxwright.lab.lifecycle import control_depot, down, earlier_engine, up
from boxwright.lab.status import HostStatus, LabStatus, status

__all__ = [
    "HostRequest",
    "HostStatus",
    "LabStatus",
    "control_depot",
    "down",
    "earlier_engine",
    "status",
    "up",
]
