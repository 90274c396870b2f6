"""What a host is, as typed values: one frozen tree that the planner reads and `invoke facts --json` prints.

Sizes are bytes unless the name says MiB; None is "not known" throughout, never zero. The tree goes to JSON
and back unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from boxwright.facts import codec
from boxwright.facts.kept import Kept
from boxwright.facts.origin import Origin
from boxwright.facts.room import Filesystem, Listener, Memory

MIB = 1 << 20
#: Counts up when a plan needs facts that earlier recordings do not have.
FORMAT = 2


def leading_number(version: str) -> int | None:
    """The number that a version begins with: 580 of 580.105.08; None where it begins with none."""
    head = version.split(".")[0]
    return int(head) if re.fullmatch(r"[0-9]{1,6}", head) else None


#: How far the driver has come.
#: absent: none installed. installed: on disk, its module not loaded. loaded: works.
#: mismatch: libraries and loaded module of two versions (a reboot is due). no-devices: no card answers it.
#: nouveau: the free driver holds the cards. failed: none of these; `Driver.problem` tells more.
DRIVER_STATES = ("absent", "installed", "loaded", "mismatch", "no-devices", "nouveau", "failed")


#: Distributions of Red Hat's family by their ids: dnf and rpm, SELinux, firewalld.
RED_HAT = frozenset(("rhel", "rocky", "almalinux"))


@dataclass(frozen=True)
class OperatingSystem:
    """The distribution.

    id, version_id, codename: of /etc/os-release. architecture: `x86_64`, as uname has it. selinux:
    `enforcing`, `permissive`, None where the kernel has none or it is off.
    """

    id: str
    version_id: str
    codename: str
    architecture: str
    kernel: str
    name: str = ""
    boot_id: str | None = None
    reboot_required: bool = False
    selinux: str | None = None

    @property
    def manager(self) -> str:
        """Its package manager: `dnf` or `apt`."""
        return "dnf" if self.id in RED_HAT else "apt"

    @property
    def major(self) -> str:
        """The release without its minor number: `9` of 9.6."""
        return self.version_id.partition(".")[0]


@dataclass(frozen=True)
class Clock:
    """The time of day in seconds since 1970, as the host and the controller had it at one moment."""

    host: int | None = None
    controller: int | None = None


@dataclass(frozen=True)
class Clocks:
    """Clocks of a card in MHz: of now, and the highest that its hardware knows."""

    graphics: int | None = None
    max_graphics: int | None = None
    memory: int | None = None
    max_memory: int | None = None


@dataclass(frozen=True)
class Power:
    """Power limit of a card in W: set, default, and the lowest and highest that its firmware takes."""

    limit: float | None = None
    default: float | None = None
    min: float | None = None
    max: float | None = None


@dataclass(frozen=True)
class Link:
    """A card's PCIe link. The generation falls at idle and the width does not."""

    generation: int | None = None
    max_generation: int | None = None
    width: int | None = None
    max_width: int | None = None


@dataclass(frozen=True)
class Card:
    """One NVIDIA card; before a driver is loaded only its place on the bus is known.

    pci_bus: `0000:01:00.0`. pci_id: `10de:2b85`.
    index: of nvidia-smi, or the place in bus order while there is no driver. topology: link words (`PHB`,
    `NV4`, …) to every card in index order, empty when unknown. kernel_driver: what holds the device
    (`nvidia`, `nouveau`, `vfio-pci`, None). lost: it is on the bus and does not answer.
    """

    index: int
    pci_bus: str
    pci_id: str
    uuid: str | None = None
    name: str | None = None
    memory_total_mib: int | None = None
    memory_reserved_mib: int | None = None
    memory_used_mib: int | None = None
    compute_capability: str | None = None
    persistence: bool | None = None
    clocks: Clocks = Clocks()
    power: Power = Power()
    link: Link = Link()
    numa_node: int | None = None
    topology: tuple[str, ...] = ()
    kernel_driver: str | None = None
    mig: bool | None = None
    lost: bool = False


@dataclass(frozen=True)
class Driver:
    """The NVIDIA driver. flavor: `open` or `proprietary`. packages: name -> version. held: names on hold.

    cuda: the highest CUDA version it supports, as it says itself. secure_boot: None when the firmware cannot
    say. next_kernel: release of another kernel that waits for the next boot; next_headers: whether modules
    can be built for it. unowned: files of a driver that no package brought, as the .run installer leaves.
    signing_key: certificate of the key that DKMS signs modules with; signing_key_state: what mokutil says of
    it (`enrolled`, `pending`, `blocked`, `not-enrolled`), `absent` before there is one, `unsigned` where DKMS
    is told not to sign; None where nobody says.
    """

    state: str = "absent"
    installed_version: str | None = None
    loaded_version: str | None = None
    library_version: str | None = None
    cuda: str | None = None
    flavor: str | None = None
    packages: Mapping[str, str] = field(default_factory=dict)
    held: tuple[str, ...] = ()
    nouveau: bool = False
    dkms: str = ""
    kernel_headers: bool | None = None
    next_kernel: str | None = None
    next_headers: bool | None = None
    unowned: tuple[str, ...] = ()
    secure_boot: bool | None = None
    signing_key: str | None = None
    signing_key_state: str | None = None
    problem: str | None = None

    @property
    def version(self) -> str | None:
        """The version that works now, else the one that is installed."""
        return self.loaded_version or self.installed_version

    @property
    def branch(self) -> int | None:
        """The leading number of the version: 580 of 580.105.08."""
        return leading_number(self.version or "")

    def built_here(self, kernel: str) -> bool:
        """Whether DKMS has built the loaded module on this host, as it does for NVIDIA's packages."""
        words = (f"{self.loaded_version}, {kernel},", ": installed")
        lines = [line for line in self.dkms.splitlines() if line.startswith("nvidia")]
        return any(all(word in line for word in words) for line in lines)


