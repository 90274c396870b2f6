"""What the facts have of Docker: from its socket where Docker itself answers there, else from its client."""

import json

import pytest
from ansible.module_utils import docker_said
from ansible.module_utils.command import Result
from ansible.module_utils.docker_api import DockerError

from boxwright.facts.parse_containers import docker, published_ports
from boxwright.facts.raw import Raw

INFO = {"ServerVersion": "26.1.5", "DockerRootDir": "/var/lib/docker", "Runtimes": {"nvidia": {}},
        "ContainersRunning": 1, "LiveRestoreEnabled": True}  # fmt: skip
CONTAINERS = [
    {
        "Names": ["/boxwright-qwen"],
        "Ports": [
            {"IP": "0.0.0.0", "PrivatePort": 8000, "PublicPort": 8001, "Type": "tcp"},
            {"IP": "::", "PrivatePort": 8000, "PublicPort": 8001, "Type": "tcp"},
            {"PrivatePort": 9000, "Type": "tcp"},
        ],
    },
    {"Names": ["/other"], "Ports": []},
]


class Engine:
    def __init__(self, name="Engine", fails=None):
        self.name, self.fails = name, fails

    def about(self):
        if self.fails:
            raise DockerError(self.fails)
        return {"Version": "26.1.5", "Components": [{"Name": self.name}]}

    def info(self):
        return INFO

    def listed(self):
        return CONTAINERS


@pytest.fixture
def client(monkeypatch):
    """A client that says so of itself; the calls of it."""
    called = []

    def run(argv, timeout):
        called.append(argv[1])
        return Result(1, "", "Cannot connect to the Docker daemon")

    monkeypatch.setattr(docker_said, "run", run)
    return called


def test_docker_is_asked_at_its_socket(client):
    data = Raw({"commands": docker_said.look(Engine())})
    assert client == []
    found = docker(data)
    assert (found.version, found.running, found.live_restore) == ("26.1.5", True, True)
    assert (found.runtimes, found.containers_running, found.problem) == (("nvidia",), 1, None)
    assert published_ports(data) == [(8001, "boxwright-qwen")] * 2


@pytest.mark.parametrize("engine", [Engine(fails="Docker does not answer"), Engine(name="Podman Engine")])
def test_of_others_and_of_one_that_is_silent_the_client_tells(client, engine):
    data = Raw({"commands": json.loads(json.dumps(docker_said.look(engine)))})
    assert client == ["version", "info", "ps"]
    assert docker(data).problem == "Cannot connect to the Docker daemon"
    assert published_ports(data) == []
