"""Container Device Interface: what the NVIDIA container toolkit makes of this host's cards."""

from __future__ import annotations

import glob
import os
import re
from typing import List, NamedTuple, Optional

from ansible.module_utils.command import Result, read, run

KIND = "nvidia.com/gpu"
#: The toolkit's own static specification. Its refresh service (from 1.18) keeps one in /run/cdi, which goes
#: first.
SPEC_PATH = "/etc/cdi/nvidia.yaml"
REFRESHED = "/run/cdi"


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


def driver(text: Optional[str]) -> Optional[str]:
    """The driver version whose libraries a specification names."""
    found = re.search(r"/lib(?:cuda|nvidia-ml)\.so\.([0-9]+(?:\.[0-9]+)+)", text or "")
    return found.group(1) if found else None


def _describing(folder: str) -> List[str]:
    """Specifications of a directory that describe cards."""
    paths = sorted(path for path in glob.glob(os.path.join(folder, "*")) if path.endswith((".yaml", ".json")))
    kind = re.compile(r'^\s*"?kind"?: *"?%s"?,?\s*$' % re.escape(KIND), re.MULTILINE)
    return [path for path in paths if kind.search(read(path) or "")]


def rivals(path: str) -> List[str]:
    """Other specifications beside one that describe cards too: an engine takes no device that two name."""
    return [
        one for one in _describing(os.path.dirname(path)) if os.path.realpath(one) != os.path.realpath(path)
    ]


def outdated(text: str) -> List[str]:
    """Refreshed specifications, which go before ours, of another driver than one that was just generated."""
    return [path for path in _describing(REFRESHED) if driver(read(path)) != driver(text)]


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
