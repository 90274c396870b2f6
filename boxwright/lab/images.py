"""The images of the lab's containers: made once from packages, kept as files in the cache, loaded into the engine.

Where the engine can reach a registry, the system's base is pulled; elsewhere mmdebstrap makes it from the
distribution's packages. Both get the same packages and the same set-up, and end as the same kind of file.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import shutil
import subprocess
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import docker
import requests
from docker.errors import DockerException, ImageNotFound
from docker.models.containers import Container

from boxwright.errors import EXIT_BAD_INPUT, UserError
from boxwright.lab.docker import engine, quick_client
from boxwright.lab.payload import Payload, archive
from boxwright.lab.programs import can_be_root, find, program
from boxwright.lab.state import Lab, Report, Stopwatch, locked

SETUP = Path(__file__).with_name("data") / "machine" / "setup.sh"
SUITES = ("trixie", "bookworm")
#: Where the distribution's packages come from; another mirror by the environment variable of this name.
MIRROR_VARIABLE = "BOXWRIGHT_LAB_MIRROR"
MIRROR, SECURITY = "http://deb.debian.org/debian", "http://deb.debian.org/debian-security"
HOST_PACKAGES = (
    "systemd", "systemd-sysv", "dbus", "python3", "python3-venv", "python3-apt", "openssh-server", "sudo", "gnupg",
    "ca-certificates", "iproute2", "procps", "iptables", "curl", "kmod", "pciutils", "rsync",
)
#: Seconds that making an image may take, and that a registry has to answer whether it has an image.
MAKE_TIMEOUT, REGISTRY_TIMEOUT = 1200, 10
CHUNK = 1 << 20

#: Writes the root directory of an image to the path it is given.
Maker = Callable[[Path], None]


@dataclass(frozen=True)
class Recipe:
    """What an image is made of. name: part of file and image names; base: the name of the image it builds on."""

    name: str
    suite: str
    packages: tuple[str, ...]
    setup: str
    base: str = ""

    @property
    def digest(self) -> str:
        """Twelve hex digits that change with anything in the recipe."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:12]

    def file(self, cache: Path) -> Path:
        """The root directory of the image as a tar archive in the cache."""
        return cache / "images" / f"{self.name}-{self.digest}.tar"

    def tag(self, lab: Lab) -> str:
        """The image's name in the engine; each lab has its own, so that it can remove what it made."""
        return f"bw-{lab.id}-{self.name}:{self.digest}"


def host_recipe(suite: str) -> Recipe:
    """The recipe of a simulated host. Raises UserError for a suite that the lab does not make."""
    if suite not in SUITES:
        raise UserError(f"no lab host runs {suite!r}", ways_out=("one of: " + ", ".join(SUITES),),
                        status=EXIT_BAD_INPUT)
    return Recipe(name=f"host-{suite}", suite=suite, packages=HOST_PACKAGES, setup=SETUP.read_text(encoding="utf-8"))


def depot_recipe() -> Recipe:
    """The recipe of the depot: a host of the newest suite with the distribution's container registry."""
    base = host_recipe(SUITES[0])
    setup = "systemctl disable docker-registry.service\nsystemctl mask ssh.service ssh.socket\n"
    return Recipe(name="depot", suite=base.suite, packages=("docker-registry",), setup=setup,
                  base=f"{base.name}-{base.digest}")


def ensure_host_image(client: docker.DockerClient, lab: Lab, suite: str, report: Report) -> str:
    """The tag of the image of simulated hosts, made when it is missing."""
    recipe = host_recipe(suite)
    return _ensure(client, lab, recipe, report, lambda target: _make_base(client, lab, recipe, target, report))


def ensure_depot_image(client: docker.DockerClient, lab: Lab, report: Report) -> str:
    """The tag of the depot's image, made on the host image when it is missing."""
    recipe = depot_recipe()

    def make(target: Path) -> None:
        base = ensure_host_image(client, lab, recipe.suite, report)
        _install_into(client, lab, recipe, base, target)

    return _ensure(client, lab, recipe, report, make)


def root(recipe: Recipe, report: Report) -> Path:
    """The root directory that a recipe without base makes, as a tar archive in the cache."""
    lab = Lab.here()
    return _root(lab, recipe, report, lambda target: _make_base(engine(report), lab, recipe, target, report))


