"""Having a container engine on this machine: installed and started where the user may do so."""

from __future__ import annotations

import getpass
import os
import time
from pathlib import Path

import docker

from boxwright.errors import UserError
from boxwright.lab.capabilities import PID_FILE
from boxwright.lab.connection import SOCKET, connect, not_allowed, regroup
from boxwright.lab.programs import as_root, can_be_root, find, install_packages
from boxwright.lab.state import Report

#: Where an engine that was started without systemd writes.
LOG_FILE = Path("/var/log/docker.log")
#: Seconds to wait for a started engine.
START_TIMEOUT = 60


def installed() -> bool:
    """Whether this machine has a container engine, running or not."""
    return find("dockerd") is not None


def install(report: Report) -> None:
    """Install the distribution's engine, and let the user use it. Raises UserError when that cannot be."""
    packages = ["docker.io"]
    if not any(kind.startswith("cgroup") for kind in _mounted_kinds()):
        packages.append("cgroupfs-mount")
    install_packages(
        packages,
        report,
        why="simulated hosts are containers, and this machine has no engine",
        otherwise="install Docker Engine: https://docs.docker.com/engine/install/",
    )
    if find("docker") is None:  # a package of its own since Debian 13
        install_packages(
            ["docker-cli"],
            report,
            why="to look into simulated hosts by hand",
            otherwise="install the package docker-cli",
        )
    if os.geteuid() != 0:
        user = getpass.getuser()
        report(f"lab: adding {user} to group docker, whose members may use the engine")
        as_root(["usermod", "-aG", "docker", user], what=f"add {user} to group docker")


def start(report: Report) -> docker.DockerClient:
    """Start the installed engine and wait for it. Raises UserError when it does not come up."""
    if not can_be_root():
        raise UserError(
            "the container engine is installed but does not run, and starting it takes root",
            ways_out=("sudo systemctl start docker", "sudo service docker start"),
        )
    report("lab: starting the container engine")
    if Path("/run/systemd/system").is_dir():
        as_root(["systemctl", "start", "docker"], what="start the container engine")
    else:
        _start_without_systemd()
    deadline = time.monotonic() + START_TIMEOUT
    while True:
        client, trouble = connect(SOCKET)
        if client is not None:
            return client
        if isinstance(trouble, PermissionError):
            regroup()
            raise not_allowed(SOCKET)
        if time.monotonic() > deadline:
            raise UserError(
                f"the container engine was started, but does not answer after {START_TIMEOUT} s",
                why=_log_tail() or str(trouble),
            )
        time.sleep(0.3)


def _start_without_systemd() -> None:
    """Start the engine by its init script, or directly where that wants limits that this machine forbids."""
    if not any(kind.startswith("cgroup") for kind in _mounted_kinds()) and find("cgroupfs-mount"):
        as_root(["cgroupfs-mount"], what="mount the control groups")
    try:
        as_root(["service", "docker", "start"], what="start the container engine")
    except UserError:
        as_root(
            [
                "start-stop-daemon",
                "--start",
                "--background",
                "--exec",
                find("dockerd") or "dockerd",
                "--pidfile",
                str(PID_FILE),
                "--output",
                str(LOG_FILE),
                "--",
                f"--pidfile={PID_FILE}",
            ],
            what="start the container engine",
        )


def _mounted_kinds() -> list[str]:
    mounts = Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()
    return [line.split()[2] for line in mounts]


def _log_tail() -> str:
    """The last lines that an engine started without systemd wrote, if it did."""
    try:
        lines = LOG_FILE.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    return "\n  ".join(lines[-5:])
