"""Rules about the image: its tag, its release, the driver and the cards that it needs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from boxwright.catalog import reading
from boxwright.engines.engine import ENGINES
from boxwright.planner.case import Case
from boxwright.planner.rules.registry import Note, advice, gate, note
from boxwright.planner.rules.words import shown

TAGS = "https://github.com/vllm-project/vllm/blob/main/.buildkite/release-pipeline.yaml"


@gate("image-needs-newer-driver", source="https://github.com/vllm-project/vllm/issues/42738")
def needs_newer_driver(case: Case) -> Note | None:
    """A container brings its own CUDA libraries and takes the driver from the host.

    vLLM's plain tags are built for CUDA 13 since 0.20 and need branch 580; `-cu129` tags exist up to 0.32. A
    branch 570 driver ends in "driver too old (found version 12080)" only after the old engine was stopped.
    """
    branch = case.host.driver_branch
    needed = case.host.catalog.images.driver_branch(case.cuda) if case.cuda else None
    if branch is None or needed is None or branch >= needed:
        return None
    driver, box = case.host.facts.driver, case.host.box
    has = (
        f"this box has {driver.version}"
        if not box.driver.manage and driver.version
        else f"nvidia_driver_branch is {box.driver.version or box.driver.branch}"
    )
    other = case.host.catalog.images.variant(case.deployment.image, 12)
    slower = (
        " (decodes hybrids without the fused kernel)"
        if case.architecture and case.architecture.is_hybrid
        else ""
    )
    ways = (f'nvidia_driver_branch: "{needed}"', f"image: {other}{slower}" if other else "")
    return note(
        f"{case.deployment.image} is built for CUDA {case.cuda}, which needs driver {needed} or newer; {has}",
        *(way for way in ways if way),
        at="image",
    )


@gate("image-tag-unpublished", source=TAGS)
def tag_unpublished(case: Case) -> Note | None:
    """Some tags were never published: of releases that were skipped (0.26.1, 0.27.2), and with another CUDA
    version
    than the plain tag's, `-cu129` from 0.20 to 0.32.
    """
    seen = case.image_facts
    if not case.image.problem or (seen and (seen.present or not seen.error)):
        return None
    return note(
        f"{case.deployment.image}: {case.image.problem}",
        *(f"image: {case.image.with_tag(tag)}" for tag in case.image.nearest),
        at="image",
    )


@gate("image-not-found", source="https://github.com/opencontainers/distribution-spec/blob/main/spec.md")
def not_found(case: Case) -> Note | None:
    """The registry was asked and has no image of this name, or none for the host's processor."""
    seen = case.image_facts
    if seen is None or seen.present or seen.error != "not-found" or case.image.problem:
        return None
    return note(
        f"the registry has no {case.deployment.image}: {seen.detail}",
        "see that name and tag are spelt right",
        at="image",
    )


def _registry(case: Case) -> Mapping[str, Any] | None:
    """The declaration of the image's registry, None where it is not among them."""
    first, slash, _ = case.deployment.image.partition("/")
    host = first if slash and ("." in first or ":" in first or first == "localhost") else "docker.io"
    declared = case.host.box.settings.get("container_runtime_registries")
    for one in declared if isinstance(declared, (list, tuple)) else ():
        if isinstance(one, Mapping) and one.get("host") == host:
            return one
    return None


def _refusal(case: Case) -> str | None:
    """Why the declared registry will not give the image: unauthorized or tls; None where it may."""
    seen, declared = case.image_facts, _registry(case)
    if seen is None or seen.present or declared is None:
        return None
    if seen.error in ("unauthorized", "forbidden") and declared.get("username"):
        return "unauthorized"
    return "tls" if seen.error == "tls" and not declared.get("insecure") else None


@gate("registry-refuses-login", source="https://docs.docker.com/reference/cli/docker/login/")
def refuses_login(case: Case) -> Note | None:
    """The registry was asked with the declared login and does not give the image to it.

    Docker would be refused the same way, after everything else was done.
    """
    declared, seen = _registry(case), case.image_facts
    if _refusal(case) != "unauthorized" or declared is None or seen is None:
        return None
    return note(
        f"{shown(declared.get('host'))} does not give {case.deployment.image} to "
        f"{shown(declared.get('username'))}: {seen.detail}",
        "correct username and password of container_runtime_registries",
        "see that this account may read the repository",
        at="image",
    )


