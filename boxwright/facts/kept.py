"""What earlier runs of Boxwright left on a host, as its own files there say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

#: Files of ours whose being there is a fact: what they hold is the same on every host.
NOUVEAU_OFF, LOADED_AT_BOOT, LIMITS_AT_BOOT = (
    "/etc/modprobe.d/boxwright-nvidia.conf",
    "/etc/modules-load.d/boxwright-nvidia.conf",
    "/etc/systemd/system/boxwright-gpu-tuning.service",
)


@dataclass(frozen=True)
class PackageGroup:
    """Packages that are kept together. declared: asked for; installed: brought by us; holds: held by us."""

    declared: tuple[str, ...] = ()
    installed: tuple[str, ...] = ()
    holds: tuple[str, ...] = ()


@dataclass(frozen=True)
class CardLimits:
    """What was applied to a card since its driver was loaded. clocks_mhz: the locked range, empty for none.

    memory_clock_mhz: the locked one. power_limit_w: W, None where it was left alone. spared: settings that
    the card does not support.
    """

    clocks_mhz: tuple[int, ...] = ()
    memory_clock_mhz: int | None = None
    power_limit_w: float | None = None
    spared: tuple[str, ...] = ()


@dataclass(frozen=True)
class Drift:
    """Something that a role left otherwise than it is now.

    kind: file, package or unit of the role's own; beside (somebody else's file) or list (of names).
    subject: which. was, now: its state, in words.
    """

    kind: str
    subject: str
    was: str
    now: str

    @property
    def what(self) -> str:
        """The subject as a person calls it: a path, `package NAME`, `unit NAME`."""
        return f"{self.kind} {self.subject}" if self.kind in ("package", "unit") else self.subject


@dataclass(frozen=True)
class Receipt:
    """What a role's last whole run left, held against the declaration and the host as they are now.

    differs: names of variables that are declared otherwise. drift: what the host has otherwise.
    """

    differs: tuple[str, ...] = ()
    drift: tuple[Drift, ...] = ()


@dataclass(frozen=True)
class BootCommand:
    """A call of nvidia-smi at boot that is not ours: where it stands, and what it sets.

    what: persistence, clocks, memory clocks, power limit, application clocks; of a line that is more than one
    plain call, `other`. card: index, UUID or bus address, None for all. movable: a whole line of rc.local.
    via: the `file:line` that runs the script it stands in, "" where none does.
    """

    path: str
    line: int
    text: str
    what: str
    card: str | None = None
    movable: bool = False
    via: str = ""


@dataclass(frozen=True)
class PortAccess:
    """Rules for published ports. allow_from: sources that pass; ports: (address, port) that they are about.

    wrong: what of them is not as it was made.
    """

    allow_from: tuple[str, ...] = ()
    ports: tuple[tuple[str, str], ...] = ()
    wrong: tuple[str, ...] = ()


@dataclass(frozen=True)
class Kept:
    """All of it.

    sources: package source -> its addresses. pins: group of packages -> the version that apt shall prefer.
    groups: by name. limits: by the card's UUID. daemon_keys: dotted settings of Docker's that we put there.
    docker_proxy: of Docker's unit, credentials masked. registries: those that we log in to or trust.
    authorities: fingerprints of those that we have the host trust.
    cdi_driver: the driver version whose libraries the CDI specification names. files: those of ours above
    that are there. receipts: by role. boot_commands: other people's that set the cards at boot. port_access:
    None where everybody reaches the ports.
    """

    sources: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    pins: Mapping[str, str] = field(default_factory=dict)
    groups: Mapping[str, PackageGroup] = field(default_factory=dict)
    limits: Mapping[str, CardLimits] = field(default_factory=dict)
    daemon_keys: tuple[str, ...] = ()
    docker_proxy: str | None = None
    cdi_driver: str | None = None
    registries: tuple[str, ...] = ()
    authorities: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    receipts: Mapping[str, Receipt] = field(default_factory=dict)
    boot_commands: tuple[BootCommand, ...] = ()
    port_access: PortAccess | None = None