def _ensure(client: docker.DockerClient, lab: Lab, recipe: Recipe, report: Report, make: Maker) -> str:
    tag = recipe.tag(lab)
    try:
        client.images.get(tag)
    except ImageNotFound:
        _load(client, lab, recipe, _root(lab, recipe, report, make), tag)
    return tag


def _root(lab: Lab, recipe: Recipe, report: Report, make: Maker) -> Path:
    target = recipe.file(lab.cache)
    if target.exists():
        return target
    with locked(target.with_suffix(".lock"), report, f"making image {recipe.name}"):
        if target.exists():
            return target
        for left in target.parent.glob(f"{target.stem}.*.*"):  # of a run that was killed
            left.unlink()
        watch = Stopwatch()
        temporary = target.with_suffix(f".{os.getpid()}.tmp")
        try:
            make(temporary)
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)
        report(f"lab: image {recipe.name} made in {watch}")
    return target


def _load(client: docker.DockerClient, lab: Lab, recipe: Recipe, file: Path, tag: str) -> None:
    """Import the archive as an image with the lab's label."""
    repository, _, version = tag.partition(":")
    labels = lab.labels(recipe=recipe.digest)
    changes = [f'LABEL "{key}"="{value}"' for key, value in labels.items()]
    answer = client.api.import_image_from_file(str(file), repository=repository, tag=version, changes=changes)
    for line in str(answer).splitlines():
        if problem := json.loads(line).get("error"):
            raise UserError(f"the engine could not load image {recipe.name}", where=str(file), why=problem,
                            ways_out=("remove that file; the next `up` makes it anew",))


# -- from a registry, or by mmdebstrap ------------------------------------------------------------------------------

def _make_base(client: docker.DockerClient, lab: Lab, recipe: Recipe, target: Path, report: Report) -> None:
    reference = f"debian:{recipe.suite}"
    if _registry_has(reference):
        report(f"lab: making image {recipe.name} from {reference} of the registry")
        with _pulled(client, reference):
            _install_into(client, lab, recipe, reference, target)
        return
    report(f"lab: making image {recipe.name} from the distribution's packages (no registry answers)")
    _bootstrap(recipe, target, report)


def _registry_has(reference: str) -> bool:
    """Whether the engine reaches a registry that has the image; a quick look, so that a missing network costs little."""
    quick = quick_client(REGISTRY_TIMEOUT)
    try:
        quick.images.get_registry_data(reference)
    except (DockerException, requests.RequestException):
        return False
    finally:
        quick.close()
    return True


@contextmanager
def _pulled(client: docker.DockerClient, reference: str) -> Iterator[None]:
    """Have an image of a registry for a while: what was not there before is gone afterwards."""
    try:
        client.images.get(reference)
        own = False
    except ImageNotFound:
        repository, tag = reference.split(":")
        client.images.pull(repository, tag)
        own = True
    try:
        yield
    finally:
        if own:
            client.images.remove(reference)


def _install_into(client: docker.DockerClient, lab: Lab, recipe: Recipe, base: str, target: Path) -> None:
    """Install the recipe's packages in a container of `base` and write its root directory to `target`."""
    script = "\n".join([
        "set -eu", "export DEBIAN_FRONTEND=noninteractive",
        "printf '#!/bin/sh\\nexit 101\\n' > /usr/sbin/policy-rc.d; chmod 755 /usr/sbin/policy-rc.d",
        "apt-get update -q",
        "apt-get install -q -y --no-install-recommends -o Dpkg::Options::=--force-unsafe-io " + " ".join(recipe.packages),
        "apt-get clean", "rm -rf /var/lib/apt/lists/* /usr/sbin/policy-rc.d", recipe.setup])
    container = client.containers.create(
        base, ["/bin/sh", "/setup.sh"], network_mode="host", labels=lab.labels(role="builder"),
        environment=proxy_environment())
    try:
        files = [Payload.text("/setup.sh", script), *certificates(), *apt_settings()]
        container.put_archive("/", archive(files))
        container.start()
        status = int(container.wait(timeout=MAKE_TIMEOUT)["StatusCode"])
        if status:
            tail = container.logs(tail=15).decode(errors="replace").strip()
            raise UserError(f"image {recipe.name} could not be made: its set-up ended with {status}",
                            why=tail.replace("\n", "\n  "))
        _export(container, target)
    finally:
        container.remove(force=True, v=True)


