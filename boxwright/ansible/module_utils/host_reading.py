"""Reading a host as it is: files, PCI devices, filesystems, models on disk, releases."""

from __future__ import annotations

import errno
import glob
import json
import os
import re
from typing import Any, Dict, List, Optional

from ansible.module_utils import package_manager, safetensors_header, weight_names
from ansible.module_utils.command import run

NVIDIA_VENDOR = "0x10de"
DISPLAY_CLASS = "0x03"
#: Longest file that is read as a text, in bytes.
LONGEST_TEXT = 4 << 20
#: Our own files whose paths are the same on every host.
KEPT = (
    "/etc/apt/sources.list.d/boxwright-*.sources",
    "/etc/apt/preferences.d/boxwright-*.pref",
    "/etc/yum.repos.d/boxwright-*.repo",
    "/var/lib/boxwright/holds/*.json",
    "/etc/modprobe.d/boxwright-nvidia.conf",
    "/etc/modules-load.d/boxwright-nvidia.conf",
    "/etc/systemd/system/boxwright-gpu-tuning.service",
    "/etc/systemd/system/docker.service.d/boxwright-proxy.conf",
    "/run/boxwright/gpu-tuning.json",
    "/usr/local/share/ca-certificates/boxwright-*.crt",
    "/etc/pki/ca-trust/source/anchors/boxwright-*.pem",
)
CREDENTIALS = re.compile(r"(://)[^/\s\"]+@")
#: Longest description of a model (its index) in bytes, and the most files that a model has.
LONGEST_DESCRIPTION, MOST_MODEL_FILES = 64 << 20, 20_000


#: Where the driver's .run installer puts its programs, and where both it and packages put the libraries.
INSTALLER_PROGRAMS = (
    "/usr/bin/nvidia-uninstall",
    "/usr/bin/nvidia-installer",
    "/usr/local/bin/nvidia-uninstall",
    "/opt/bin/nvidia-uninstall",
)
DRIVER_LIBRARIES = tuple(
    "%s/%s.so.[0-9][0-9][0-9].*" % (directory, name)
    for directory in (
        "/usr/lib/x86_64-linux-gnu",
        "/usr/lib/aarch64-linux-gnu",
        "/usr/lib64",
        "/usr/lib",
        "/usr/local/lib",
    )
    for name in ("libcuda", "libnvidia-ml")
)


def driver_files(root: str = "") -> List[str]:
    """Programs and libraries of a driver on the host, of whatever origin."""
    found = [path for path in INSTALLER_PROGRAMS if os.path.exists(root + path)]
    for pattern in DRIVER_LIBRARIES:
        found += [path[len(root) :] for path in sorted(glob.glob(root + pattern))]
    return found


def unowned(paths: List[str]) -> List[str]:
    """Those files that no package brought, as the host's package manager says."""
    if not paths:
        return []
    if package_manager.name() == "apt":
        told = run(["dpkg-query", "-S", *paths], timeout=30)
        owned = {line.rpartition(": ")[2].strip() for line in told.stdout.splitlines()}
    elif package_manager.name() == "dnf":
        told = run(["rpm", "-qf", *paths], timeout=30)
        strange = re.findall(r"^file (.+) is not owned by any package$", told.stdout, re.MULTILINE)
        owned = {path for path in paths if path not in strange}
    else:
        return []
    if told.rc in (124, 126, 127):
        return []
    # A directory that is a link since /usr was merged is known to packages by either name.
    return [path for path in paths if path not in owned and path.replace("/usr/lib", "/lib", 1) not in owned]


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
    """A model on disk: files with sizes, config.json, tensors by its headers; None: no such directory.

    What cannot be read, is not whole or no model's is told by error (`invalid`) and detail.
    """
    if not os.path.isdir(directory):
        return None
    found: Dict[str, Any] = {"directory": directory, "files": [], "tensors": None, "config": None}
    try:
        found["files"] = [
            {"path": name, "size": os.path.getsize(os.path.join(directory, name)), "sha256": None}
            for name in _listed(directory)
        ]
        names = [entry["path"] for entry in found["files"]]
        if "config.json" in names:
            found["config"] = _json(directory, "config.json")
            if weight_names.MODELOPT in names and "quantization_config" not in found["config"]:
                found["config"]["quantization_config"] = _json(directory, weight_names.MODELOPT)
        found["loaded"] = _indexed(directory, names)
        weights = weight_names.loaded(names, found["loaded"])
        if weights:
            found["tensors"] = safetensors_header.merge([_groups(directory, name) for name in weights])
    except OSError as error:
        where = error.filename if isinstance(error.filename, str) else directory
        found.update(error="invalid", detail="%s cannot be read: %s" % (where, error.strerror or error))
    except ValueError as error:
        found.update(error="invalid", detail=str(error))
    return found