@gate("registry-not-trusted", source="https://docs.docker.com/engine/security/certificates/")
def not_trusted(case: Case) -> Note | None:
    """The certificate of a declared registry is signed by nobody that the host trusts, or is out of date.

    Docker takes the system's authorities, and those below /etc/docker/certs.d for one registry each.
    """
    declared, seen = _registry(case), case.image_facts
    if _refusal(case) != "tls" or declared is None or seen is None:
        return None
    return note(
        f"the certificate of {shown(declared.get('host'))} is not trusted: {seen.detail}",
        "ca of container_runtime_registries: the PEM text of the authority that signed it",
        "see that the host's clock is right",
        at="image",
    )


@advice("image-not-seen", source="https://github.com/opencontainers/distribution-spec/blob/main/spec.md")
def not_seen(case: Case) -> Note | None:
    """The registry did not answer the host directly; the engine may still pull, by a mirror or a login."""
    seen = case.image_facts
    if seen is None or seen.present or seen.error in (None, "not-found") or _refusal(case):
        return None
    login = seen.error in ("unauthorized", "forbidden") and _registry(case) is None
    return note(
        f"whether {case.deployment.image} can be pulled is not known: {seen.detail}",
        *(["container_runtime_registries: a login, where the registry asks for one"] if login else []),
        "see that the host's Docker reaches the registry",
        at="image",
    )


@advice("image-tag-moves", source="https://github.com/noonghunna/club-3090/issues/165")
def tag_moves(case: Case) -> Note | None:
    """`latest` and `nightly` are another image tomorrow; the lock keeps what was resolved, the plan cannot
    know it.
    """
    if not case.image.moving:
        return None
    newest = case.image.with_tag(f"v{case.settings.release}")
    return note(
        f"the tag of {case.deployment.image} moves from image to image; the lock keeps today's",
        f"image: {newest}" if case.image.engine == case.deployment.engine else "name a tag that stays",
        at="image",
    )


@advice("image-release-unknown", source="boxwright/catalog/data/images.yml")
def release_unknown(case: Case) -> Note | None:
    """Options differ between releases.

    For an image whose release is not known, the nearest table stands in.
    """
    if case.settings.exact:
        return None
    what = (
        f"release {case.image.release} was not read"
        if case.image.release
        else f"the tag of {case.deployment.image} names no release"
    )
    return note(
        f"{what}: options were checked against {case.engine.title} {case.settings.release}",
        "name a release that the catalog has",
        at="image",
    )


@gate("engine-and-image-differ", source="boxwright/catalog/data/images.yml")
def engine_and_image_differ(case: Case) -> Note | None:
    """The plan writes the command of the declared engine; an image of another one would not understand it."""
    declared, found = case.deployment.engine, case.image.engine
    if declared not in ENGINES:
        return note(
            f"engine {shown(declared)} is none that Boxwright knows",
            *(f"engine: {name}" for name in ENGINES),
            at="engine",
        )
    if found in (declared, None):
        return None
    return note(
        f"{case.deployment.image} is an image of {found}, and the declared engine is {declared}",
        f"engine: {found}",
        f"an image of {case.engine.title}",
        at="image",
    )


@gate("card-older-than-image", source="https://docs.vllm.ai/en/latest/getting_started/installation/gpu.html")
def card_older(case: Case) -> Note | None:
    """An image's kernels are built for a range of cards: compute capability 7.5 and up since vLLM 0.20."""
    least = case.image.minimum_capability
    if least is None:
        return None
    old = [card for card in case.cards if card.capability and card.capability < reading.version(least)]
    if not old:
        return None
    has = ".".join(str(part) for part in old[0].capability or ())
    return note(
        f"{case.deployment.image} needs cards of compute capability {least} or newer; {old[0].title} has "
        f"{has}",
        "use an older release",
        "use another card",
        at="image",
    )


@advice("no-fused-kernel", source="https://github.com/vllm-project/vllm/pull/51674", engine="vllm")
def no_fused_kernel(case: Case) -> Note | None:
    """The fused decode kernel of linear attention is in builds for CUDA 13 only, since 0.28.

    `-cu129` images fall back to Triton: 8 to 11 % slower on an L20.
    """
    if not case.architecture or not case.architecture.is_hybrid or not (case.cuda or "").startswith("12."):
        return None
    other = case.host.catalog.images.variant(case.deployment.image, 13)
    if other is None or reading.version(case.settings.release) < (0, 28):
        return None
    return note(
        "images for CUDA 12 lack the fused kernel of linear attention: decoding is about a tenth slower",
        f"image: {other}",
        at="image",
    )
