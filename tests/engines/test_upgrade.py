"""From one real release of vLLM to another and back, while requests come in; the tests run in this order."""

import datetime
import json
import sys
import time
from pathlib import Path

import pytest
import yaml

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "faults"))
from load import Load
from stand_in import image
from stand_in.box import DEPOT, lab

pytestmark = pytest.mark.lab

ROOT = Path(__file__).resolve().parents[2]
HOST, NEIGHBOUR, UNIT = "upgrade1", "neighbour1", "boxwright-smollm2"
OLD, NEW = "0.29.0", "0.32.0"
#: Seconds without an answer, beyond what the engine itself takes from its process to its first answer.
MOST_S = 2.0


class Box:
    """The simulated box, and what is declared of it."""

    def __init__(self, host, verb, place):
        self.do, self.verb, self.place = host.do, verb, place
        self.address = json.loads((ROOT / ".lab" / "state.json").read_text())["hosts"][HOST]["address"]
        (place / "hosts.yml").write_text(yaml.safe_dump({"lab": {"hosts": {HOST: {}}}}))
        (place / "host_vars").mkdir()

    def declared(self, release, **changes):
        """The words that name an inventory with this release of the engine."""
        given = yaml.safe_load((ROOT / "inventory" / "lab" / "group_vars" / "serving.yml").read_text())
        [deployment] = given["box_deployments"]
        image = deployment["image"].rpartition(":")[0] + f":v{release}"
        found = {"box_deployments": [{**deployment, "image": image, **changes}]}
        (self.place / "host_vars" / f"{HOST}.yml").write_text(yaml.safe_dump(found))
        return ["--inventory", ROOT / "inventory" / "lab", "--inventory", self.place]

    def run(self, *words, release):
        ran = self.verb(*words, "--host", HOST, *self.declared(release), "--json")
        assert ran.status == 0, ran.output
        return ran.json

    @property
    def key(self):
        return self.do("cat", "/etc/boxwright/engines/smollm2/api-key").strip()

    @property
    def current(self):
        return self.do("readlink", "/var/lib/boxwright/releases/smollm2/current").strip()

    def load(self):
        return Load(self.address, 8000, self.key, "smollm2")

    def version(self):
        return self.do(
            "docker",
            "exec",
            UNIT,
            "python3",
            "-c",
            "import importlib.metadata as m; print(m.version('vllm'))",
        ).strip()

    def own_answer(self):
        """Seconds from its listening to its first answer of an engine that is started by itself.

        Its clients are those of a change of engines, and nobody examines it.
        """
        with self.load() as load:
            self.do("systemctl", "stop", UNIT, timeout=300)
            began = time.time()
            self.do("systemctl", "start", UNIT, timeout=300)
            until = time.monotonic() + 600
            while not (found := [one.ended for one in load.answered() if one.sent > began]):
                assert time.monotonic() < until, "it does not come back"
                time.sleep(0.2)
        return min(found) - self.start_seconds()[1]

    def start_seconds(self):
        """What of the engine's start its log tells: when its process began, and when it listened."""
        text = self.do("docker", "inspect", "--format", "{{.State.StartedAt}}", UNIT).strip()
        began = datetime.datetime.fromisoformat(text[:26].rstrip("Z") + "+00:00").timestamp()
        lines = self.do("journalctl", "--no-pager", "-o", "short-unix", "-t", UNIT).splitlines()
        listening = [float(line.split()[0]) for line in lines if "Application startup complete" in line]
        return began, listening[-1]


#: Said from inside of the container: who it is, what it may do, and where it can write.
INSIDE = """\
import json, os

def may_write(place):
    try:
        open(os.path.join(place, "boxwright-probe"), "w").close()
        return True
    except OSError:
        return False

status = dict(line.rstrip().split(":", 1) for line in open("/proc/1/status"))
places = ("/", "/etc", "/usr/local", "/model", "/run/boxwright", "/tmp", "/cache")
print(json.dumps({
    "user": [os.getuid(), os.getgid()],
    "engine": status["Uid"].split()[0],
    "capabilities": [int(status[name], 16) for name in ("CapPrm", "CapEff", "CapBnd", "CapAmb")],
    "no_new_privileges": status["NoNewPrivs"].strip(),
    "writes": [place for place in places if may_write(place)],
    "shared_memory": os.statvfs("/dev/shm").f_blocks * os.statvfs("/dev/shm").f_frsize,
}))
"""
#: Connects to every port of an address.
SCAN = """\
import socket, sys
from concurrent.futures import ThreadPoolExecutor

def answers(port):
    with socket.socket() as probe:
        probe.settimeout(3)
        return probe.connect_ex((sys.argv[1], port)) == 0

with ThreadPoolExecutor(64) as pool:
    found = list(pool.map(answers, range(1, 65536)))
print(*[port for port, open_ in enumerate(found, 1) if open_])
"""


@pytest.fixture(scope="module")
def box(verb, simulated, tmp_path_factory):
    """A box on which the old release serves."""
    lab("up", HOST)
    lab("engine", OLD)
    found = Box(simulated(HOST), verb, tmp_path_factory.mktemp("inventory"))
    found.run("provision", release=OLD)
    assert found.version().startswith(OLD)
    yield found
    lab("down", HOST)


