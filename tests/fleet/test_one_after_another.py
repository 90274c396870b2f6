"""Two boxes behind a gateway, changed while clients stream from it; the tests follow one another.

The engine is the real one, of two releases. Every request is counted.
"""

import contextlib
import csv
import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "faults"))
from clients import Clients
from stand_in import image
from stand_in.box import DEPOT, lab, registry, state

pytestmark = pytest.mark.lab

ROOT = Path(__file__).resolve().parents[2]
GATE, BOXES, UNIT = "fleetgate", ("fleet1", "fleet2"), "boxwright-smollm2"
OLD, NEW = "0.29.0", "0.32.0"
CLIENT = {"name": "load", "key": "the-key-of-the-load"}
#: Requests that a change must have seen, lest it was over before anybody asked.
FEWEST = 20
#: Asks HAProxy one thing.
ASK = """\
import socket, sys
with socket.socket(socket.AF_UNIX) as channel:
    channel.connect("/run/boxwright-gateway/admin.sock")
    channel.sendall(sys.argv[1].encode() + b"\\n")
    print(channel.makefile().read())
"""
VERSION = "import importlib.metadata as m; print(m.version('vllm'))"


class Fleet:
    """The gateway and its boxes, and what is declared of them."""

    def __init__(self, verb, simulated, place):
        self.verb, self.place = verb, place
        self.gate = simulated(GATE)
        self.boxes = {name: simulated(name) for name in BOXES}
        (place / "hosts.yml").write_text(yaml.safe_dump({"lab": {"hosts": dict.fromkeys((GATE, *BOXES))}}))
        (place / "host_vars").mkdir()
        self.address = state()["hosts"][GATE]["address"]
        self.write(
            GATE,
            {
                "gateway_boxes": list(BOXES),
                "gateway_clients": [CLIENT],
                "gateway_names": [self.address],
            },
        )

    def write(self, host, variables):
        (self.place / "host_vars" / f"{host}.yml").write_text(yaml.safe_dump(variables))

    def declare(self, **releases):
        """What each box shall serve: a release of the engine, or what is otherwise in its deployment."""
        given = yaml.safe_load((ROOT / "inventory" / "lab" / "group_vars" / "serving.yml").read_text())
        [deployment] = given["box_deployments"]
        repository = deployment["image"].rpartition(":")[0]
        for name, what in releases.items():
            own = {"image": f"{repository}:v{what}"} if isinstance(what, str) else what
            self.write(name, {**given, "box_deployments": [{**deployment, **own}]})

    def provision(self, *hosts):
        """The verb on these hosts, in this order; by default on all."""
        words = ["--inventory", ROOT / "inventory" / "lab", "--inventory", self.place]
        return self.verb("provision", "--host", ",".join(hosts or (GATE, *BOXES)), *words)

    def clients(self):
        authority = self.place / ".boxwright-ca" / "ca.pem"
        return Clients(self.address, 8443, CLIENT["key"], "smollm2", authority)

    def versions(self):
        """The release of the engine that runs on each box."""
        argv = ("docker", "exec", UNIT, "python3", "-c", VERSION)
        return {name: box.do(*argv).strip().partition("+")[0] for name, box in self.boxes.items()}

    def runs(self, name):
        """Which container serves, and since when."""
        return self.boxes[name].do("docker", "inspect", "--format", "{{.Id}} {{.State.StartedAt}}", UNIT)

    def seen(self):
        """Each box's status and requests at work, as its gateway has them."""
        rows = csv.DictReader(self.ask("show stat").lstrip("# ").splitlines())
        found = [row for row in rows if row["pxname"] == "model.smollm2" and row["svname"] in BOXES]
        return {row["svname"]: (row["status"], int(row["scur"])) for row in found}

    def ask(self, words):
        """What the gateway's HAProxy answers."""
        return self.gate.do("python3", "-c", ASK, words)

    def in_use(self):
        """The boxes that the gateway sends requests to."""
        return sorted(name for name, (status, _) in self.seen().items() if status.startswith("UP"))

    def until(self, what, seconds):
        """Wait for it. what: says whether it is so."""
        end = time.time() + seconds
        while not what():
            assert time.time() < end, self.seen()
            time.sleep(0.5)

    @contextlib.contextmanager
    def load(self, what):
        """Clients while the block runs; afterwards the figures are shown."""
        with self.clients() as clients:
            time.sleep(5)
            yield clients
            time.sleep(5)
        print(json.dumps({"what": what, **clients.figures()}))


