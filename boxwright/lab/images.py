"""The images of the lab's containers: made once, kept as files in the cache, loaded into the engine.

An image is a root directory with some packages and a set-up script run in it; bootstrap.py makes those.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import docker
from docker.errors import APIError, ImageNotFound

from boxwright.errors import EXIT_BAD_INPUT, UserError
from boxwright.lab import bootstrap
from boxwright.lab.docker import engine
from boxwright.lab.state import Lab, Report, Stopwatch, locked

SETUP = Path(__file__).with_name("data") / "machine" / "setup.sh"
SUITES = ("trixie", "bookworm")
HOST_PACKAGES = (
    "systemd",
    "systemd-sysv",
    "dbus",
    "python3",
    "python3-venv",
    "python3-apt",
    "openssh-server",
    "sudo",
    "gnupg",
    "ca-certificates",
    "iproute2",
    "procps",
    "iptables",
    "curl",
    "kmod",
    "pciutils",
    "rsync",
)
#: The depot's own units run its services, and nobody logs in to it.
DEPOT_SETUP = """\
set -eu
systemctl disable docker-registry.service
systemctl mask ssh.service ssh.socket
"""

DIGEST_LENGTH = 12

#: Writes the root directory of an image to the path it is given.
Maker = Callable[[Path], None]


@dataclass(frozen=True)
class Recipe:
    """What an image is made of.

    name: part of file and image names; setup: a script run in the root directory once the packages are
    installed; base: name and digest of the recipe it builds on, if any.
    """

    name: str
    suite: str
    packages: tuple[str, ...]
    setup: str
    base: str = ""

    @property
    def digest(self) -> str:
        """Twelve hex digits that change with anything in the recipe."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:DIGEST_LENGTH]

    def file(self, cache: Path) -> Path:
        """The root directory of the image as a tar archive in the cache."""
        return cache / "images" / f"{self.name}-{self.digest}.tar"

    def tag(self, lab: Lab) -> str:
        """The image's name in the engine; each lab has its own, so that it can remove what it made."""
        return f"bw-{lab.id}-{self.name}:{self.digest}"


def host_recipe(suite: str) -> Recipe:
    """The recipe of a simulated host. Raises UserError for a suite that the lab does not make."""
    if suite not in SUITES:
        raise UserError(
            f"no lab host runs {suite!r}", status=EXIT_BAD_INPUT, ways_out=("one of: " + ", ".join(SUITES),)
        )
    return Recipe(
        name=f"host-{suite}", suite=suite, packages=HOST_PACKAGES, setup=SETUP.read_text(encoding="utf-8")
    )


def depot_recipe() -> Recipe:
    """The recipe of the depot: a host of the newest suite with the distribution's container registry."""
    base = host_recipe(SUITES[0])
    return Recipe(
        name="depot",
        suite=base.suite,
        packages=("docker-registry",),
        setup=DEPOT_SETUP,
        base=f"{base.name}-{base.digest}",
    )


def ensure_host_image(client: docker.DockerClient, lab: Lab, suite: str, report: Report) -> str:
    """The tag of the image of simulated hosts, made when it is missing."""
    recipe = host_recipe(suite)
    return _ensure(client, lab, recipe, report, _base_maker(client, lab, recipe, report))


def ensure_depot_image(client: docker.DockerClient, lab: Lab, report: Report) -> str:
    """The tag of the depot's image, made on the host image when it is missing."""
    recipe = depot_recipe()

    def make(target: Path) -> None:
        base = ensure_host_image(client, lab, recipe.suite, report)
        bootstrap.install_into(
            client, lab.labels(role="builder"), base, recipe.packages, recipe.setup, target
        )

    return _ensure(client, lab, recipe, report, make)


def root(recipe: Recipe, report: Report) -> Path:
    """The root directory that a recipe without base makes, as a tar archive in the cache."""
    lab = Lab.here()
    return _root(lab, recipe, report, lambda target: _base_maker(engine(report), lab, recipe, report)(target))


def _base_maker(client: docker.DockerClient, lab: Lab, recipe: Recipe, report: Report) -> Maker:
    def make(target: Path) -> None:
        reference = f"debian:{recipe.suite}"
        if bootstrap.registry_has(reference):
            report(f"lab: making image {recipe.name} from {reference} of the registry")
            with bootstrap.pulled(client, reference):
                bootstrap.install_into(
                    client, lab.labels(role="builder"), reference, recipe.packages, recipe.setup, target
                )
        else:
            report(f"lab: making image {recipe.name} from the distribution's packages")
            bootstrap.mmdebstrap(recipe.suite, recipe.packages, recipe.setup, target, report)

    return make


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
        except UserError as error:
            raise UserError(
                f"image {recipe.name} could not be made: {error.what}",
                where=error.where,
                why=error.why,
                ways_out=error.ways_out,
                status=error.status,
            ) from error
        finally:
            temporary.unlink(missing_ok=True)
        for older in target.parent.glob(f"{recipe.name}-{'[0-9a-f]' * DIGEST_LENGTH}.tar"):
            if older != target:
                older.unlink()
        report(f"lab: image {recipe.name} made in {watch}")
    return target


def _load(client: docker.DockerClient, lab: Lab, recipe: Recipe, file: Path, tag: str) -> None:
    """Import the archive as an image with the lab's label."""
    repository, _, version = tag.partition(":")
    changes = [f'LABEL "{key}"="{value}"' for key, value in lab.labels(recipe=recipe.digest).items()]
    try:
        answer = client.api.import_image_from_file(
            str(file), repository=repository, tag=version, changes=changes
        )
        problems = [json.loads(line).get("error") for line in str(answer).splitlines() if line.strip()]
    except APIError as error:
        problems = [error.explanation]
    for problem in filter(None, problems):
        raise UserError(
            f"the engine could not load image {recipe.name}",
            where=str(file),
            why=problem,
            ways_out=("remove that file; the next `up` makes it anew",),
        )
    _remove_older(client, repository, tag)


def _remove_older(client: docker.DockerClient, repository: str, tag: str) -> None:
    """Remove this lab's images of older recipes, but those that a host still runs."""
    for image in client.images.list(name=repository):
        if tag not in image.tags:
            try:
                client.images.remove(str(image.id))
            except APIError:  # a container was made of it
                continue
