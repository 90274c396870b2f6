"""Container Device Interface: what the NVIDIA container toolkit makes of this host's cards."""

from __future__ import annotations

import re
from typing import List, NamedTuple

from ansible.module_utils.command import Result, run

KIND = "nvidia.com/gpu"
#: The toolkit's own static specification. Its refresh service (from 1.18) keeps one in /run/cdi, which goes
#: first.
SPEC_PATH = "/etc/cdi/nvidia.yaml"


class CdiError(Exception):
    """The toolkit could not say; the text is what it said instead."""


class Generated(NamedTuple):
    """A specification as the toolkit writes it. warnings: what it could not find."""

    text: str
    warnings: List[str]


def generate() -> Generated:
    """The specification of this host's cards now. Raises CdiError."""
    done: Result = run(["nvidia-ctk", "cdi", "generate"], timeout=120)
    if done.rc == 127:
        raise CdiError("nvidia-ctk is not installed")
    if done.rc or "devices:" not in done.stdout:
        raise CdiError(done.text or "nvidia-ctk cdi generate ended with exit status %d" % done.rc)
    warnings = [line for line in done.stderr.splitlines() if re.search(r"level=(warning|error)", line)]
    return Generated(done.stdout, warnings)


def devices() -> List[str]:
    """Names of the cards for containers, without the kind: `0`, `GPU-…`, `all`. Raises CdiError."""
    done: Result = run(["nvidia-ctk", "cdi", "list"], timeout=60)
    if done.rc == 127:
        raise CdiError("nvidia-ctk is not installed")
    if done.rc:
        raise CdiError(done.text)
    prefix = KIND + "="
    return [
        line.strip()[len(prefix) :] for line in done.stdout.splitlines() if line.strip().startswith(prefix)
    ]
