"""Docker, its images and its published ports, of a raw answer."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from boxwright.facts.model import Docker, Image
from boxwright.facts.origin import origin
from boxwright.facts.parse_hardware import installed_packages
from boxwright.facts.parsers import linux_texts
from boxwright.facts.raw import Raw

_KEPT = re.compile(
    r"^docker|^containerd|^moby-|^runc$|^nvidia-container-|^libnvidia-container|^container-selinux$"
)
#: Packages that bring the engine: Debian's and Ubuntu's, Docker's own.
ENGINE_PACKAGES = ("docker-ce", "docker.io", "moby-engine")


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def docker(data: Raw) -> Docker:
    """The engine and the container toolkit as far as they are there."""
    packages = installed_packages(data)
    package = next((name for name in ENGINE_PACKAGES if name in packages), None)
    said, asked = data.command("docker-info"), data.command("docker-version")
    info = _json(said.stdout)
    info = info if isinstance(info, dict) and info.get("ServerVersion") else {}
    installed = linux_texts.upstream(packages[package]) if package else None
    version = str(info["ServerVersion"]) if info else installed
    toolkit = re.search(r"version\s+v?(\d+\.\d+\.\d+)", data.command("toolkit").stdout)
    listed = data.command("cdi").stdout.splitlines()
    runtimes, swarm, filled = (
        info.get("Runtimes"),
        info.get("Swarm"),
        data.object("docker_traces").get("filled"),
    )
    options = info.get("SecurityOptions")
    return Docker(
        version=version,
        package=package,
        packages={name: text for name, text in packages.items() if _KEPT.search(name)},
        running=bool(info),
        data_root=str(info.get("DockerRootDir") or _declared_root(data) or "/var/lib/docker"),
        cgroup_driver=str(info["CgroupDriver"]) if info.get("CgroupDriver") else None,
        cdi=bool(info.get("CDISpecDirs")),
        cdi_devices=tuple(line.strip() for line in listed if "=" in line and "/" in line),
        runtimes=tuple(sorted(runtimes)) if isinstance(runtimes, Mapping) else (),
        toolkit_version=toolkit.group(1) if toolkit else None,
        daemon_config=data.file("daemon-json") or None,
        origin=origin(data),
        rootless=isinstance(options, list) and any("rootless" in str(one) for one in options),
        labels=isinstance(options, list) and any("name=selinux" in str(one) for one in options),
        swarm=isinstance(swarm, Mapping) and swarm.get("LocalNodeState") in ("active", "pending", "locked"),
        images=_count(info.get("Images")),
        containers=_count(info.get("Containers")),
        containers_running=_count(info.get("ContainersRunning")),
        live_restore=info.get("LiveRestoreEnabled") is True,
        filled=tuple(str(one) for one in filled) if isinstance(filled, (list, tuple)) else (),
        problem=None if info or said.rc in (-1, 127) else (said.text or asked.text)[:300] or None,
    )


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _declared_root(data: Raw) -> str | None:
    config = _json(data.file("daemon-json").lstrip("\ufeff"))
    root = config.get("data-root") if isinstance(config, dict) else None
    return root if isinstance(root, str) else None


def published_ports(data: Raw) -> list[tuple[int, str]]:
    """Host port and container name of every published TCP port."""
    return list(_published(data.command("containers").stdout))


def _published(text: str) -> Iterator[tuple[int, str]]:
    for line in text.splitlines():
        container = _json(line)
        if not isinstance(container, dict):
            continue
        ports = str(container.get("Ports") or "")
        for first, last in re.findall(r":(\d{1,5})(?:-(\d{1,5}))?->[\d-]+/tcp", ports):
            for port in range(int(first), min(int(last or first), 65535) + 1):
                yield port, str(container.get("Names") or "")


def images(data: Raw) -> tuple[Image, ...]:
    """What the engine and the registries say of the images."""
    return tuple(_image(one) for one in data.objects("images"))


def _image(one: Mapping[str, Any]) -> Image:
    size, environment = one.get("size"), one.get("env")
    return Image(
        reference=str(one.get("reference", "")),
        digest=str(one["digest"]) if one.get("digest") else None,
        present=bool(one.get("present")),
        size=size if isinstance(size, int) else None,
        env={str(name): str(text) for name, text in environment.items()}
        if isinstance(environment, Mapping)
        else {},
        error=str(one["error"]) if one.get("error") else None,
        detail=str(one.get("detail") or ""),
    )
