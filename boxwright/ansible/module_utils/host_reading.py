"""Reading a host as it is: files, PCI devices, filesystems, models on disk, releases."""

from __future__ import annotations

import glob
import json
import os
import re
from typing import Any, Dict, List, Optional

from ansible.module_utils import safetensors_header

NVIDIA_VENDOR = "0x10de"
DISPLAY_CLASS = "0x03"
#: Longest file that is read as a text, in bytes.
LONGEST_TEXT = 4 << 20
#: Our own files whose paths are the same on every host.
KEPT = (
    "/etc/apt/sources.list.d/boxwright-*.sources",
    "/etc/apt/preferences.d/boxwright-*.pref",
    "/var/lib/boxwright/holds/*.json",
    "/etc/modprobe.d/boxwright-nvidia.conf",
    "/etc/modules-load.d/boxwright-nvidia.conf",
    "/etc/systemd/system/boxwright-gpu-tuning.service",
    "/etc/systemd/system/docker.service.d/boxwright-proxy.conf",
    "/run/boxwright/gpu-tuning.json",
)
CREDENTIALS = re.compile(r"(://)[^/@\s\"]+@")


def text(path: str) -> Optional[str]:
    """A file's text, or None where it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            return stream.read(LONGEST_TEXT)
    except OSError:
        return None


def binary_hex(path: str) -> Optional[str]:
    """A small file's bytes as hexadecimal digits, or None."""
    try:
        with open(path, "rb") as stream:
            return stream.read(64).hex()
    except OSError:
        return None


def cards() -> List[Dict[str, Any]]:
    """NVIDIA display devices on the PCI bus in bus order: known before any driver is there."""
    found = []
    for device in sorted(glob.glob("/sys/bus/pci/devices/*")):
        value = {
            name: (text(os.path.join(device, name)) or "").strip()
            for name in (
                "vendor",
                "device",
                "class",
                "subsystem_vendor",
                "subsystem_device",
                "numa_node",
                "current_link_width",
                "max_link_width",
            )
        }
        if value["vendor"] == NVIDIA_VENDOR and value["class"].startswith(DISPLAY_CLASS):
            driver = os.path.join(device, "driver")
            value["bus"] = os.path.basename(device)
            value["driver"] = os.path.basename(os.path.realpath(driver)) if os.path.exists(driver) else ""
            found.append(value)
    return found


def filesystem(path: str) -> Dict[str, Any]:
    """Where a path lies, or would lie once it is made: mount point, device, size and free bytes."""
    existing = os.path.abspath(path)
    while not os.path.exists(existing):
        existing = os.path.dirname(existing)
    existing = os.path.realpath(existing)
    device = os.stat(existing).st_dev
    mount = existing
    while mount != "/" and os.stat(os.path.dirname(mount)).st_dev == device:
        mount = os.path.dirname(mount)
    room = os.statvfs(existing)
    return {
        "path": path,
        "mount": mount,
        "device": str(device),
        "size": room.f_blocks * room.f_frsize,
        "available": room.f_bavail * room.f_frsize,
        "read_only": bool(room.f_flag & os.ST_RDONLY),
    }


def model_directory(directory: str) -> Optional[Dict[str, Any]]:
    """A model on disk: files with sizes, config.json, tensors by its headers; None: no such directory."""
    if not os.path.isdir(directory):
        return None
    files = []
    for where, folders, names in os.walk(directory):
        folders.sort()
        files += [os.path.relpath(os.path.join(where, name), directory) for name in sorted(names)]
    sizes = [
        {"path": name, "size": os.path.getsize(os.path.join(directory, name)), "sha256": None}
        for name in files
        if os.path.exists(os.path.join(directory, name))
    ]
    found: Dict[str, Any] = {"directory": directory, "files": sizes, "tensors": None}
    try:
        found["config"] = json.loads(text(os.path.join(directory, "config.json")) or "null")
        weights = [name for name in files if name.endswith(".safetensors")]
        if weights:
            parts = [_groups(os.path.join(directory, name)) for name in weights]
            found["tensors"] = safetensors_header.merge(parts)
    except (OSError, ValueError) as error:
        found.update(error="invalid", detail="%s: %s" % (directory, error))
    return found


def _groups(path: str) -> List[Dict[str, Any]]:
    with open(path, "rb") as stream:
        length = safetensors_header.header_length(stream.read(safetensors_header.LENGTH_BYTES))
        if length is None:
            raise ValueError("%s is no safetensors file" % os.path.basename(path))
        groups: List[Dict[str, Any]] = safetensors_header.groups(stream.read(length))
        return groups


def releases(root: str) -> List[Dict[str, Any]]:
    """Every `<root>/<deployment>/<id>/release.json`, and whether the link `current` points to it."""
    found = []
    for folder in sorted(glob.glob(os.path.join(glob.escape(root), "*"))):
        current = os.path.basename(os.path.realpath(os.path.join(folder, "current")))
        for record in sorted(glob.glob(os.path.join(glob.escape(folder), "*", "release.json"))):
            name = os.path.basename(os.path.dirname(record))
            if name == "current":
                continue
            found.append(
                {
                    "deployment": os.path.basename(folder),
                    "id": name,
                    "current": name == current,
                    "record": text(record),
                }
            )
    return found


def kept(config_dir: str) -> Dict[str, str]:
    """The texts of our own files, by path; credentials in addresses are masked, for facts are shown."""
    patterns = [
        *KEPT,
        os.path.join(glob.escape(config_dir), "container-runtime.json"),
    ]
    found = {}
    for path in sorted(path for pattern in patterns for path in glob.glob(pattern)):
        content = text(path)
        if content is not None:
            found[path] = masked(content)
    return found


def masked(content: str) -> str:
    """A text with the names and passwords in its addresses masked."""
    return CREDENTIALS.sub(r"\1***@", content)


def cdi_driver(path: str) -> Optional[str]:
    """The driver version whose libraries a CDI specification names, or None."""
    found = re.search(r"/lib(?:cuda|nvidia-ml)\.so\.([0-9]+(?:\.[0-9]+)+)", text(path) or "")
    return found.group(1) if found else None