@pytest.fixture(scope="module")
def fleet(verb, simulated, tmp_path_factory):
    """Both boxes serve the old release behind their gateway."""
    subprocess.run(
        [sys.executable, "-m", "boxwright.lab", "up", GATE, "--rig", "none"],
        cwd=ROOT,
        check=True,
        timeout=1800,
    )
    lab("up", *BOXES)
    lab("engine", OLD)
    found = Fleet(verb, simulated, tmp_path_factory.mktemp("inventory"))
    found.declare(**dict.fromkeys(BOXES, OLD))
    ran = found.provision()
    assert ran.status == 0, ran.output
    assert found.versions() == dict.fromkeys(BOXES, OLD)
    assert found.in_use() == list(BOXES)
    assert found.clients().ask("stream").failure == ""
    yield found
    lab("down", GATE, *BOXES)


def none_failed(clients):
    assert clients.failed == []
    assert len(clients.requests) >= FEWEST


def test_a_rolling_upgrade_loses_no_request(fleet):
    fleet.declare(**dict.fromkeys(BOXES, NEW))
    with fleet.load(f"rolling upgrade {OLD} -> {NEW}") as clients:
        ran = fleet.provision()
    assert ran.status == 0, ran.output
    none_failed(clients)
    assert fleet.versions() == dict.fromkeys(BOXES, NEW)
    assert fleet.in_use() == list(BOXES)
    said = [line for line in ran.output.splitlines() if f"its gateway {GATE}" in line]
    assert [line.partition(":")[0] for line in said] == ["fleet1", "fleet1", "fleet2", "fleet2"], said


def test_what_is_as_declared_is_not_drained(fleet):
    before = {name: fleet.runs(name) for name in BOXES}
    with fleet.load("nothing to change") as clients:
        ran = fleet.provision()
    assert (ran.status, "its gateway" in ran.output) == (0, False), ran.output
    assert clients.failed == []
    assert {name: fleet.runs(name) for name in BOXES} == before


def test_what_a_run_left_out_of_use_is_back_after_the_next(fleet):
    fleet.ask("set server model.smollm2/fleet1 state drain")
    assert fleet.in_use() == ["fleet2"]
    ran = fleet.provision(*BOXES)
    assert ran.status == 0, ran.output
    assert "new requests again for fleet1" in ran.output
    assert fleet.in_use() == list(BOXES)


@pytest.fixture(scope="module")
def broken(fleet, tmp_path_factory):
    """A release whose engine ends at its start."""
    digest = image.push(registry(), tmp_path_factory.mktemp("empty"))
    return {"image": f"{DEPOT}/{image.NAME}:{image.TAG}@{digest}", "env": {"STAND_IN": "crash"}}


def test_a_second_box_that_fails_ends_the_roll_and_no_request(fleet, broken):
    fleet.declare(fleet1=OLD, fleet2=broken)
    with fleet.load("the second box's new release is broken") as clients:
        ran = fleet.provision()
    assert ran.status == 1, ran.output
    none_failed(clients)
    said = " ".join(ran.output.split())
    assert "fleet2: failed at engine: " in said
    assert "CUDA out of memory" in said
    assert f"{GATE}: not begun: the roll ended at fleet2" in said
    assert fleet.versions() == {"fleet1": OLD, "fleet2": NEW}
    assert fleet.in_use() == list(BOXES)


def test_the_rest_is_as_it_was_after_a_first_box_that_fails(fleet, broken):
    fleet.declare(fleet1=NEW, fleet2=broken)
    before = fleet.runs("fleet1")
    with fleet.load("the first box's new release is broken") as clients:
        ran = fleet.provision("fleet2", "fleet1")
    assert ran.status == 1, ran.output
    assert clients.failed == []
    said = " ".join(ran.output.split())
    assert "fleet1: not begun: the roll ended at fleet2" in said
    assert "what serves was not touched" in said
    assert "./invoke provision --host fleet2 --host fleet1" in said
    assert fleet.runs("fleet1") == before
    assert fleet.in_use() == list(BOXES)


def test_a_box_that_loses_its_power_ends_only_answers_that_it_had_begun(fleet):
    box = fleet.boxes["fleet2"].container
    with fleet.load("a box loses its power") as clients:
        # Both clients' requests are at work on the one that is going to be lost.
        fleet.ask("set server model.smollm2/fleet1 state drain")
        fleet.until(lambda: fleet.seen()["fleet1"][1] == 0 and fleet.seen()["fleet2"][1] == 2, 60)
        fleet.ask("set server model.smollm2/fleet1 state ready")
        subprocess.run(["docker", "kill", box], check=True, capture_output=True, timeout=60)
        cut = time.time()
        try:
            fleet.until(lambda: fleet.in_use() == ["fleet1"], 60)
            time.sleep(30)
        finally:
            subprocess.run(["docker", "start", box], check=True, capture_output=True, timeout=60)
        fleet.until(lambda: fleet.in_use() == list(BOXES), 300)
    # One whose answer had begun has ended with its box, one of which nothing had come went to the other box.
    failed = clients.failed
    assert [(one.kind, one.running(cut)) for one in failed] == [("stream", True)], failed
    assert [one.kind for one in clients.requests if one.running(cut) and one not in failed] == ["whole"]
    assert len(clients.requests) >= FEWEST
