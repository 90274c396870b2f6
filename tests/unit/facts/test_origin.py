"""Where a host's Docker comes from: what its programs, units and sockets tell."""

import pytest

from boxwright.facts.origin import Origin, origin
from boxwright.facts.raw import Raw

PACKAGED = {
    "programs": {
        "docker": {"path": "/usr/bin/docker", "real": "/usr/bin/docker", "podman": False},
        "dockerd": {"path": "/usr/sbin/dockerd", "real": "/usr/sbin/dockerd", "podman": False},
    },
    "units": {
        "docker.service": {"load": "loaded", "active": "active", "program": "/usr/sbin/dockerd"},
        "snap.docker.dockerd.service": {"load": "not-found", "active": "inactive", "program": ""},
    },
    "listeners": [
        {"process": "dockerd", "pid": "7", "cgroup": "0::/system.slice/docker.service\n"},
        {"process": "systemd", "pid": "1", "cgroup": "0::/init.scope\n"},
    ],
    "users": [],
    "filled": [],
}


def read(**changes):
    return origin(Raw({"docker_traces": {**PACKAGED, **changes}}))


def listener(process, cgroup):
    return [{"process": process, "pid": "9", "cgroup": cgroup}]


def program(path, podman=False):
    return {"path": path, "real": path, "podman": podman}


def test_packages():
    assert read() == Origin(program="/usr/sbin/dockerd")


@pytest.mark.parametrize("traces", [None, [], {}, {"programs": 3, "units": [], "listeners": {}, "users": 1}])
def test_nothing_is_known_where_nothing_was_looked_for(traces):
    assert origin(Raw({"docker_traces": traces})) == Origin()


def test_a_snap():
    found = read(
        programs={"docker": program("/snap/bin/docker"), "dockerd": program("/snap/bin/dockerd")},
        units={"snap.docker.dockerd.service": {"load": "loaded"}},
        listeners=listener("dockerd", "0::/system.slice/snap.docker.dockerd.service\n"),
    )
    assert found == Origin("/snap/bin/dockerd", snap=True, holder="snap.docker.dockerd.service")


def test_podman():
    found = read(
        programs={"docker": program("/usr/bin/docker", podman=True), "dockerd": None},
        units={},
        listeners=listener("podman", "0::/system.slice/podman.service\n"),
    )
    assert found == Origin(podman=True, holder="podman.service")


def test_users_daemons():
    assert read(users=[{"user": "me", "socket": "/run/user/1000/docker.sock"}]).rootless == ("me",)


@pytest.mark.parametrize(
    ("cgroup", "holder"),
    [
        ("0::/system.slice/docker.service\n", None),
        (
            "12:cpu:/docker/0a/system.slice/docker.service\n1:name=systemd:/docker/0a/system.slice/docker.service\n",
            None,
        ),
        ("0::/system.slice/my.service\n", "my.service"),
        ("0::/system.slice/system-docker.slice/docker@a.service\n", "docker@a.service"),
        ("0::/user.slice/user-0.slice/session-3.scope\n", "dockerd"),
        ("0::/user.slice/user-0.slice/user@0.service/app.slice/x.service\n", "x.service"),
        ("", "dockerd"),
    ],
)
def test_who_holds_the_socket(cgroup, holder):
    assert read(listeners=listener("dockerd", cgroup)).holder == holder


def test_systemd_listens_for_the_unit_that_it_will_start():
    assert read(listeners=listener("systemd", "0::/init.scope\n")).holder is None
