"""Docker Engine and the NVIDIA container toolkit: what the role container_runtime would change."""

from __future__ import annotations

import fnmatch
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from boxwright.facts.model import Docker
from boxwright.facts.parsers import exact_json, nvidia_smi
from boxwright.planner.case import Host
from boxwright.planner.changes import driver as driver_changes
from boxwright.planner.changes import packages
from boxwright.planner.changes.change import Change

ROLE, GROUP = "container_runtime", "container-runtime"
#: Package sources by name, with the variable of their address and its default.
TOOLKIT_SOURCE = (
    "container-toolkit",
    "container_runtime_toolkit_repository_url",
    "https://nvidia.github.io/libnvidia-container/stable/deb",
    "package source of the container toolkit",
)
#: NVIDIA has the packages of rpm beside those of deb.
_DEB, _RPM = re.compile(r"/deb$"), "/rpm"
DOCKER_SOURCE = (
    "docker",
    "container_runtime_docker_repository_url",
    "https://download.docker.com/linux",
    "package source of Docker",
)
#: Settings that a running daemon takes over without a restart, as docker_daemon.RELOADABLE has them.
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
#: Those of them that also leave without one, as docker_daemon.RESETTING has them.
RESETTING = frozenset(("max-concurrent-downloads", "max-concurrent-uploads"))
#: Docker Hub, by the name under which its logins are kept.
HUB_KEY = "https://index.docker.io/v1/"
#: The release from which on Docker gives containers devices by CDI.
CDI_SINCE = 25
_CREDENTIALS = re.compile(r"(://)[^/\s\"]+@")
_MISSING: Any = object()


def changes(host: Host) -> Iterator[Change]:
    """In the order in which they are made."""
    settings, facts = host.box.settings, host.facts
    vendor = settings.get("container_runtime_source") == "vendor"
    # What is not there yet comes with its source.
    sources = [
        *([DOCKER_SOURCE] if vendor and facts.docker.version is not None else []),
        *([TOOLKIT_SOURCE] if facts.docker.toolkit_version is not None else []),
    ]
    for name, variable, default, subject in sources:
        url = str(settings.get(variable) or default)
        if name == TOOLKIT_SOURCE[0] and facts.os.manager == "dnf":
            url = _DEB.sub(_RPM, url.rstrip("/"))
        yield from packages.source(facts, ROLE, name, url, subject)
    yield from _versions(host, vendor=vendor)
    docker = facts.docker
    if docker.version is not None and docker.toolkit_version is not None:
        yield from packages.lost(facts, ROLE, GROUP)
        yield from packages.holds(facts, ROLE, GROUP, "the container runtime's packages")
    if docker.version is not None:
        if not docker.running:
            yield Change(ROLE, "Docker Engine", "stopped", "running")
        yield from _settings(host)
    yield from _registries(host)
    if docker.version is not None:
        yield from _cards(host)


def _versions(host: Host, *, vendor: bool) -> Iterator[Change]:
    settings, docker = host.box.settings, host.facts.docker
    engine = "docker-ce" if vendor else "docker.io"
    wanted = str(settings.get("container_runtime_version") or "")
    if docker.version is None:
        yield Change(ROLE, "Docker Engine", None, wanted or f"the newest {engine}")
    elif wanted and not fnmatch.fnmatchcase(
        docker.packages.get(docker.package or "", ""),
        engine_glob(wanted, vendor=vendor, manager=host.facts.os.manager),
    ):
        yield Change(ROLE, "Docker Engine", docker.version, wanted, interrupts=_serves(host))
    toolkit = str(settings.get("container_runtime_toolkit_version") or "")
    found = docker.packages.get("nvidia-container-toolkit") or docker.toolkit_version
    glob = toolkit if "-" in toolkit or toolkit.endswith("*") else f"{toolkit}-*"
    if found is None:
        yield Change(ROLE, "NVIDIA container toolkit", None, toolkit or "the newest")
    elif toolkit and not fnmatch.fnmatchcase(found, glob):
        yield Change(ROLE, "NVIDIA container toolkit", found, toolkit)


