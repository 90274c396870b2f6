"""The Docker daemon as a service: its version, its unit's options, trying a configuration, restarting it."""

from __future__ import annotations

import re
import shlex
import time
from typing import Any, Dict, List, NamedTuple, Optional

from ansible.module_utils import systemctl
from ansible.module_utils.command import Result, run
from ansible.module_utils.docker_api import Docker, DockerError

UNIT = "docker.service"
DEFAULT_CONFIG = "/etc/docker/daemon.json"
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


def unit_options() -> List[str]:
    """The options on the unit's command line; what comes from a variable cannot be seen there."""
    done: Result = run(["systemctl", "show", "--property", "ExecStart", UNIT])
    found = re.search(r"argv\[\]=(?P<argv>.*?) ; ", done.stdout)
    if done.rc or not found:
        return []
    try:
        words = shlex.split(found.group("argv"))
    except ValueError:
        return []
    return [word for word in words[1:] if not word.startswith("$")]


def config_path(options: List[str]) -> str:
    """Which file the unit has the daemon read."""
    for place, word in enumerate(options):
        name, equals, value = word.partition("=")
        if name == "--config-file":
            return value if equals else "".join(options[place + 1 : place + 2]) or DEFAULT_CONFIG
    return DEFAULT_CONFIG


def check(version: Version, path: str, options: List[str], config: Dict[str, Any]) -> None:
    """Have the daemon read a configuration without starting. Raises DaemonError with its reason.

    The unit's own options go with it: a setting in both places keeps the daemon from starting.
    """
    others = _without_config_file(options)
    if version.major >= FIRST_WITH_VALIDATE:
        done: Result = run(["dockerd", "--validate", "--config-file=" + path, *others], timeout=60)
        if done.rc:
            raise DaemonError(done.text)
        return
    given = {word.lstrip("-").partition("=")[0] for word in others if word.startswith("-")}
    given = {{"H": "hosts", "host": "hosts"}.get(name, name) for name in given}
    both = sorted(given & set(config))
    if both:
        raise DaemonError("the unit's command line sets it too: %s" % ", ".join(both))


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


def _without_config_file(options: List[str]) -> List[str]:
    kept, skip = [], False
    for word in options:
        if skip or word.startswith("--config-file"):
            skip = word == "--config-file"
            continue
        kept.append(word)
    return kept
