"""The Docker daemon as a service: its version, trying a configuration, restarting it."""

from __future__ import annotations

import re
import time
from typing import Any, Dict, NamedTuple, Optional

from ansible.module_utils import systemctl
from ansible.module_utils.command import Result, run
from ansible.module_utils.docker_api import Docker, DockerError
from ansible.module_utils.docker_unit import UNIT, DaemonUnit

#: Settings that a running daemon takes over on SIGHUP (dockerd reference, "Configuration reload behavior").
#: `features` is among the documented ones, but CDI is set up at the start only.
RELOADABLE = frozenset(
    (
        "authorization-plugins",
        "debug",
        "default-runtime",
        "insecure-registries",
        "labels",
        "live-restore",
        "max-concurrent-downloads",
        "max-concurrent-uploads",
        "registry-mirrors",
        "runtimes",
        "shutdown-timeout",
    )
)
#: Those of them that a reload brings back to Docker's own value when they leave the file. Of the others it
#: takes over only what is there: one that left stays in force until the daemon's next start (moby,
#: daemon/reload.go).
RESETTING = frozenset(("max-concurrent-downloads", "max-concurrent-uploads"))
_CAUSE = re.compile(r"^(failed to start daemon|unable to configure)|level=fatal")
#: First releases with the Container Device Interface, and with `dockerd --validate`.
FIRST_WITH_CDI = 25
FIRST_WITH_VALIDATE = 23


class DaemonError(Exception):
    """The daemon is not there, refuses a configuration, or does not start."""


class Version(NamedTuple):
    """The installed daemon. major: of its version, 0 where that cannot be told."""

    text: str
    major: int

    @property
    def knows_cdi(self) -> bool:
        """Whether containers can be given CDI devices."""
        return self.major >= FIRST_WITH_CDI


def installed() -> Optional[Version]:
    """The daemon on the disk; None where there is none."""
    done: Result = run(["dockerd", "--version"])
    if done.rc == 127:
        return None
    found = re.search(r"version (?P<text>(?P<major>\d+)[^\s,]*)", done.stdout)
    return (
        Version(found.group("text"), int(found.group("major"))) if found else Version(done.stdout.strip(), 0)
    )


def check(version: Version, path: str, unit: DaemonUnit, config: Dict[str, Any]) -> None:
    """Have the daemon read a configuration without starting. Raises DaemonError with its reason.

    The unit's own options go with it: a setting in both places keeps the daemon from starting.
    """
    clashes = unit.clashes(config)
    if clashes:
        raise DaemonError(
            "%s: Docker starts with one of the two only, so take one out"
            % "; ".join(str(clash) for clash in clashes)
        )
    if version.major >= FIRST_WITH_VALIDATE:
        done: Result = run(["dockerd", "--validate", "--config-file=" + path, *unit.others], timeout=60)
        if done.rc:
            raise DaemonError(done.text)


def restart() -> None:
    """Start the daemon anew and wait until it answers. Raises DaemonError with what its log says."""
    since = time.time()
    try:
        systemctl.restart(UNIT, timeout=300)
        wait()
    except (systemctl.UnitError, DaemonError) as error:
        lines = systemctl.Journal.since("dockerd", since).new()
        causes = [line for line in lines if _CAUSE.search(line)] or lines[-3:] or [str(error)]
        raise DaemonError("\n".join(causes[-3:])) from error


def wait(seconds: float = 60) -> Dict[str, Any]:
    """Wait until the daemon answers; what `docker info` shows. Raises DaemonError."""
    until = time.monotonic() + seconds
    while True:
        try:
            found: Dict[str, Any] = Docker().info()
            return found
        except DockerError as error:
            if time.monotonic() > until:
                raise DaemonError(str(error)) from error
            time.sleep(0.5)
