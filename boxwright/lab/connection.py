"""Reaching the container engine of this machine, and understanding why it cannot be reached."""

from __future__ import annotations

import getpass
import grp
import os
import shlex
import shutil
import sys

import docker
import requests
from docker.context import ContextAPI
from docker.errors import DockerException

from boxwright.errors import UserError

SOCKET = "unix:///var/run/docker.sock"
#: Seconds to wait for one answer of the engine: making or removing something large takes a while.
ANSWER_TIMEOUT = 600
#: Set in the environment of a command that was run again as a member of the group docker.
REGROUPED = "BOXWRIGHT_LAB_REGROUPED"


def address() -> str:
    """The engine's address: DOCKER_HOST, else the docker client's context, else the usual socket."""
    if "DOCKER_HOST" in os.environ:
        return os.environ["DOCKER_HOST"]
    try:
        context = ContextAPI.get_current_context()
    except DockerException as error:
        raise UserError("the docker client's configuration cannot be read", why=str(error)) from error
    found = str(context.Host) if context and context.Host else SOCKET
    return found.replace("http+unix://", "unix://")


def connect(
    address: str, timeout: float = ANSWER_TIMEOUT
) -> tuple[docker.DockerClient | None, Exception | None]:
    """A client that has had an answer, or the operating system's reason why there is none.

    timeout: seconds for one answer. Raises UserError for an engine that is not on this machine.
    """
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


def not_allowed(address: str) -> UserError:
    """What a user is told who may not use the engine."""
    user = getpass.getuser()
    return UserError(
        f"user {user} may not use the container engine at {address}",
        ways_out=(f"sudo usermod -aG docker {user}   and log in again", "run the command as root"),
    )


def regroup() -> None:
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