def _listed(directory: str) -> List[str]:
    """The files below a directory, links followed. Raises OSError where they cannot be listed or read.

    A hub's cache keeps links to its blobs, so a link to a file is as good as the file; one to nowhere is what
    an unfinished download leaves, and is told.
    """
    os.listdir(directory)
    found = []
    for where, folders, names in os.walk(directory):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = os.path.join(where, name)
            if os.path.islink(path) and not os.path.exists(path):
                raise OSError(errno.ENOENT, "a link to nothing", path)
            if os.path.isfile(path):
                found.append(os.path.relpath(path, directory))
        if len(found) > MOST_MODEL_FILES:
            raise OSError(
                errno.EFBIG, "more than %d files: no model's directory" % MOST_MODEL_FILES, directory
            )
    return found


def _json(directory: str, name: str) -> Dict[str, Any]:
    path = os.path.join(directory, name)
    with open(path, "rb") as stream:
        body = stream.read(LONGEST_DESCRIPTION + 1)
    if len(body) > LONGEST_DESCRIPTION:
        raise ValueError("%s is longer than any description" % path)
    try:
        value: Dict[str, Any] = weight_names.json_object(body)
        return value
    except ValueError as error:
        raise ValueError("%s %s" % (path, error)) from error


def _indexed(directory: str, names: List[str]) -> List[str]:
    if weight_names.INDEX not in names:
        return []
    path = os.path.join(directory, weight_names.INDEX)
    with open(path, "rb") as stream:
        body = stream.read(LONGEST_DESCRIPTION)
    try:
        listed: List[str] = weight_names.indexed(body)
    except ValueError as error:
        raise ValueError("%s %s" % (path, error)) from error
    missing = [name for name in listed if name not in names]
    if missing:
        raise ValueError("%s names %s, which is not there" % (path, ", ".join(missing[:3])))
    return listed


def _groups(directory: str, name: str) -> List[Dict[str, Any]]:
    path = os.path.join(directory, name)
    size = os.path.getsize(path)
    with open(path, "rb") as stream:
        try:
            end = safetensors_header.header_end(stream.read(len(safetensors_header.POINTER)), size)
            stream.seek(safetensors_header.LENGTH_BYTES)
            header = stream.read(end - safetensors_header.LENGTH_BYTES)
            groups: List[Dict[str, Any]] = safetensors_header.groups(header, size - end)
            return groups
        except ValueError as error:
            raise ValueError("%s %s" % (path, error)) from error


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


def intact_record(directory: str) -> Optional[str]:
    """The store's own record of a directory; None where there is none, or a file is not as it says.

    As the role model_weights looks at it: size, time and inode of each file, without reading any.
    """
    record = text(os.path.join(directory, ".boxwright-manifest.json"))
    try:
        for entry in json.loads(record or "null")["files"]:
            state = os.stat(os.path.join(directory, entry["path"]))
            found = {"size": state.st_size, "mtime_ns": state.st_mtime_ns, "inode": state.st_ino}
            if any(entry.get(name, value) != value for name, value in found.items()):
                return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return record


def kept(config_dir: str) -> Dict[str, str]:
    """The texts of our own files, by path; credentials in addresses are masked, for facts are shown."""
    patterns = [
        *KEPT,
        os.path.join(glob.escape(config_dir), "container-runtime.json"),
        os.path.join(glob.escape(config_dir), "docker-proxy.env"),
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
