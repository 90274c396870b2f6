"""Rules about Docker: which one the host has, and what a change of its settings would do to what is in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from boxwright.facts.parsers import exact_json
from boxwright.planner.case import Case, Host
from boxwright.planner.changes.runtime import declared_settings
from boxwright.planner.rules.registry import Note, host_gate, note
from boxwright.planner.rules.words import shown

#: Where packages put programs; what lies elsewhere somebody put there.
PACKAGED = ("/usr/bin/", "/usr/sbin/", "/bin/", "/sbin/", "/usr/libexec/")
#: Engine packages by the source that brings them.
PACKAGES = {"distribution": "docker.io", "vendor": "docker-ce"}


def _daemon(host: Host) -> Mapping[str, Any]:
    return declared_settings(host.box.settings)


@host_gate("docker-from-snap", source="https://github.com/NVIDIA/nvidia-docker/issues/1352")
def from_snap(host: Host, cases: Sequence[Case]) -> Note | None:
    """A snap is locked in: its Docker sees /home and its own directories, and no NVIDIA container toolkit.

    It also updates itself when it likes, and every container stops for that.
    """
    docker = host.facts.docker
    holds = (docker.origin.holder or "").startswith("snap.")
    if not docker.origin.snap or (docker.package and not holds):
        return None
    return note(
        "Docker is a snap on this host: it cannot see the model store or the container toolkit, and updates "
        "itself while it serves",
        "snap remove docker (snap save docker first, where its containers are of worth), then run again",
        at="container_runtime_source",
    )


@host_gate(
    "docker-is-podman", source="https://docs.podman.io/en/latest/markdown/podman-system-service.1.html"
)
def is_podman(host: Host, cases: Sequence[Case]) -> Note | None:
    """podman-docker calls Podman by Docker's name. It has no daemon, and units that require one do not start.

    Podman may stay: only its place at `docker` and /run/docker.sock is needed.
    """
    if not host.facts.docker.origin.podman:
        return None
    return note(
        "the command docker is Podman on this host, which has no docker.service to bind engines to",
        f"{'dnf' if host.facts.os.manager == 'dnf' else 'apt-get'} remove podman-docker (podman itself may "
        "stay), then run again",
        at="container_runtime_source",
    )


@host_gate("docker-rootless", source="https://docs.docker.com/engine/security/rootless/")
def is_rootless(host: Host, cases: Sequence[Case]) -> Note | None:
    """A daemon that a user runs without root has images of its own and may not set device rules.

    The toolkit would need no-cgroups for it, and engines are units of the system's daemon. Beside a system
    daemon that runs, users may have theirs.
    """
    docker = host.facts.docker
    users = docker.origin.rootless
    if not docker.rootless and (not users or (docker.running and docker.package)):
        return None
    whose = f"of {', '.join(shown(user) for user in users)} " if users else ""
    return note(
        f"the Docker {whose}on this host runs rootless, and the system's own does not run: it takes a daemon "
        "of the system's to give cards to engines",
        "as that user: dockerd-rootless-setuptool.sh uninstall; then run again",
        "start the system's daemon beside it: systemctl enable --now docker",
        at="container_runtime_source",
    )


@host_gate("docker-not-from-packages", source="https://docs.docker.com/engine/install/binaries/")
def not_from_packages(host: Host, cases: Sequence[Case]) -> Note | None:
    """A daemon that somebody unpacked by hand cannot be held at its version, and shadows the packages' own.

    Docker's documentation has such binaries for trying things out only.
    """
    docker = host.facts.docker
    program = docker.origin.program
    if program is None or docker.origin.snap or docker.origin.podman:
        return None
    if docker.package and program.startswith(PACKAGED):
        return None
    owner = f"not that of {docker.package}" if docker.package else "of no package that is known"
    return note(
        f"the Docker daemon of this host is {shown(program)}, {owner}: it can be neither held nor upgraded",
        "stop it and remove its programs and its unit, then run again: the images stay in its data root",
        at="container_runtime_source",
    )


@host_gate("docker-of-another-unit", source="https://docs.docker.com/engine/daemon/start/")
def of_another_unit(host: Host, cases: Sequence[Case]) -> Note | None:
    """The packages' docker.service cannot listen where another daemon does, and would share its data root.

    Two daemons on one data root damage it.
    """
    docker = host.facts.docker
    holder = docker.origin.holder
    if holder is None or docker.origin.snap or docker.origin.podman:
        return None
    return note(
        f"/run/docker.sock is held by {shown(holder)}, not by docker.service: its settings and its "
        "restarts are not those that the role would change",
        f"stop and disable {holder}, then systemctl enable --now docker",
        at="container_runtime_source",
    )


@host_gate("docker-of-another-package", source="https://docs.docker.com/engine/install/debian/")
def of_another_package(host: Host, cases: Sequence[Case]) -> Note | None:
    """Another engine in the place of the one that is there would stop every container.

    It may also not read what they left.
    """
    package = host.facts.docker.package
    source = str(host.box.settings.get("container_runtime_source") or "distribution")
    wanted = PACKAGES.get(source)
    if package is None or wanted is None or package == wanted:
        return None
    if host.facts.os.manager == "dnf" and source == "distribution":
        return None  # there is none, which is told of its own
    other = next((name for name, one in PACKAGES.items() if one == package), None)
    return note(
        f"Docker is installed from the package {package}, and container_runtime_source is {source}, which "
        f"means {wanted}",
        *([f"container_runtime_source: {other}"] if other else []),
        f"remove {package} yourself first",
        at="container_runtime_source",
    )


@host_gate("no-docker-of-the-distribution", source="https://docs.docker.com/engine/install/rhel/")
def no_docker_of_the_distribution(host: Host, cases: Sequence[Case]) -> Note | None:
    """Red Hat's family has Podman in Docker's place, and its package `docker` is Podman's.

    Docker's own packages are made for it, and need container-selinux, which comes with them.
    """
    system, source = host.facts.os, host.box.settings.get("container_runtime_source")
    if system.manager != "dnf" or not host.facts.recorded or source == "vendor":
        return None
    return note(
        f"{system.name or system.id} has no Docker of its own, and the distribution's is declared",
        "container_runtime_source: vendor",
        at="container_runtime_source",
    )


@host_gate("data-root-moves", source="https://docs.docker.com/engine/daemon/#daemon-data-directory")
def data_root_moves(host: Host, cases: Sequence[Case]) -> Note | None:
    """Docker sees only what lies in its data root: a move leaves images and containers behind, unseen.

    They keep their room, too. What was brought to the new place before the run is found there.
    """
    docker = host.facts.docker
    root = _daemon(host).get("data-root")
    if not isinstance(root, str) or root.rstrip("/") == docker.data_root.rstrip("/"):
        return None
    images, containers = docker.images or 0, docker.containers or 0
    if root in docker.filled or not (images or containers):
        return None
    return note(
        f"{images} images and {containers} containers lie in {docker.data_root}; with {shown(root)} Docker "
        "would not see them, and they would keep their room",
        f"systemctl stop docker docker.socket, then rsync -aHAX {docker.data_root}/ {root}/ and run again",
        "remove the containers and images first, where they may go (docker rm, docker image prune -a)",
        f"data-root: {docker.data_root}",
        at="container_runtime_daemon_config",
    )


@host_gate(
    "docker-settings-unusable",
    source="https://docs.docker.com/reference/cli/dockerd/#daemon-configuration-file",
)
def settings_unusable(host: Host, cases: Sequence[Case]) -> Note | None:
    """Docker's daemon.json is other people's too: what is put into it must leave the rest as it is.

    A file that is no JSON, in which a key stands twice (which of the two counts, no one sees), or with a
    number that no program reads, cannot be written back as it was meant.
    """
    try:
        exact_json.settings(host.facts.docker.daemon_config)
    except exact_json.NotExact as error:
        return note(
            f"/etc/docker/daemon.json:{error.line} cannot be kept as it is: {error} (column {error.column})",
            "mend that line on the box; Docker itself says what it thinks of the file: dockerd --validate",
        )
    return None


@host_gate("live-restore-in-swarm", source="https://docs.docker.com/engine/daemon/live-restore/")
def live_restore_in_swarm(host: Host, cases: Sequence[Case]) -> Note | None:
    """A daemon that is part of a swarm does not start with live-restore."""
    if _daemon(host).get("live-restore") is not True or not host.facts.docker.swarm:
        return None
    return note(
        "this host's Docker is part of a swarm, and live-restore is declared: Docker would not start again",
        "container_runtime_live_restore: false",
        "docker swarm leave, where the swarm is not used",
        at="container_runtime_live_restore",
    )