def engine_glob(wanted: str, *, vendor: bool, manager: str = "apt") -> str:
    """A version as people write it as a glob of package versions, as the role's vars have it.

    manager: apt or dnf. Docker's packages of one release have epochs of their own on Red Hat's family.
    """
    if manager == "dnf":
        bare = re.sub(r"^[0-9]+:|\.(?:noarch|x86_64|aarch64)$", "", wanted)
        whole = bare.endswith("*") or re.search(r"-.*[.]el[0-9]", bare)
        return f"[0-9]:{bare}" if whole else f"[0-9]:{bare}.*" if "-" in bare else f"[0-9]:{bare}-*"
    glob = wanted if "-" in wanted or wanted.endswith("*") else f"{wanted}[+-]*"
    return f"[0-9]:{glob}" if vendor and ":" not in wanted else glob


def _serves(host: Host) -> bool:
    return any(release.current for release in host.facts.releases)


def _settings(host: Host) -> Iterator[Change]:
    """Settings of the daemon that are not as declared, and those of ours that are declared no more."""
    docker = host.facts.docker
    found = _object(docker.daemon_config)
    wanted = {**_own(docker, found), **dict(_leaves(declared_settings(host.box.settings)))}
    here = dict(_leaves(found))
    for key, value in sorted(wanted.items()):
        has = here.get(key, _MISSING)
        if not _holds(has, value):
            yield _setting(host, key, None if has is _MISSING else _shown(has), _shown(value))
    for key in sorted(set(host.facts.kept.daemon_keys) - set(wanted)):
        if key in here and not any(key.startswith(f"{one}.") or one.startswith(f"{key}.") for one in wanted):
            yield _setting(host, key, _shown(here[key]), None)
    proxy = _masked(host.box.proxy) if host.box.proxy else None
    if proxy != host.facts.kept.docker_proxy:
        yield restart(host, "Docker's proxy", host.facts.kept.docker_proxy, proxy)


def _registries(host: Host) -> Iterator[Change]:
    """Registries with a login or an authority; whether a password is another one now, a plan cannot know."""
    declared = host.box.settings.get("container_runtime_registries")
    wanted: dict[str, str] = {}
    for one in declared if isinstance(declared, (list, tuple)) else ():
        name = str(one.get("host"))
        key = HUB_KEY if name in ("docker.io", "index.docker.io") else name
        user = str(one.get("username") or "")
        if user or one.get("ca"):
            wanted[key] = f"logged in as {user}" if user else "trusted by its authority"
    for key in sorted({*wanted, *host.facts.kept.registries}):
        if (key in wanted) is not (key in host.facts.kept.registries):
            yield Change(ROLE, f"registry {key}", None if key in wanted else "known", wanted.get(key))


def declared_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """What the box's variables want in daemon.json, beside what the role needs itself."""
    given = settings.get("container_runtime_daemon_config")
    wanted = dict(given) if isinstance(given, Mapping) else {}
    registries = settings.get("container_runtime_registries")
    insecure = [
        str(one.get("host"))
        for one in (registries if isinstance(registries, (list, tuple)) else ())
        if isinstance(one, Mapping) and one.get("insecure") is True
    ]
    if insecure:
        before = wanted.get("insecure-registries")
        wanted["insecure-registries"] = list(
            dict.fromkeys([*(before if isinstance(before, (list, tuple)) else ()), *insecure])
        )
    if isinstance(settings.get("container_runtime_live_restore"), bool):
        wanted["live-restore"] = settings["container_runtime_live_restore"]
    return wanted


def confines(host: Host) -> bool:
    """Whether Docker confines containers by SELinux, as it is declared or, without a word of it, as it is."""
    declared = declared_settings(host.box.settings).get("selinux-enabled")
    return declared if isinstance(declared, bool) else host.facts.docker.labels


