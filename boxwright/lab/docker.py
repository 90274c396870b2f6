"""The container engine of this machine: found, started or installed, and what it can give to a container."""

from __future__ import annotations

import getpass
import grp
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import docker
import requests
from docker.context import ContextAPI
from docker.errors import APIError, DockerException
from docker.models.containers import Container

from boxwright.errors import UserError
from boxwright.lab.programs import as_root, can_be_root, install_packages
from boxwright.lab.state import Report

SOCKET = "unix:///var/run/docker.sock"
#: Seconds to wait for a started engine, and for one answer of it.
START_TIMEOUT, ANSWER_TIMEOUT = 60, 600
#: Set in the environment of a command that was run again as a member of the group docker.
REGROUPED = "BOXWRIGHT_LAB_REGROUPED"

#: Linux capabilities in the order of their bits (capabilities(7), include/uapi/linux/capability.h).
#: Later ones (PERFMON, BPF, CHECKPOINT_RESTORE) are unknown to engines of 2020, and no host needs them.
CAPABILITIES = (
    "CHOWN", "DAC_OVERRIDE", "DAC_READ_SEARCH", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID", "SETPCAP",
    "LINUX_IMMUTABLE", "NET_BIND_SERVICE", "NET_BROADCAST", "NET_ADMIN", "NET_RAW", "IPC_LOCK", "IPC_OWNER",
    "SYS_MODULE", "SYS_RAWIO", "SYS_CHROOT", "SYS_PTRACE", "SYS_PACCT", "SYS_ADMIN", "SYS_BOOT", "SYS_NICE",
    "SYS_RESOURCE", "SYS_TIME", "SYS_TTY_CONFIG", "MKNOD", "LEASE", "AUDIT_WRITE", "AUDIT_CONTROL", "SETFCAP",
    "MAC_OVERRIDE", "MAC_ADMIN", "SYSLOG", "WAKE_ALARM", "BLOCK_SUSPEND", "AUDIT_READ",
)
#: Never given to a simulated host: these reach the machine itself (its kernel modules, memory and clock).
#: SYS_RESOURCE is left out so that a host is the same where the engine has it and where it has not.
WITHHELD = frozenset({"SYS_MODULE", "SYS_RAWIO", "SYS_TIME", "SYS_RESOURCE", "MAC_ADMIN", "MAC_OVERRIDE"})


def engine(report: Report, *, start: bool = True) -> docker.DockerClient:
    """A client of the machine's engine.

    With `start`, an engine that does not run is started, and one that is not installed is installed where the
    user may do so. Raises UserError when there is none to be had, or when it cannot carry a lab.
    """
    address = _address()
    client, trouble = _connect(address)
    if client is None and start:
        if isinstance(trouble, PermissionError):
            _regroup()
            raise _not_allowed(address)
        if address != SOCKET:
            raise UserError(f"no container engine answers at {address}", why=str(trouble),
                            ways_out=("unset DOCKER_HOST (or choose another docker context) to use this machine's engine",))
        if shutil.which("dockerd") is None and not Path("/usr/sbin/dockerd").exists():
            _install(report)
        client, trouble = _start(report)
    if client is None:
        if isinstance(trouble, PermissionError):
            raise _not_allowed(address)
        raise UserError("no container engine answers on this machine", why=str(trouble),
                        ways_out=("start it: sudo systemctl start docker",))
    _check_fit(client)
    return client


def quick_client(timeout: float) -> docker.DockerClient:
    """A client of its own for questions whose answer is not waited for longer than `timeout` seconds."""
    client, trouble = _connect(_address(), timeout)
    if client is None:
        raise UserError("the container engine does not answer", why=str(trouble))
    return client


def bounding_capabilities() -> list[str]:
    """The capabilities that the engine can give to a container, less those withheld from simulated hosts.

    Read from the engine's own process; from this one where the engine's cannot be found.
    """
    return capability_names(_bounding_set())


def capability_names(bits: int) -> list[str]:
    """The names of the capabilities in a set such as CapBnd of /proc/PID/status, less the withheld ones."""
    return [name for bit, name in enumerate(CAPABILITIES) if bits >> bit & 1 and name not in WITHHELD]


def _bounding_set() -> int:
    for process in (_engine_process(), "self"):
        if process is None:
            continue
        for line in Path(f"/proc/{process}/status").read_text(encoding="ascii").splitlines():
            if line.startswith("CapBnd:"):
                return int(line.split()[1], 16)
    raise UserError("the capabilities of the container engine cannot be read", where="/proc/self/status")


def _engine_process() -> str | None:
    for comm in Path("/proc").glob("[0-9]*/comm"):
        try:
            if comm.read_text(encoding="utf-8").strip() == "dockerd":
                return comm.parent.name
        except OSError:  # the process ended meanwhile
            continue
    return None


def _address() -> str:
    if "DOCKER_HOST" in os.environ:
        return os.environ["DOCKER_HOST"]
    try:
        context = ContextAPI.get_current_context()
    except DockerException as error:
        raise UserError("the docker client's configuration cannot be read", why=str(error)) from error
    return str(context.Host) if context and context.Host else SOCKET


