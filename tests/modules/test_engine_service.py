"""A unit on trial lies where a reboot takes it away; the one that has answered lies where boots find it."""

from pathlib import Path

import pytest
from ansible.module_utils import engine_service, systemctl
from ansible.module_utils.docker_api import DockerError, Image
from ansible.module_utils.engine_service import Service
from ansible.module_utils.engine_store import Release

STATE = {"name": "qwen", "reference": "vllm@sha256:1", "command": ["serve", "/model"], "env": {}}


class Docker:
    """A host with one container, started as release "new" says. image_id: the image that it says."""

    image_id, running = "sha256:2", True

    def __init__(self):
        self.removed = []
        self.config = {
            "Image": "vllm@sha256:1",
            "Cmd": ["-c", "…", "boxwright", "serve", "/model"],
            "Labels": {"boxwright.release": "new"},
        }

    def container(self, name):
        return {"State": {"Running": self.running}, "Image": "sha256:1", "Config": self.config}

    def image(self, name):
        return Image(self.image_id, None, 0)

    def remove_container(self, name):
        if self.removed is None:
            raise DockerError("Docker does not answer")
        self.removed.append(name)


@pytest.fixture
def service(tmp_path, monkeypatch, docker, drop_ins):
    state = systemctl.UnitState("loaded", "active", "running", "success", 0, "", 0, True, False)
    monkeypatch.setattr(engine_service.systemctl, "show", lambda unit: state._replace(drop_ins=drop_ins))
    return Service("qwen", docker, str(tmp_path / "etc"), str(tmp_path / "run"))


@pytest.fixture
def docker():
    return Docker()


@pytest.fixture
def drop_ins(tmp_path):
    """Files that change what units say: of all services, and of this one."""
    places = [tmp_path / "service.d" / "10-all.conf", tmp_path / "boxwright-qwen.service.d" / "override.conf"]
    for place in places:
        place.parent.mkdir()
        place.write_text("[Service]\nNice=5\n")
    return tuple(map(str, places))


def release(name):
    return Release(name, STATE, {}, f"unit of {name}\n")


def places(tmp_path):
    return {path.parent.name: path.read_text() for path in tmp_path.glob("*/boxwright-qwen.service")}


def test_on_trial_then_kept(service, tmp_path):
    service.keep(release("old"))
    assert service.install(release("new")) is True
    assert places(tmp_path) == {"etc": "unit of old\n", "run": "unit of new\n"}
    assert service.lacks(release("new")) == []
    assert service.lacks(release("old"))[0] == "its unit is not that of release old"
    assert service.install(release("new")) is False
    assert service.keep(release("new")) is True
    assert places(tmp_path) == {"etc": "unit of new\n"}
    assert service.keep(release("new")) is False


def test_going_back_ends_the_trial(service, tmp_path):
    service.keep(release("old"))
    service.install(release("new"))
    assert service.install(release("old")) is True
    assert places(tmp_path) == {"etc": "unit of old\n"}


def test_removed_wherever_it_is(service, tmp_path, monkeypatch):
    monkeypatch.setattr(engine_service.systemctl, "call", lambda *words, **kw: None)
    service.keep(release("old"))
    service.install(release("new"))
    service.remove()
    assert places(tmp_path) == {}


@pytest.mark.parametrize(
    ("part", "value", "said"),
    [
        ("Image", "other@sha256:1", "its container is of another image: other@sha256:1"),
        (
            "Cmd",
            ["-c", "…", "boxwright", "serve", "/model", "--enforce-eager"],
            "its container's arguments differ: --enforce-eager instead of nothing",
        ),
        ("Labels", {}, "its container is of no release"),
        ("Labels", {"boxwright.release": "old"}, "its container is of release old"),
    ],
)
def test_a_container_that_was_started_otherwise_under_the_same_unit_is_started_anew(
    service, docker, part, value, said
):
    service.keep(release("new"))
    assert service.lacks(release("new")) == []
    docker.config[part] = value
    assert service.lacks(release("new")) == [said]


def test_the_same_image_by_another_name_is_no_other(service, docker):
    service.keep(release("new"))
    docker.config["Image"], docker.image_id = "vllm/vllm-openai:v1", "sha256:1"
    assert service.lacks(release("new")) == []


def test_a_container_that_is_being_started_again_is_not_drift(service, docker):
    service.keep(release("new"))
    docker.running, docker.config["Labels"] = False, {}
    assert service.lacks(release("new")) == []


def test_what_has_systemd_start_something_else_is_found_and_what_does_not_is_left(service, drop_ins):
    assert service.overrides() == []
    for path in drop_ins:
        with Path(path).open("a") as file:
            file.write("ExecStart=\n ExecStart = /usr/bin/docker run other\n")
    assert service.overrides() == [drop_ins[1]]


def test_what_is_stopped_leaves_no_container(service, docker, monkeypatch):
    calls = []
    monkeypatch.setattr(engine_service.systemctl, "call", lambda *words, **kw: calls.append(words))
    service.stop()
    assert calls == [("stop", "boxwright-qwen.service")]
    assert docker.removed == ["boxwright-qwen"]


def test_docker_that_is_down_has_none_to_leave(service, docker, monkeypatch):
    monkeypatch.setattr(engine_service.systemctl, "call", lambda *words, **kw: None)
    docker.removed = None
    service.stop()
