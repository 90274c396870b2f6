"""The container engine of this machine, for the rest of the lab."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import docker
import requests
from docker.errors import APIError
from docker.models.containers import Container

from boxwright.errors import UserError
from boxwright.lab import installation
from boxwright.lab.connection import SOCKET, address, connect, not_allowed, regroup
from boxwright.lab.state import Lab, Report, locked

P = ParamSpec("P")
T = TypeVar("T")


def engine(report: Report, *, start: bool = True) -> docker.DockerClient:
    """A client of the machine's engine.

    With `start`, an engine that does not run is started, and one that is not installed is installed where the
    user may do so. Raises UserError when there is none to be had, or when it cannot carry a lab.
    """
    at = address()
    client, trouble = connect(at)
    if isinstance(trouble, PermissionError):
        regroup()
        raise not_allowed(at)
    if client is None and start:
        if at != SOCKET:
            raise UserError(
                f"no container engine answers at {at}",
                why=str(trouble),
                ways_out=("unset DOCKER_HOST, or `docker context use default`, to use this machine's",),
            )
        # Two checkouts at once must not install and start it under each other.
        with locked(Lab.here().cache / "engine.lock", report, "starting the container engine"):
            client, trouble = connect(at)
            if client is None:
                if not installation.installed():
                    installation.install(report)
                client = installation.start(report)
    if client is None:
        raise UserError(
            "no container engine answers on this machine",
            why=str(trouble),
            ways_out=("start it: sudo systemctl start docker",),
        )
    _check_fit(client)
    return client


def engine_errors(deed: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Make errors of the engine and of the disk UserErrors: what could not be done, and why."""

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
            except OSError as error:  # a full disk, most often
                raise UserError(
                    f"could not {deed}", where=error.filename and str(error.filename), why=error.strerror
                ) from error

        return wrapped

    return wrap


def quick_client(timeout: float) -> docker.DockerClient:
    """A client of its own for questions whose answer is not waited for longer than `timeout` seconds."""
    client, trouble = connect(address(), timeout)
    if client is None:
        raise UserError("the container engine does not answer", why=str(trouble))
    return client


def run_in(container: Container, argv: list[str]) -> tuple[int, str]:
    """Run a command in a container; its exit status and its output (both streams)."""
    status, output = container.exec_run(argv)
    return int(status or 0), output.decode(errors="replace").strip() if isinstance(output, bytes) else ""


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
