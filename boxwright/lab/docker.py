"""The container engine of this machine: found, started or installed, and what it can give to a container."""

from __future__ import annotations

import getpass
import grp
import os
import shlex
import shutil
import sys
import time
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import ParamSpec, TypeVar

import docker
import requests
from docker.context import ContextAPI
from docker.errors import APIError, DockerException
from docker.models.containers import Container

from boxwright.errors import UserError
from boxwright.lab.programs import as_root, can_be_root, find, install_packages
from boxwright.lab.state import Report

P = ParamSpec("P")
T = TypeVar("T")

SOCKET = "unix:///var/run/docker.sock"
PID_FILE, LOG_FILE = Path("/var/run/docker.pid"), Path("/var/log/docker.log")
#: Seconds to wait for a started engine, and for one answer of it.
START_TIMEOUT, ANSWER_TIMEOUT = 60, 600
#: Set in the environment of a command that was run again as a member of the group docker.
REGROUPED = "BOXWRIGHT_LAB_REGROUPED"

#: Linux capabilities in the order of their bits (capabilities(7), include/uapi/linux/capability.h).
#: Later ones (PERFMON, BPF, CHECKPOINT_RESTORE) are unknown to engines of 2020, and no host needs them.
CAPABILITIES = (
    "CHOWN",
    "DAC_OVERRIDE",
    "DAC_READ_SEARCH",
    "FOWNER",
    "FSETID",
    "KILL",
    "SETGID",
    "SETUID",
    "SETPCAP",
    "LINUX_IMMUTABLE",
    "NET_BIND_SERVICE",
    "NET_BROADCAST",
    "NET_ADMIN",
    "NET_RAW",
    "IPC_LOCK",
    "IPC_OWNER",
    "SYS_MODULE",
    "SYS_RAWIO",
    "SYS_CHROOT",
    "SYS_PTRACE",
    "SYS_PACCT",
    "SYS_ADMIN",
    "SYS_BOOT",
    "SYS_NICE",
    "SYS_RESOURCE",
    "SYS_TIME",
    "SYS_TTY_CONFIG",
    "MKNOD",
    "LEASE",
    "AUDIT_WRITE",
    "AUDIT_CONTROL",
    "SETFCAP",
    "MAC_OVERRIDE",
    "MAC_ADMIN",
    "SYSLOG",
    "WAKE_ALARM",
    "BLOCK_SUSPEND",
    "AUDIT_READ",
)
#: Never given to a simulated host: these reach the machine itself (its kernel modules, memory, clock, rules).
#: SYS_RESOURCE is left out so that a host is the same where the engine has it and where it has not.
WITHHELD = frozenset({"SYS_MODULE", "SYS_RAWIO", "SYS_TIME", "SYS_RESOURCE", "MAC_ADMIN", "MAC_OVERRIDE"})


def engine(report: Report, *, start: bool = True) -> docker.DockerClient:
    """A client of the machine's engine.

    With `start`, an engine that does not run is started, and one that is not installed is installed where the
    user may do so. Raises UserError when there is none to be had, or when it cannot carry a lab.
    """
    address = _address()
    client, trouble = _connect(address)
    if isinstance(trouble, PermissionError):
        _regroup()
        raise _not_allowed(address)
    if client is None and start:
        if address != SOCKET:
            raise UserError(
                f"no container engine answers at {address}",
                why=str(trouble),
                ways_out=("unset DOCKER_HOST, or `docker context use default`, to use this machine's",),
            )
        if not installed():
            _install(report)
        client = _start(report)
    if client is None:
        raise UserError(
            "no container engine answers on this machine",
            why=str(trouble),
            ways_out=("start it: sudo systemctl start docker",),
        )
    _check_fit(client)
    return client


