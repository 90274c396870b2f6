"""What an image reference tells: engine, release, CUDA version, first driver branch, cards."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from boxwright.catalog import reading

_TAG = re.compile(
    r"v?(?P<release>\d+\.\d+\.\d+)(?P<post>(?:\.post|rc|\.dev)\d+)?(?P<rest>(?:-[A-Za-z0-9_.]+)*)"
)
#: Tags that are moved to another image while they keep their name.
_MOVING = re.compile(r"(?:^|-)(latest|nightly|main|dev|edge)(?:-|$)")


@dataclass(frozen=True)
class ImageInfo:
    """What is known of an image by its reference.

    repository: without registry, tag and digest. engine: None for an image that the catalog does not know.
    release: `0.29.0`, None where the tag names none. cuda: None where unknown. problem: why there is no such
    tag, and nearest: tags that there are. moving: the tag is moved from image to image. compressed, unpacked:
    bytes, None where unknown. user: an account `UID:GID` of it beside root.
    """

    reference: str
    repository: str
    tag: str | None
    digest: str | None
    engine: str | None = None
    release: str | None = None
    cuda: str | None = None
    variant: str | None = None
    minimum_capability: str | None = None
    moving: bool = False
    problem: str | None = None
    nearest: tuple[str, ...] = ()
    compressed: int | None = None
    unpacked: int | None = None
    user: str | None = None

    def with_tag(self, tag: str) -> str:
        """The reference with another tag, from the same registry."""
        base = self.reference.partition("@")[0]
        return f"{base.removesuffix(f':{self.tag}') if self.tag else base}:{tag}"


class Images:
    """The images that the catalog knows, with the drivers that CUDA versions need."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self.rules: Sequence[Mapping[str, Any]] = data["images"]
        self._cuda = [
            (reading.version(entry["version"]), int(entry["driver_branch"])) for entry in data["cuda"]
        ]

    def driver_branch(self, cuda: str) -> int | None:
        """The first driver branch that runs images of a CUDA version."""
        wanted = reading.version(cuda)
        return next(
            (branch for version, branch in sorted(self._cuda, reverse=True) if version <= wanted), None
        )

    def identify(self, reference: str) -> ImageInfo:
        """What a reference tells. Any registry in front of a known name is taken for a mirror of it."""
        repository, tag, digest = split(reference)
        rule = next((rule for rule in self.rules if _same_name(repository, rule["name"])), None)
        moving = (tag is None and digest is None) or bool(tag and _MOVING.search(tag))
        if rule is None:
            return ImageInfo(reference, repository, tag, digest, moving=moving)
        known = {
            "engine": rule["engine"],
            "compressed": rule["bytes"]["compressed"],
            "unpacked": rule["bytes"]["unpacked"],
        }
        found = _TAG.fullmatch(tag or "")
        if not found:
            return ImageInfo(reference, repository, tag, digest, moving=moving, **known)
        release = found.group("release")
        cuda, variant, problem = _cuda_of(rule, release, found.group("rest"))
        near = _nearest(rule, release)
        if near:
            problem = f"release {release} was never released; the nearest are {' and '.join(near)}"
            instead = tuple(f"v{one}" for one in near)
        else:
            instead = _variants_tags(rule, release, variant) if problem else ()
        capability = _latest(rule["minimum_compute_capability"], release)
        account = _latest(rule.get("user", ()), release)
        return ImageInfo(
            reference,
            repository,
            tag,
            digest,
            release=release,
            cuda=cuda,
            variant=variant,
            minimum_capability=capability["capability"] if capability else None,
            moving=moving,
            problem=problem,
            nearest=instead,
            user=account["user"] if account else None,
            **known,
        )

    def variant(self, reference: str, cuda_major: int) -> str | None:
        """The reference of the same release built for another CUDA major version, None: there is none."""
        info = self.identify(reference)
        rule = next((rule for rule in self.rules if _same_name(info.repository, rule["name"])), None)
        if rule is None or info.release is None or info.tag is None:
            return None
        base = reference.partition("@")[0].removesuffix(info.tag) + f"v{info.release}"
        plain = _latest(rule["plain"], info.release)
        if plain and reading.version(plain["cuda"])[0] == cuda_major:
            return base
        return next(
            (
                f"{base}-{one['suffix']}"
                for one in rule["variants"]
                if one["cuda"]
                and reading.version(one["cuda"])[0] == cuda_major
                and _within(info.release, one)
            ),
            None,
        )


def load() -> Images:
    """The catalog's images."""
    return Images(reading.yaml_file("images.yml"))


def split(reference: str) -> tuple[str, str | None, str | None]:
    """Repository (without a registry's host), tag and digest of a reference."""
    name, _, digest = reference.partition("@")
    first, slash, rest = name.partition("/")
    if slash and ("." in first or ":" in first or first == "localhost"):
        name = rest
    head, colon, tag = name.rpartition(":")
    return (head, tag, digest or None) if colon else (name, None, digest or None)


def _same_name(repository: str, name: str) -> bool:
    return repository == name or repository.endswith("/" + name)


def _latest(entries: Sequence[Mapping[str, Any]], release: str) -> Mapping[str, Any] | None:
    fitting = [entry for entry in entries if reading.version(entry["since"]) <= reading.version(release)]
    return fitting[-1] if fitting else None


def _within(release: str, entry: Mapping[str, Any]) -> bool:
    at = reading.version(release)
    return reading.version(entry["since"]) <= at and (
        entry["until"] is None or at <= reading.version(entry["until"])
    )


def _nearest(rule: Mapping[str, Any], release: str) -> list[str]:
    """The releases around one that was never released; none where it was, or may be by now."""
    known: Sequence[str] = rule.get("releases", ())
    at = reading.version(release)
    later = [one for one in known if reading.version(one) > at]
    if release in known or not later:
        return []
    earlier = [one for one in known if reading.version(one) < at]
    return [*earlier[-1:], later[0]]


def _variants_tags(rule: Mapping[str, Any], release: str, suffix: str | None) -> tuple[str, ...]:
    """The release's plain tag, and the tag of the nearest release that has the variant."""
    found = next((one for one in rule["variants"] if one["suffix"] == suffix), None)
    if found is None:
        return (f"v{release}",)
    early = reading.version(release) < reading.version(found["since"])
    return (f"v{release}", f"v{found['since'] if early else found['until']}-{suffix}")


def _cuda_of(rule: Mapping[str, Any], release: str, rest: str) -> tuple[str | None, str | None, str | None]:
    """CUDA version, variant and, where no such tag was published, why."""
    plain = _latest(rule["plain"], release)
    cuda: str | None = plain["cuda"] if plain else None
    for part in rest.split("-"):
        variant = next((one for one in rule["variants"] if one["suffix"] == part), None)
        if variant is None and re.fullmatch(r"cu\d{3}", part):
            return f"{part[2:4]}.{part[4:]}", part, f"{rule['name']} has no tags that end in -{part}"
        if variant is None:
            continue
        problem = None
        if not _within(release, variant):
            last = f" to {variant['until']}" if variant["until"] else ""
            problem = (
                f"tags that end in -{part} exist from release {variant['since']}{last}, not for {release}"
            )
        return variant["cuda"] or cuda, part, problem
    return cuda, None, None
