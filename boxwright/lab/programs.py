"""Programs of this machine that the lab needs: found, or installed as packages where the user may."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import threading
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from boxwright.errors import UserError
from boxwright.lab.state import Lab, Report, Stopwatch, locked

#: Seconds that an installation of packages may take.
INSTALL_TIMEOUT = 900
#: Seconds that apt waits for another one of it (unattended-upgrades, say) to end.
APT_LOCK_TIMEOUT = 300
#: Several images are made at once; what they all need is installed by the first of them.
_INSTALLING = threading.Lock()


def program(name: str, package: str, report: Report, why: str) -> str:
    """The path of a program, whose package is installed first where it is missing and the user may install.

    Raises UserError when it is not to be had.
    """
    with _INSTALLING:
        if found := find(name):
            return found
        install_packages([package], report, why=why, otherwise=f"install the package {package}")
    if found := find(name):
        return found
    raise UserError(f"package {package} was installed, but there is no program {name}")


def find(name: str) -> str | None:
    """The path of a program in PATH or in the administrator's directories."""
    return shutil.which(name) or shutil.which(name, path="/usr/local/sbin:/usr/sbin:/sbin")


@lru_cache(maxsize=1)
def can_be_root() -> bool:
    """Whether commands can be run as root without asking for a password."""
    if os.geteuid() == 0:
        return True
    sudo = shutil.which("sudo")
    return (
        bool(sudo)
        and subprocess.run([str(sudo), "-n", "true"], capture_output=True, check=False).returncode == 0
    )


def as_root(argv: Sequence[str], *, what: str, timeout: float = 120) -> str:
    """Run a command as root, by sudo for other users; its standard output.

    what: the deed in words, for messages. Raises UserError with the command's last lines when it fails.
    """
    command = [*([] if os.geteuid() == 0 else ["sudo", "-n"]), *argv]
    environment = dict(os.environ, DEBIAN_FRONTEND="noninteractive", LC_ALL="C")
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=timeout, check=False, env=environment
        )
    except FileNotFoundError as error:
        raise UserError(f"could not {what}: there is no program {error.filename}") from error
    except subprocess.TimeoutExpired as error:
        raise UserError(f"could not {what}: no end after {timeout:.0f} s", why=shlex.join(command)) from error
    if done.returncode:
        tail = (done.stderr.strip() or done.stdout.strip()).splitlines()[-5:]
        raise UserError(
            f"could not {what}: `{shlex.join(command)}` ended with {done.returncode}",
            why="\n  ".join(tail) or None,
        )
    return done.stdout


def install_packages(packages: Sequence[str], report: Report, *, why: str, otherwise: str) -> None:
    """Install Debian packages, saying so first.

    why: what they are for; otherwise: what the user can do where this machine has no apt or the user no root.
    Raises UserError when they cannot be installed.
    """
    names = ", ".join(packages)
    program_path = shutil.which("apt-get")
    if program_path is None:
        raise UserError(f"{names}: missing, and this system has no apt-get", why=why, ways_out=(otherwise,))
    if not can_be_root():
        raise UserError(
            f"{names}: missing, and installing takes root or sudo without a password",
            why=why,
            ways_out=(f"sudo apt-get install {' '.join(packages)}", otherwise),
        )
    # apt waits for another one's packages, not for another one's lists: two checkouts take turns.
    with locked(Lab.here().cache / "packages.lock", report, "installing packages"):
        _install(packages, program_path, report, why=why)


def _install(packages: Sequence[str], program_path: str, report: Report, *, why: str) -> None:
    names = ", ".join(packages)
    report(f"lab: installing {names} ({why})")
    watch = Stopwatch()
    apt = [program_path, "-o", f"DPkg::Lock::Timeout={APT_LOCK_TIMEOUT}"]
    install = [*apt, "install", "-y", "--no-install-recommends", *packages]
    if not any(Path("/var/lib/apt/lists").glob("*_Packages*")):
        as_root([*apt, "update"], what="read the package lists", timeout=INSTALL_TIMEOUT)
        as_root(install, what=f"install {names}", timeout=INSTALL_TIMEOUT)
    else:
        try:
            as_root(install, what=f"install {names}", timeout=INSTALL_TIMEOUT)
        except UserError:  # most often lists too old to name what the mirror has
            as_root([*apt, "update"], what="read the package lists", timeout=INSTALL_TIMEOUT)
            as_root(install, what=f"install {names}", timeout=INSTALL_TIMEOUT)
    report(f"lab: installed {names} in {watch}")