def _setting(host: Host, key: str, was: str | None, to: str | None) -> Change:
    name = key.partition(".")[0]
    # Where one that leaves uncovers somebody else's value a reload would do: that is known on the host only.
    without = RELOADABLE if to is not None else RESETTING
    return restart(host, f"Docker's {key}", was, to, needed=name not in without)


def restart(host: Host, subject: str, was: str | None, to: str | None, *, needed: bool = True) -> Change:
    """A change for which Docker restarts where that is needed: its containers stop for that."""
    docker = host.facts.docker
    others = 0 if docker.live_restore else docker.containers_running or 0
    count = f"{others} running container{'s stop' if others != 1 else ' stops'}"
    note = f"Docker restarts: {count}" if needed and others else ""
    return Change(ROLE, subject, was, to, interrupts=needed and _serves(host), note=note)


def _knows_cdi(docker: Docker) -> bool:
    return nvidia_smi.version(docker.version or "")[:1] >= (CDI_SINCE,)


def _own(docker: Docker, found: Mapping[str, Any]) -> dict[str, Any]:
    """What the role needs in the file itself; a runtime of somebody else's at another path stays."""
    wanted: dict[str, Any] = {"features.cdi": True} if _knows_cdi(docker) else {}
    path = dict(_leaves(found)).get("runtimes.nvidia.path")
    if not (isinstance(path, str) and path.startswith("/")):
        wanted["runtimes.nvidia.path"] = "nvidia-container-runtime"
    return wanted


def _leaves(document: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    """Dotted settings with their values; lists are values."""
    for key, value in document.items():
        name = f"{path}.{key}" if path else str(key)
        if isinstance(value, Mapping) and value:
            yield from _leaves(value, name)
        else:
            yield name, _masked(value)


def _holds(has: Any, wanted: Any) -> bool:
    """Whether a setting is as declared: lists of several owners need hold only what is declared."""
    if isinstance(has, (list, tuple)) and isinstance(wanted, (list, tuple)):
        return all(one in has for one in wanted)
    return bool(has == wanted)


def _masked(value: Any) -> Any:
    """A value as the facts have it: without the credentials of addresses."""
    if isinstance(value, str):
        return _CREDENTIALS.sub(r"\1***@", value)
    return [_masked(one) for one in value] if isinstance(value, (list, tuple)) else value


def _shown(value: Any) -> str:
    if isinstance(value, exact_json.Number):
        return value.text
    return value if isinstance(value, str) else json.dumps(value, default=str)


def _object(text: str | None) -> Mapping[str, Any]:
    """Settings of a text; none where it cannot be used, which docker-settings-unusable tells."""
    try:
        return exact_json.settings(text)
    except exact_json.NotExact:
        return {}


def _cards(host: Host) -> Iterator[Change]:
    """The CDI specification names every card that answers, and the driver that is installed."""
    docker, driver, kept = host.facts.docker, host.facts.driver, host.facts.kept
    if not _knows_cdi(docker) or docker.toolkit_version is None:
        return
    known = {name.rpartition("=")[2] for name in docker.cdi_devices}
    missing = [str(card.index) for card in host.facts.cards if not card.lost and str(card.index) not in known]
    if missing:
        yield Change(ROLE, "cards known to containers", ", ".join(sorted(known - {"all"})) or None,
                     ", ".join(str(card.index) for card in host.facts.cards))  # fmt: skip
        return
    # The driver that this run brings, for its role comes before this one.
    described, coming = kept.cdi_driver, driver_changes.coming(host)
    if coming:
        yield Change(ROLE, "driver known to containers", described, coming)
        return
    installed = driver.installed_version
    if described and installed and not nvidia_smi.same_version(described, installed):
        yield Change(ROLE, "driver known to containers", described, installed)
