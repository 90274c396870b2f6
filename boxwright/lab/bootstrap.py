"""Making root directories of a distribution: from an image of a registry, or from packages by mmdebstrap.

Where the engine can reach a registry, the system's base is pulled; elsewhere mmdebstrap makes it. Both get
the same packages and the same set-up script, and end as the same kind of file: a tar archive.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import docker
import requests
from docker.errors import APIError, DockerException, ImageNotFound
from docker.models.containers import Container

from boxwright.errors import UserError
from boxwright.lab.docker import quick_client
from boxwright.lab.payload import Payload, archive
from boxwright.lab.programs import as_root, can_be_root, install_packages, program
from boxwright.lab.state import Report
from boxwright.lab.surroundings import apt_proxy, certificates, proxy_environment

#: Another mirror of the distribution's packages can be named in this variable of the environment.
MIRROR_VARIABLE = "BOXWRIGHT_LAB_MIRROR"
MIRROR, SECURITY_MIRROR = "http://deb.debian.org/debian", "http://deb.debian.org/debian-security"
#: The distribution's keys: the same path on this machine and in what is made.
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
#: Seconds that making a root directory may take, and that a registry has to answer whether it has an image.
MAKE_TIMEOUT, REGISTRY_TIMEOUT = 1200, 10
CHUNK = 1 << 20

INSTALL = """\
set -eu
export DEBIAN_FRONTEND=noninteractive
printf '#!/bin/sh\\nexit 101\\n' > /usr/sbin/policy-rc.d
chmod 755 /usr/sbin/policy-rc.d
apt-get update -q
apt-get install -q -y --no-install-recommends -o Dpkg::Options::=--force-unsafe-io "$@"
apt-get clean
rm -rf /var/lib/apt/lists/* /usr/sbin/policy-rc.d
sh /setup.sh
"""


def registry_has(reference: str) -> bool:
    """Whether the engine reaches a registry with the image: a short look, since many machines reach none."""
    client = quick_client(REGISTRY_TIMEOUT)
    try:
        client.images.get_registry_data(reference)
    except (DockerException, requests.RequestException):
        return False
    finally:
        client.close()
    return True


@contextmanager
def pulled(client: docker.DockerClient, reference: str) -> Iterator[None]:
    """Have an image of a registry for a while: what was not there before is gone afterwards."""
    try:
        client.images.get(reference)
        own = False
    except ImageNotFound:
        repository, tag = reference.split(":")
        try:
            client.images.pull(repository, tag)
        except APIError as error:
            raise UserError(f"{reference} could not be pulled", why=error.explanation) from error
        own = True
    try:
        yield
    finally:
        if own:
            client.images.remove(reference)


def install_into(
    client: docker.DockerClient,
    labels: Mapping[str, str],
    base: str,
    packages: Sequence[str],
    setup: str,
    target: Path,
) -> None:
    """Install packages in a container of `base`, run the set-up, and write its root directory to `target`.

    Raises UserError with the last lines of what was said when it fails.
    """
    files = [
        Payload.text("/install.sh", INSTALL),
        Payload.text("/setup.sh", setup),
        *certificates(),
        *apt_proxy(),
    ]
    container = client.containers.create(
        base,
        ["/bin/sh", "/install.sh", *packages],
        network_mode="host",
        labels=dict(labels),
        user="root",
        environment=proxy_environment(),
    )
    try:
        container.put_archive("/", archive(files))
        container.start()
        status = int(container.wait(timeout=MAKE_TIMEOUT)["StatusCode"])
        if status:
            tail = container.logs(tail=15).decode(errors="replace").strip()
            raise UserError(f"its set-up ended with {status}", why=tail.replace("\n", "\n  "))
        _export(
            client, container, target, leave_out={file.path.lstrip("/") for file in files} | {".dockerenv"}
        )
    except requests.RequestException as error:
        raise UserError(f"its set-up was not done after {MAKE_TIMEOUT} s", why=str(error)) from error
    finally:
        container.remove(force=True, v=True)


def mmdebstrap(suite: str, packages: Sequence[str], setup: str, target: Path, report: Report) -> None:
    """Make a root directory from the distribution's packages. Raises UserError with what went wrong."""
    tool = program("mmdebstrap", "mmdebstrap", report, "it makes the images of simulated hosts")
    if not KEYRING.exists():
        install_packages(
            ["debian-archive-keyring"],
            report,
            why="packages of simulated hosts are signed with its keys",
            otherwise="install the package debian-archive-keyring",
        )
    script = target.with_suffix(".setup")
    script.write_text(setup, encoding="utf-8")
    argv = [
        tool,
        "--variant=minbase",
        f"--include={','.join(packages)}",
        "--format=tar",
        "--dpkgopt=force-unsafe-io",
        '--aptopt=Acquire::Languages "none"',
        '--aptopt=APT::Install-Recommends "false"',
        # A shell splits the words of a hook, and $1 in it is the new root directory.
        f"--customize-hook=upload {shlex.quote(str(script))} /setup.sh",
        '--customize-hook=chroot "$1" /bin/sh /setup.sh',
        '--customize-hook=rm "$1"/setup.sh',
        suite,
        str(target),
        *sources(suite, os.environ.get(MIRROR_VARIABLE, "")),
    ]
    by_sudo = os.geteuid() != 0 and can_be_root()
    try:
        done = subprocess.run(
            ["sudo", "-n", *argv] if by_sudo else argv,
            capture_output=True,
            text=True,
            timeout=MAKE_TIMEOUT,
            check=False,
        )
        if done.returncode:
            said = done.stderr.splitlines()
            errors = [line for line in said if line.startswith(("E:", "W:"))] or said
            raise UserError(
                f"mmdebstrap ended with {done.returncode}",
                why="\n  ".join(errors[-8:]),
                ways_out=(
                    "see that the distribution's mirror can be reached, or name another one: "
                    f"{MIRROR_VARIABLE}=http://…/debian",
                ),
            )
        if by_sudo:
            as_root(["chown", f"{os.getuid()}:{os.getgid()}", str(target)], what="take over the image's file")
    except subprocess.TimeoutExpired as error:
        raise UserError(f"mmdebstrap was not done after {MAKE_TIMEOUT} s") from error
    finally:
        script.unlink(missing_ok=True)


def sources(suite: str, mirror: str = "") -> list[str]:
    """The package sources of a suite, with its updates. mirror: one to use instead of the distribution's."""
    main, security = (mirror, f"{mirror}-security") if mirror else (MIRROR, SECURITY_MIRROR)
    signed = f"[signed-by={KEYRING}]"
    return [
        f"deb {signed} {main} {suite} main",
        f"deb {signed} {main} {suite}-updates main",
        f"deb {signed} {security} {suite}-security main",
    ]


def _export(client: docker.DockerClient, container: Container, target: Path, leave_out: set[str]) -> None:
    """Write a container's root directory as a tar archive, less what the engine and the set-up left there."""
    raw = target.with_suffix(".raw")
    try:
        with raw.open("wb") as stream:
            for chunk in client.api.export(str(container.id), chunk_size=CHUNK):
                stream.write(chunk)
        with tarfile.open(raw) as source, tarfile.open(target, "w") as clean:
            for member in source:
                if member.name not in leave_out:
                    clean.addfile(member, source.extractfile(member) if member.isreg() else None)
    finally:
        raw.unlink(missing_ok=True)