def _export(container: Container, target: Path) -> None:
    """Write a container's root directory as a tar archive, without what the engine and the set-up left in it."""
    unwanted = {"setup.sh", ".dockerenv"} | {file.path.lstrip("/") for file in (*certificates(), *apt_settings())}
    raw = target.with_suffix(".raw")
    try:
        with raw.open("wb") as stream:
            for chunk in container.export(chunk_size=CHUNK):
                stream.write(chunk)
        with tarfile.open(raw) as source, tarfile.open(target, "w") as clean:
            for member in source:
                if member.name not in unwanted:
                    clean.addfile(member, source.extractfile(member) if member.isreg() else None)
    finally:
        raw.unlink(missing_ok=True)


def _bootstrap(recipe: Recipe, target: Path, report: Report) -> None:
    """Make the root directory with mmdebstrap."""
    mmdebstrap = program("mmdebstrap", "mmdebstrap", report, "it makes the image of simulated hosts")
    mirror = os.environ.get(MIRROR_VARIABLE, MIRROR)
    setup = target.with_suffix(".setup")
    setup.write_text(recipe.setup, encoding="utf-8")
    quoted = _hook_word(setup)
    argv = [
        mmdebstrap, "--variant=minbase", f"--include={','.join(recipe.packages)}", "--format=tar",
        "--dpkgopt=force-unsafe-io", "--aptopt=Acquire::Languages \"none\"",
        "--aptopt=APT::Install-Recommends \"false\"",
        f"--customize-hook=upload {quoted} /setup.sh",
        "--customize-hook=chroot \"$1\" /bin/sh /setup.sh",
        "--customize-hook=rm \"$1\"/setup.sh",
        recipe.suite, str(target),
        f"deb {mirror} {recipe.suite} main", f"deb {mirror} {recipe.suite}-updates main",
        f"deb {SECURITY if mirror == MIRROR else mirror + '-security'} {recipe.suite}-security main",
    ]
    as_user = os.geteuid() != 0 and can_be_root()
    command = ["sudo", "-n", *argv] if as_user else argv
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=MAKE_TIMEOUT, check=False)
        if done.returncode:
            lines = [line for line in done.stderr.splitlines() if line.startswith(("E:", "W:"))] or done.stderr.splitlines()
            raise UserError(f"image {recipe.name} could not be made: mmdebstrap ended with {done.returncode}",
                            why="\n  ".join(lines[-8:]),
                            ways_out=(f"see that {mirror} can be reached, or set {MIRROR_VARIABLE} to another mirror",))
        if as_user:
            _take_over(target)
    except subprocess.TimeoutExpired as error:
        raise UserError(f"image {recipe.name} could not be made: mmdebstrap was not done after {MAKE_TIMEOUT} s") from error
    finally:
        setup.unlink(missing_ok=True)


def _take_over(path: Path) -> None:
    """Make a file that root wrote the user's own."""
    copy = path.with_suffix(".own")
    shutil.copyfile(path, copy)
    copy.replace(path)


def _hook_word(path: Path) -> str:
    """A path as one word of an mmdebstrap hook, which a shell splits."""
    return shlex.quote(str(path))


# -- what an image or a host takes over from the machine -------------------------------------------------------------

CERTIFICATES = Path("/usr/local/share/ca-certificates")
PROXY_NAMES = ("http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "no_proxy")


def certificates() -> list[Payload]:
    """The certificates that this machine's administrator added, for the same place in a container."""
    if not CERTIFICATES.is_dir():
        return []
    return [Payload(str(path), path.read_bytes()) for path in sorted(CERTIFICATES.rglob("*.crt")) if path.is_file()]


def proxy_environment() -> dict[str, str]:
    """The proxy variables of this machine's environment, in both spellings."""
    found: dict[str, str] = {}
    for name in PROXY_NAMES:
        if value := os.environ.get(name) or os.environ.get(name.upper()):
            found |= {name: value, name.upper(): value}
    return found


def apt_settings() -> list[Payload]:
    """This machine's proxies of apt, as a configuration file of a container."""
    config = find("apt-config")
    if config is None:
        return []
    dump = subprocess.run([config, "dump"], capture_output=True, text=True, timeout=20, check=False).stdout
    wanted = [line for line in dump.splitlines()
              if line.startswith(("Acquire::http::Proxy ", "Acquire::https::Proxy ")) and '""' not in line]
    return [Payload.text("/etc/apt/apt.conf.d/90lab-proxy", "\n".join(wanted) + "\n")] if wanted else []
