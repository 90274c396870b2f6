"""Rules about the host's disks and main memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from boxwright.facts.room import Filesystem
from boxwright.planner.case import Case, Host
from boxwright.planner.rules.registry import Note, host_advice, host_gate, note
from boxwright.planner.rules.words import gb, gib

SOURCE = "https://github.com/sgl-project/sglang/issues/2801"
#: Bytes of driver, toolkit and engine packages with what building modules takes, while they are not
#: installed.
SYSTEM_PACKAGES = 2_500_000_000
#: A layer unpacks to about this many times its download.
UNPACKED = 2.3


@dataclass(frozen=True)
class Need:
    """Bytes that will be written below a path, and what for."""

    path: str
    size: int
    what: str


def needs(host: Host, cases: Sequence[Case]) -> Iterator[Need]:
    """What provisioning writes that is not there yet; the same weights and images count once."""
    store, docker = f"{host.box.root_dir}/models", host.facts.docker.data_root
    if host.box.driver.manage and host.facts.driver.state == "absent":
        yield Need("/usr", SYSTEM_PACKAGES, "driver packages")
    seen: set[str] = set()
    for case in cases:
        for source, _ in case.sources:
            size = source.download_bytes
            key = f"{source.repo}@{source.revision}"
            if size and key not in seen and not (case.is_made and source is case.model):
                seen.add(key)
                yield Need(store, size, f"weights of {source.name}")
        if case.deployment.image not in seen:
            seen.add(case.deployment.image)
            yield from _image(case, docker)
        if wanted := case.quantizing:
            yield Need(store, wanted.disk, f"quantizing {case.model.name}")


def _image(case: Case, docker: str) -> Iterator[Need]:
    facts = case.image_facts
    if facts and facts.present:
        return
    if facts and facts.size:
        yield Need(docker, int(facts.size * (1 + UNPACKED)), f"image {case.deployment.image}")
    elif case.image.compressed and case.image.unpacked:
        yield Need(docker, case.image.compressed + case.image.unpacked, f"image {case.deployment.image}")


def _filesystem(host: Host, path: str) -> Filesystem | None:
    """Where a path lies: of the filesystems that were looked at the one with the longest mount point above
    it.
    """
    above = [
        one
        for one in host.facts.filesystems
        if path == one.path or path.startswith(one.path.rstrip("/") + "/")
    ]
    return max(above, key=lambda one: len(one.path), default=None)


@host_gate("disk-too-small", source=SOURCE)
def disk_too_small(host: Host, cases: Sequence[Case]) -> Iterator[Note]:
    """Weights, image and quantization are counted together for each filesystem before the first byte is
    fetched.

    A disk that fills up stops more than the download: Docker, the journal, the running engine.
    """
    by_device: dict[str, tuple[Filesystem, list[Need]]] = {}
    for need in needs(host, cases):
        place = _filesystem(host, need.path)
        if place is not None:
            by_device.setdefault(place.device, (place, []))[1].append(need)
    for place, wanted in by_device.values():
        total = sum(need.size for need in wanted)
        if total <= place.available:
            continue
        parts = ", ".join(f"{gb(need.size)} {need.what}" for need in wanted)
        yield note(
            f"{gb(total)} are needed on {place.mount} ({parts}); {gb(place.available)} are free",
            f"free {gb(total - place.available)} on {place.mount}",
            "box_root_dir: … on a larger disk",
            at="box_root_dir",
        )


@host_gate("read-only-disk", source=SOURCE)
def read_only(host: Host, cases: Sequence[Case]) -> Note | None:
    """The store and the engine's data must be on filesystems that can be written."""
    places = (_filesystem(host, path) for path in (host.box.root_dir, host.box.config_dir))
    place = next((place for place in places if place and place.read_only), None)
    if place is None:
        return None
    return note(
        f"{place.mount} is mounted read-only",
        "mount it writable",
        "box_root_dir: … elsewhere",
        at="box_root_dir",
    )


@host_gate("memory-too-small", source="https://github.com/casper-hansen/AutoAWQ/blob/main/awq/models/base.py")
def memory_too_small(host: Host, cases: Sequence[Case]) -> Iterator[Note]:
    """Quantizing reads the whole 16-bit model into main memory, and keeps what its calibration computes."""
    total = host.facts.memory.total
    if not total:
        return
    there = total + host.facts.memory.swap
    for case in cases:
        wanted = case.quantizing
        if wanted and wanted.memory > there:
            yield note(
                f"quantizing {case.model.name} takes about {gib(wanted.memory)} of main memory; the host has "
                f"{gib(there)} with its swap",
                "a ready checkpoint",
                "quantize on a host with more memory",
                "add swap, which is slow",
                at="quantize",
                place=case.place,
            )


#: Bytes of main memory for a card in use: vLLM 0.32 measured 0.55 + 0.5 GB of processes, 1.6 GB and pinned
#: buffers a worker.
RANK_MEMORY = 6 << 30


@host_advice("little-memory", source="boxwright/planner/rules/disk.py")
def little_memory(host: Host, cases: Sequence[Case]) -> Note | None:
    """An engine keeps about 6 GiB of main memory for each card, and reads weights faster when they stay
    cached.
    """
    total = host.facts.memory.total
    ranks = sum(case.settings.tensor_parallel * case.settings.pipeline_parallel for case in cases)
    if not total or not ranks or total >= ranks * RANK_MEMORY:
        return None
    return note(
        f"{gib(total)} of main memory is little for {ranks} engine process{'' if ranks == 1 else 'es'}",
        "at least 6 GiB for each card in use",
    )