@pytest.fixture(scope="module")
def neighbour(box, simulated):
    """Another machine of the network."""
    lab("up", NEIGHBOUR)
    yield simulated(NEIGHBOUR)
    lab("down", NEIGHBOUR)


def through(box, load, what):
    """Hold what clients saw of a change of engines against what it may have cost them."""
    before, after = load.gap()
    began, listening = box.start_seconds()
    assert before < listening < after, "the longest time without an answer was another one"
    own = listening - began + box.own_answer()
    figures = {
        "what": what,
        "requests": load.outcomes(),
        "without_an_answer_s": round(after - before, 2),
        "own_start_s": round(own, 2),
        "beyond_it_s": round(after - before - own, 2),
        "end_of_the_old_one_s": round(began - before, 2),
        "process_to_listening_s": round(listening - began, 2),
        "first_answer_after_listening_s": round(after - listening, 2),
    }
    print(json.dumps(figures))
    # Who connects in the instant in which the old engine ends is cut off without a word, as who comes later
    # is refused; what was sent before its last answer has one.
    broken = [one for one in load.requests if one.outcome == "broken off" and one.sent < before]
    assert broken == []
    running = [one for one in load.requests if one.sent < before < one.ended + 0.01 and one.kind == "long"]
    assert running or any(one.kind == "long" and one.ended == before for one in load.requests)
    turned = [one for one in load.requests if one.outcome == "turned away"]
    assert turned, "nobody asked while the old engine finished what it had"
    assert all(int(one.retry_after) > 0 for one in turned)
    assert figures["beyond_it_s"] <= MOST_S, figures


def test_an_upgrade_under_load(box):
    old = box.current
    with box.load() as load:
        found = box.run("provision", release=NEW)
    assert found["hosts"][HOST]["changed"] > 0
    assert box.version().startswith(NEW)
    assert box.current != old
    through(box, load, f"upgrade {OLD} -> {NEW}")


def test_a_rollback_under_load(box):
    new = box.current
    with box.load() as load:
        found = box.run("rollback", release=NEW)["hosts"][HOST]
    assert found["changed"] is True
    assert f"v{OLD}" in found["image"]
    assert "Paris" in found["serving"]["answer"]
    assert box.current == found["serving"]["release"] != new
    assert box.version().startswith(OLD)
    through(box, load, f"rollback {NEW} -> {OLD}")


def test_the_key_is_changed_by_its_verb_alone(box):
    before = box.key
    with box.load() as old:
        shown = box.run("key", "--rotate", release=OLD)
    assert shown == {HOST: {"key": box.key, "failure": None}}
    assert box.key != before
    assert box.load().ask("short").outcome == "answered"
    refused = old.ask("short")
    assert (refused.outcome, "Unauthorized" in refused.said) == ("broken off", True)
    kept = box.key
    found = box.run("provision", release=OLD)
    assert found["hosts"][HOST]["changed"] == 0, found["hosts"][HOST]["changes"]
    assert box.key == kept


def test_the_container_may_do_no_more_than_it_must(box):
    seen = json.loads(box.do("docker", "exec", UNIT, "python3", "-c", INSIDE))
    assert seen == {
        "user": [2000, 0],
        "engine": "2000",
        "capabilities": [0, 0, 0, 0],
        "no_new_privileges": "1",
        "writes": ["/tmp", "/cache"],
        "shared_memory": 2 << 30,
    }
    [told] = json.loads(box.do("docker", "inspect", UNIT))
    host = told["HostConfig"]
    assert (host["ReadonlyRootfs"], host["Privileged"], host["CapDrop"]) == (True, False, ["ALL"])
    assert (host["IpcMode"], host["PidMode"], host["NetworkMode"]) == ("private", "", "boxwright")
    assert [mount["Destination"] for mount in told["Mounts"] if mount["RW"]] == ["/cache"]
    assert box.key not in json.dumps(told)


def test_a_neighbour_finds_only_what_was_declared(box, neighbour):
    ports = neighbour.do("python3", "-c", SCAN, box.address, timeout=600).split()
    assert ports == ["22", "8000"]
    assert box.load().ask("short").outcome == "answered"


def test_a_release_that_fails_makes_way_for_the_real_engine(box, tmp_path):
    """The image of an engine that ends at its start, and then the one before it, which has to load again."""
    before, key = box.current, box.key
    (tmp_path / "empty").mkdir()
    ports = json.loads((ROOT / ".lab" / "state.json").read_text())["ports"]
    digest = image.push(f"http://127.0.0.1:{ports['registry']}", tmp_path / "empty")
    words = box.declared(OLD, image=f"{DEPOT}/{image.NAME}:{image.TAG}@{digest}", env={"STAND_IN": "crash"})
    ran = box.verb("provision", "--host", HOST, *words)
    assert ran.status == 1, ran.output
    assert "CUDA out of memory" in ran.output
    assert f"The release before it, {before}, serves again." in ran.output
    assert (box.current, box.key) == (before, key)
    assert box.version().startswith(OLD)
    assert box.load().ask("short").outcome == "answered"