def engine_errors(deed: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Make the engine's own errors in a function UserErrors: it could not do the deed, and why."""

    def wrap(function: Callable[P, T]) -> Callable[P, T]:
        @wraps(function)
        def wrapped(*arguments: P.args, **options: P.kwargs) -> T:
            try:
                return function(*arguments, **options)
            except APIError as error:
                raise UserError(
                    f"the engine could not {deed}", why=error.explanation or str(error)
                ) from error
            except requests.RequestException as error:
                raise UserError(f"the engine did not answer when it had to {deed}", why=str(error)) from error

        return wrapped

    return wrap


def installed() -> bool:
    """Whether this machine has a container engine, running or not."""
    return find("dockerd") is not None


def quick_client(timeout: float) -> docker.DockerClient:
    """A client of its own for questions whose answer is not waited for longer than `timeout` seconds."""
    client, trouble = _connect(_address(), timeout)
    if client is None:
        raise UserError("the container engine does not answer", why=str(trouble))
    return client


def run_in(container: Container, argv: list[str]) -> tuple[int, str]:
    """Run a command in a container; its exit status and its output (both streams)."""
    status, output = container.exec_run(argv)
    return int(status or 0), output.decode(errors="replace").strip() if isinstance(output, bytes) else ""


def bounding_capabilities() -> list[str]:
    """The capabilities that the engine can give to a container, less those withheld from simulated hosts.

    Read from the engine's own process; from this one where the engine's cannot be found.
    """
    for process in (_engine_process(), "self"):
        if process and (bits := status_field(Path(f"/proc/{process}/status"), "CapBnd")):
            return capability_names(int(bits, 16))
    raise UserError("the capabilities of the container engine cannot be read", where="/proc/self/status")


def capability_names(bits: int) -> list[str]:
    """The names of the capabilities in a set such as CapBnd of /proc/PID/status, less the withheld ones."""
    return [name for bit, name in enumerate(CAPABILITIES) if bits >> bit & 1 and name not in WITHHELD]


def status_field(file: Path, name: str) -> str | None:
    """One field of a process's status file, or None when the process or the field is not there."""
    try:
        for line in file.read_text(encoding="utf-8").splitlines():
            key, _, value = line.partition(":")
            if key == name:
                return value.strip()
    except OSError:  # the process ended meanwhile
        return None
    return None


def _engine_process() -> str | None:
    """The engine's process: by its pid file, else by its name; not one that runs inside a simulated host."""
    candidates = [PID_FILE.read_text(encoding="ascii").strip()] if PID_FILE.is_file() else []
    candidates += [path.name for path in Path("/proc").glob("[0-9]*")]
    for process in candidates:
        status = Path(f"/proc/{process}/status")
        if (
            status_field(status, "Name") == "dockerd"
            and len((status_field(status, "NSpid") or "").split()) == 1
        ):
            return process
    return None


def _address() -> str:
    if "DOCKER_HOST" in os.environ:
        return os.environ["DOCKER_HOST"]
    try:
        context = ContextAPI.get_current_context()
    except DockerException as error:
        raise UserError("the docker client's configuration cannot be read", why=str(error)) from error
    address = str(context.Host) if context and context.Host else SOCKET
    return address.replace("http+unix://", "unix://")


def _connect(
    address: str, timeout: float = ANSWER_TIMEOUT
) -> tuple[docker.DockerClient | None, Exception | None]:
    if not address.startswith("unix://"):
        raise UserError(
            f"the lab needs an engine on this machine, and the docker client is set to {address}",
            why="simulated hosts are reached at their own addresses and see directories of this machine",
            ways_out=("unset DOCKER_HOST, or `docker context use default`",),
        )
    try:
        client = docker.DockerClient(base_url=address, version="auto", timeout=int(timeout))
        client.ping()
        return client, None
    except (DockerException, requests.RequestException) as error:
        return None, _root_cause(error)


def _root_cause(error: Exception) -> Exception:
    """The operating system's error below the client's, where there is one."""
    waiting: list[BaseException] = [error]
    seen: set[int] = set()
    while waiting:
        here = waiting.pop()
        if id(here) in seen:
            continue
        seen.add(id(here))
        if isinstance(here, OSError) and here.errno and not isinstance(here, requests.RequestException):
            return here
        waiting += [
            part for part in (here.__cause__, here.__context__, *here.args) if isinstance(part, BaseException)
        ]
    return error


def _not_allowed(address: str) -> UserError:
    user = getpass.getuser()
    return UserError(
        f"user {user} may not use the container engine at {address}",
        ways_out=(f"sudo usermod -aG docker {user}   and log in again", "run the command as root"),
    )


def _regroup() -> None:
    """Run this command again as a member of group docker, where the user became one after logging in."""
    try:
        group = grp.getgrnam("docker")
    except KeyError:
        return
    newly = getpass.getuser() in group.gr_mem and group.gr_gid not in os.getgroups()
    sg = shutil.which("sg")
    if newly and sg and REGROUPED not in os.environ:
        sys.stdout.flush()
        command = shlex.join([sys.executable, *sys.orig_argv[1:]])
        os.execve(sg, [sg, "docker", "-c", f"exec {command}"], dict(os.environ, **{REGROUPED: "1"}))


def _install(report: Report) -> None:
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


def _mounted_kinds() -> list[str]:
    mounts = Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()
    return [line.split()[2] for line in mounts]


def _start(report: Report) -> docker.DockerClient:
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
        client, trouble = _connect(SOCKET)
        if client is not None:
            return client
        if isinstance(trouble, PermissionError):
            _regroup()
            raise _not_allowed(SOCKET)
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


def _log_tail() -> str:
    """The last lines that an engine started without systemd wrote, if it did."""
    try:
        lines = LOG_FILE.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    return "\n  ".join(lines[-5:])


def _check_fit(client: docker.DockerClient) -> None:
    """Refuse engines whose containers cannot boot systemd or cannot be reached by their address."""
    try:
        info = client.info()
    except (APIError, requests.RequestException) as error:
        raise UserError("the container engine does not tell about itself", why=str(error)) from error
    if why := unfit(info):
        raise UserError(
            "this container engine cannot carry the lab",
            why=why,
            ways_out=("use the distribution's Docker Engine on Linux (package docker.io)",),
        )


def unfit(info: dict[str, object]) -> str | None:
    """Why an engine that describes itself so cannot carry a lab; None when it can."""
    told = info.get("SecurityOptions")
    options = {
        str(option).partition("name=")[2].split(",")[0] for option in (told if isinstance(told, list) else [])
    }
    if "rootless" in options:
        return "it runs rootless, so its containers cannot boot systemd with an engine of their own"
    if "userns" in options:
        return "it maps the users of containers (userns-remap), so its containers cannot boot systemd"
    if info.get("OperatingSystem") == "Docker Desktop":
        return "its containers live in a virtual machine and cannot be reached by their addresses"
    if info.get("OSType", "linux") != "linux":
        return f"its containers are of type {info['OSType']}"
    return None