@dataclass(frozen=True)
class Image:
    """A container image. env: what of its environment tells CUDA (CUDA_VERSION, NVIDIA_REQUIRE_CUDA).

    size: bytes unpacked where the engine has it, else bytes to download. error: why a registry did not tell
    it (`unreachable`, `tls`, `unauthorized`, `forbidden`, `not-found`, `invalid`), with detail for a person.
    """

    reference: str
    digest: str | None = None
    present: bool = False
    size: int | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    error: str | None = None
    detail: str = ""


@dataclass(frozen=True)
class Docker:
    """Docker Engine and the NVIDIA container toolkit. version: None where it does not answer (problem).

    package: that brought it. packages: name -> version, of all that belong to it. images, containers: how
    many it has, None while it does not answer. live_restore: they run on while it restarts. filled: declared
    data roots that a daemon has used before. labels: it confines containers by SELinux (`selinux-enabled`).
    """

    version: str | None = None
    package: str | None = None
    packages: Mapping[str, str] = field(default_factory=dict)
    running: bool = False
    data_root: str = "/var/lib/docker"
    cgroup_driver: str | None = None
    cdi: bool = False
    cdi_devices: tuple[str, ...] = ()
    runtimes: tuple[str, ...] = ()
    toolkit_version: str | None = None
    daemon_config: str | None = None
    problem: str | None = None
    origin: Origin = field(default_factory=Origin)
    rootless: bool = False
    swarm: bool = False
    images: int | None = None
    containers: int | None = None
    containers_running: int | None = None
    live_restore: bool = False
    filled: tuple[str, ...] = ()
    labels: bool = False


@dataclass(frozen=True)
class File:
    """A file of a model. path: relative. sha256: the hub's record, None where it publishes none."""

    path: str
    size: int
    sha256: str | None = None


@dataclass(frozen=True)
class TensorGroup:
    """Tensors of one name, numbers as `*`: `model.layers.*.mlp.up_proj.weight`. bytes: of all of them."""

    name: str
    count: int
    bytes: int
    dtype: str


@dataclass(frozen=True)
class ModelFiles:
    """What a hub, the store or a directory says of one model.

    request: what was asked, as `org/name@revision` or a path. origin: hub, store, path, or made (of a stored
    revision, on the host). revision: 40-hex
    commit. config: its config.json. tensors: None when the headers could not be read. error: `unreachable`,
    `tls`, `dns`, `unauthorized` (401), `forbidden` (403), `not-found` (404), `rate-limited` (429), `invalid`,
    with detail for a person and the hub's X-Error-Code as code. complete: the store's own record says that
    every byte is there and verified. loaded: weights files that the index names, empty without an index.
    """

    request: str
    origin: str
    repo: str | None = None
    revision: str | None = None
    directory: str | None = None
    files: tuple[File, ...] = ()
    config: Mapping[str, Any] | None = None
    tensors: tuple[TensorGroup, ...] | None = None
    complete: bool = False
    error: str | None = None
    detail: str = ""
    code: str = ""
    loaded: tuple[str, ...] = ()

    @property
    def weight_bytes(self) -> int:
        """Bytes of the safetensors files."""
        return sum(file.size for file in self.files if file.path.endswith(".safetensors"))


@dataclass(frozen=True)
class Release:
    """A release on the host. record: its release.json. current: it is the live one."""

    deployment: str
    id: str
    current: bool
    record: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class HostFacts:
    """All that one trip to a host tells.

    host: its name. addresses: its own, those of the default route first. tuning: the declared limits as the
    host keeps them. kept: what we left there. firewalls: ufw, firewalld, those that are on. repositories:
    dnf's that are enabled, by id. recorded: False when planned from cards. format: of this tree.
    """

    host: str
    os: OperatingSystem
    cards: tuple[Card, ...] = ()
    driver: Driver = Driver()
    docker: Docker = Docker()
    memory: Memory = field(default_factory=lambda: Memory(0, 0))
    addresses: tuple[str, ...] = ()
    cpus: int = 0
    processor: str = ""
    filesystems: tuple[Filesystem, ...] = ()
    listening: tuple[Listener, ...] = ()
    images: tuple[Image, ...] = ()
    models: tuple[ModelFiles, ...] = ()
    releases: tuple[Release, ...] = ()
    tuning: Mapping[str, Any] = field(default_factory=dict)
    clock: Clock = Clock()
    kept: Kept = field(default_factory=Kept)
    firewalls: tuple[str, ...] = ()
    repositories: tuple[str, ...] = ()
    recorded: bool = True
    format: int = FORMAT

    def filesystem(self, path: str) -> Filesystem | None:
        """The filesystem of a path that was asked about."""
        return next((one for one in self.filesystems if one.path == path), None)

    def to_json(self) -> dict[str, Any]:
        """Plain values, as `from_json` takes them."""
        plain: dict[str, Any] = codec.encode(self)
        return plain

    @classmethod
    def from_json(cls, data: object) -> HostFacts:
        """The facts of `to_json`. Raises ValueError, naming the path, where a value has another type."""
        return codec.decode(cls, data)