def _connect(address: str, timeout: float = ANSWER_TIMEOUT) -> tuple[docker.DockerClient | None, Exception | None]:
    address = address.replace("http+unix://", "unix://")
    if not address.startswith("unix://"):
        raise UserError(f"the lab needs an engine on this machine, and the docker client is set to {address}",
                        why="simulated hosts are reached at their own addresses and see directories of this machine",
                        ways_out=("unset DOCKER_HOST, or `docker context use default`",))
    try:
        client = docker.DockerClient(base_url=address, version="auto", timeout=int(timeout))
        client.ping()
        return client, None
    except (DockerException, requests.RequestException) as error:
        return None, _root_cause(error)


def _root_cause(error: BaseException) -> Exception:
    """The operating system's error below the client's, where there is one."""
    seen: list[BaseException] = [error]
    while seen:
        here = seen.pop()
        if isinstance(here, OSError) and here.errno and not isinstance(here, requests.RequestException):
            return here
        seen += [part for part in (here.__cause__, here.__context__) if part]
        seen += [part for part in here.args if isinstance(part, BaseException)]
    return error if isinstance(error, Exception) else DockerException(str(error))


def _not_allowed(address: str) -> UserError:
    user = getpass.getuser()
    return UserError(f"user {user} may not use the container engine at {address}",
                     ways_out=(f"sudo usermod -aG docker {user}   and log in again", "run the command as root"))


def _regroup() -> None:
    """Run this command again as a member of group docker, where the user is one since after logging in."""
    try:
        group = grp.getgrnam("docker")
    except KeyError:
        return
    member = getpass.getuser() in group.gr_mem and group.gr_gid not in os.getgroups()
    sg = shutil.which("sg")
    if member and sg and REGROUPED not in os.environ:
        sys.stdout.flush()
        command = shlex.join([sys.executable, *sys.orig_argv[1:]])
        os.execve(sg, [sg, "docker", "-c", f"exec {command}"], dict(os.environ, **{REGROUPED: "1"}))


def _install(report: Report) -> None:
    install_packages(["docker.io"], report, why="the lab's hosts are containers, and this machine has no engine",
                     otherwise="install Docker Engine: https://docs.docker.com/engine/install/")
    user = getpass.getuser()
    if os.geteuid() != 0:
        report(f"lab: adding {user} to group docker, whose members may use the engine")
        as_root(["usermod", "-aG", "docker", user], what=f"add {user} to group docker")


def _start(report: Report) -> tuple[docker.DockerClient | None, Exception | None]:
    ways: Sequence[list[str]] = ([["systemctl", "start", "docker"]] if Path("/run/systemd/system").is_dir()
                                 else [["service", "docker", "start"]])
    if not can_be_root():
        return None, UserError("it is installed but does not run, and starting it takes root")
    report("lab: starting the container engine")
    for way in ways:
        as_root(way, what="start the container engine")
    deadline = time.monotonic() + START_TIMEOUT
    while True:
        client, trouble = _connect(SOCKET)
        if client is not None:
            return client, None
        if isinstance(trouble, PermissionError):
            _regroup()
            return None, trouble
        if time.monotonic() > deadline:
            return None, UserError(f"started, but silent for {START_TIMEOUT} s", why=_engine_log() or str(trouble))
        time.sleep(0.3)


def _engine_log() -> str:
    """The last lines that an engine started by `service` wrote, if it did."""
    try:
        lines = Path("/var/log/docker.log").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    return "\n  ".join(lines[-5:])


def _check_fit(client: docker.DockerClient) -> None:
    """Refuse engines whose containers cannot boot systemd or cannot be reached by their address."""
    try:
        info = client.info()
    except (APIError, requests.RequestException) as error:
        raise UserError("the container engine does not tell about itself", why=str(error)) from error
    options = [option.partition("name=")[2].split(",")[0] for option in info.get("SecurityOptions") or []]
    system = str(info.get("OperatingSystem", ""))
    why = ("it runs rootless, so its containers cannot boot systemd with a Docker Engine of their own"
           if "rootless" in options else
           "it maps users of containers (userns-remap), so its containers cannot boot systemd"
           if "userns" in options else
           "its containers live in a virtual machine and cannot be reached by their addresses"
           if system == "Docker Desktop" else
           f"its containers are of type {info.get('OSType')}" if info.get("OSType", "linux") != "linux" else None)
    if why:
        raise UserError("this container engine cannot carry the lab", why=why,
                        ways_out=("use the distribution's Docker Engine on Linux (package docker.io)",))


def run_in(container: Container, argv: list[str]) -> tuple[int, str]:
    """Run a command in a container; its exit status and its output (both streams)."""
    result = container.exec_run(argv)
    return int(result.exit_code), result.output.decode(errors="replace").strip()


def output_of(argv: Sequence[str], timeout: float) -> str:
    """The standard output of a command of this machine. Raises UserError when it fails."""
    done = subprocess.run(argv, capture_output=True, text=True, timeout=timeout, check=False)
    if done.returncode:
        raise UserError(f"`{shlex.join(argv)}` failed", why=done.stderr.strip() or done.stdout.strip())
    return done.stdout
