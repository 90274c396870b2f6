"""A unit on trial lies where a reboot takes it away; the one that has answered lies where boots find it."""

import pytest
from ansible.module_utils import engine_service, systemctl
from ansible.module_utils.engine_service import Service
from ansible.module_utils.engine_store import Release


class Docker:
    def container(self, name):
        return {"State": {"Running": True}, "Config": {"Labels": {"boxwright.release": "new"}}}


@pytest.fixture
def service(tmp_path, monkeypatch):
    state = systemctl.UnitState("loaded", "active", "running", "success", 0, "", 0, True, False)
    monkeypatch.setattr(engine_service.systemctl, "show", lambda unit: state)
    return Service("qwen", Docker(), str(tmp_path / "etc"), str(tmp_path / "run"))


def release(name):
    return Release(name, {}, {}, f"unit of {name}\n")


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
    monkeypatch.setattr(engine_service, "run", lambda *words, **kw: None)
    service.keep(release("old"))
    service.install(release("new"))
    service.remove()
    assert places(tmp_path) == {}
