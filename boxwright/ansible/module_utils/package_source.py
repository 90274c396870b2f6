"""A third-party package source as the host's package manager has it."""

from __future__ import annotations

from typing import Any, Dict, Union

from ansible.module_utils import package_manager
from ansible.module_utils.apt_source import AptSource
from ansible.module_utils.dnf_source import DnfSource
from ansible.module_utils.file_set import read_bytes
from ansible.module_utils.signing_key import SourceError

Source = Union[AptSource, DnfSource]
SOURCES = {"apt": AptSource, "dnf": DnfSource}


def source_of(params: Dict[str, Any], root: str) -> Source:
    """The source. params: those of the module package_source. Raises SourceError."""
    manager = package_manager.name(root)
    if manager not in SOURCES:
        raise SourceError("this host has no package manager that Boxwright knows (%s)" % " or ".join(SOURCES))
    source: Source = SOURCES[manager](params, root)
    return source


def remove_source(name: str, root: str) -> None:
    """Take a source of ours away again, and what came with it. Raises SourceError."""
    source = source_of({"name": name, "state": "absent", "allow_sha1": False}, root)
    after = source.desired()
    source.apply({path: read_bytes(path) for path in after}, after)
