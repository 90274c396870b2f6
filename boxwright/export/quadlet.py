"""Releases as units of Podman's Quadlet."""

from __future__ import annotations

import shlex

from boxwright.ansible.module_utils.engine_container import NETWORK, PORT
from boxwright.ansible.module_utils.systemd_unit import exec_line, quote, render, specifiers
from boxwright.export.release import (
    HEALTH,
    HEALTH_INTERVAL_S,
    HEALTH_RETRIES,
    HEALTH_TIMEOUT_S,
    START_S,
    Release,
    head,
)

DIRECTORY = "/etc/containers/systemd"


def files(releases: list[Release]) -> dict[str, str]:
    """A `.container` of each release, the guard that it mounts, and their network."""
    found: dict[str, str] = {}
    for one in releases:
        found[f"{one.container.name}.container"] = _container(one)
        if one.guard is not None:
            found[one.guard_file] = one.guard
    if any(not one.container.outgoing for one in releases):
        found[f"{NETWORK}.network"] = _network()
    return found


def _network() -> str:
    comments = [
        "Engines do not reach what is on other networks of Podman's. It has no network that keeps them from",
        "calling out and lets ports be published: where that matters, the host's firewall has to.",
    ]
    return render([("Network", [("NetworkName", NETWORK), ("Options", "isolate=true")])], comments)


def _container(release: Release) -> str:
    box = release.container
    secret = f"{box.name}-key"
    settings = [
        ("ContainerName", box.name),
        ("Image", _image(box.image)),
        ("Pull", "missing"),
        ("RunInit", "true"),
        ("ReadOnly", "true"),
        ("ReadOnlyTmpfs", "false"),
        ("Tmpfs", "/tmp:exec"),
        ("DropCapability", "ALL"),
        ("NoNewPrivileges", "true"),
        *_user(box.user),
        ("ShmSize", box.shm_size),
        ("StopTimeout", str(box.stop_timeout_s)),
        ("Label", quote(f"boxwright.deployment={box.deployment}")),
        ("Label", quote(f"boxwright.release={box.release}")),
        # Podman knows cards by their CDI names alone.
        *(("AddDevice", specifiers(f"nvidia.com/gpu={one}")) for one in box.devices),
        *([] if box.outgoing else [("Network", f"{NETWORK}.network")]),
        ("PublishPort", f"{f'[{box.bind}]' if ':' in box.bind else box.bind}:{box.port}:{PORT}"),
        *(
            ("Volume", _volume(_source(release, one.what, one.source), one.target, one.read_only))
            for one in box.mounts
            if one.what != "key"
        ),
        *(
            ("Secret", f"{secret},type=mount,target={one.target},mode=0440")
            for one in box.mounts
            if one.what == "key"
        ),
        *(("Environment", quote(f"{name}={value}")) for name, value in sorted(box.env.items())),
        ("Entrypoint", release.entrypoint[0]),
        ("Exec", exec_line([release.entrypoint[1:], box.command], width=4)),
        ("HealthCmd", specifiers(shlex.join(HEALTH))),
        ("HealthInterval", f"{HEALTH_INTERVAL_S}s"),
        ("HealthTimeout", f"{HEALTH_TIMEOUT_S}s"),
        ("HealthRetries", str(HEALTH_RETRIES)),
        ("HealthStartPeriod", f"{START_S}s"),
    ]
    text = render(
        [
            (
                "Unit",
                [
                    (
                        "Description",
                        specifiers(f"Boxwright deployment {box.deployment}, release {box.release}"),
                    )
                ],
            ),
            ("Container", settings),
            (
                "Service",
                [
                    ("Restart", "always"),
                    ("RestartSec", "10"),
                    # A pull may come first.
                    ("TimeoutStartSec", str(START_S)),
                    ("TimeoutStopSec", str(box.stop_timeout_s + 30)),
                ],
            ),
            ("Install", [("WantedBy", "multi-user.target")]),
        ]
    )
    steps = [
        "Podman has to know the cards (nvidia-ctk cdi generate), and the key as a secret. As root:",
        f"  podman secret create {secret} {next(one.source for one in box.mounts if one.what == 'key')}",
        "Boxwright's own unit has the same name and has to make room:",
        f"  systemctl stop {box.name}.service && rm /etc/systemd/system/{box.name}.service",
        f"  cp {box.name}* {'' if box.outgoing else f'{NETWORK}.network '}{DIRECTORY}/",
        f"  systemctl daemon-reload && systemctl start {box.name}.service",
    ]
    return head(release, steps) + "\n" + text


def _user(user: str | None) -> list[tuple[str, str]]:
    uid, _, gid = (user or "").partition(":")
    return [("User", uid), ("Group", gid or "0")] if user else []


def _source(release: Release, what: str, source: str) -> str:
    return f"./{release.guard_file}" if what == "guard" else source


def _volume(source: str, target: str, read_only: bool) -> str:
    """A bind mount. Not `Mount=`: the generator tears a path with a comma apart. Raises ValueError."""
    if ":" in source:
        raise ValueError(f"Quadlet cannot mount {source!r}: a colon there ends the path")
    return specifiers(f"{source}:{target}:{'ro' if read_only else 'rw'}")


def _image(reference: str) -> str:
    """The image by its whole name, which podman asks no configuration about; of tag and digest one."""
    name, at, digest = reference.partition("@")
    if at and ":" in name.rpartition("/")[2]:
        name = name.rpartition(":")[0]
    first, slash, _ = name.partition("/")
    if not slash:
        name = f"docker.io/library/{name}"
    elif not (set(".:") & set(first) or first == "localhost"):
        name = f"docker.io/{name}"
    return specifiers(name + at + digest)
