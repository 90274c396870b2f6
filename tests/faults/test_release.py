"""Ways in which a new release can fail: each leaves the one before it serving."""

import json
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest
import yaml

from boxwright.cli.ansible_run import play

sys.path.insert(0, str(Path(__file__).parent))
from stand_in import image

pytestmark = pytest.mark.lab

ROOT = Path(__file__).resolve().parents[2]
HOST = "release1"
DEPOT = "depot.boxwright.lab:5000"
UNIT = "boxwright-smollm2.service"
TRIAL = f"/run/systemd/system.control/{UNIT}"


class Box:
    """The simulated box, and what is declared of it."""

    def __init__(self, host, place, digest):
        self.host, self.place = host, place
        # By content: a host that has an older one by this name keeps that.
        self.image = f"{DEPOT}/{image.NAME}:{image.TAG}@{digest}"
        self.address = state()["hosts"][HOST]["address"]
        self.do = host.do
        declared = yaml.safe_load((ROOT / "inventory" / "lab" / "group_vars" / "serving.yml").read_text())
        self.deployment = {**declared["box_deployments"][0], "image": self.image}
        (place / "hosts.yml").write_text(yaml.safe_dump({"lab": {"hosts": {HOST: {}}}}))
        (place / "host_vars").mkdir()

    def declare(self, variables=None, **deployment):
        """What the box shall serve from now on; the words that name the inventories."""
        found = {"box_deployments": [{**self.deployment, **deployment}], **(variables or {})}
        (self.place / "host_vars" / f"{HOST}.yml").write_text(yaml.safe_dump(found))
        return ["--inventory", ROOT / "inventory" / "lab", "--inventory", self.place]

    def bring(self, variables=None, **deployment):
        """Bring it there; the failure's message, None without one."""
        words = self.declare(variables, **deployment)
        report = play("../tests/faults/engine.yml", [HOST], words[1::2], quiet=True)
        failure = report.hosts[HOST].failure
        return failure["message"] if failure else None

    @property
    def key(self):
        return self.do("cat", "/etc/boxwright/engines/smollm2/api-key").strip()

    def ask(self, prompt="Name the capital city of France.", timeout=30):
        """The endpoint's answer to a question, asked from outside: status and text."""
        body = {"model": "smollm2", "messages": [{"role": "user", "content": prompt}]}
        request = urllib.request.Request(
            f"http://{self.address}:8000/v1/chat/completions",
            json.dumps(body).encode(),
            {"Content-Type": "application/json", "Authorization": f"Bearer {self.key}"},
        )
        try:
            with urllib.request.urlopen(request, timeout=timeout) as found:
                return found.status, json.load(found)["choices"][0]["message"]["content"]
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError as error:
            return 0, str(error)

    @property
    def release(self):
        """The release whose container runs."""
        label = '{{index .Config.Labels "boxwright.release"}}'
        return self.do("docker", "inspect", "--format", label, "boxwright-smollm2", check=False).strip()

    @property
    def current(self):
        return self.do("readlink", "/var/lib/boxwright/releases/smollm2/current").strip()

    def serves(self):
        """It answers, and is what boots start; its release."""
        status, text = self.ask()
        assert (status, "Paris" in text) == (200, True), text
        assert self.release == self.current
        assert f"release {self.current}" in self.do("cat", f"/etc/systemd/system/{UNIT}")
        assert self.do("ls", TRIAL, check=False) == ""
        return self.current


def state():
    return json.loads((ROOT / ".lab" / "state.json").read_text())


@pytest.fixture(scope="module")
def box(verb, simulated, tmp_path_factory):
    """A box on which the engine of the tests serves."""
    subprocess.run([sys.executable, "-m", "boxwright.lab", "up", HOST], cwd=ROOT, check=True, timeout=900)
    registry = f"http://127.0.0.1:{state()['ports']['registry']}"
    digest = image.push(registry, tmp_path_factory.mktemp("empty"))
    found = Box(simulated(HOST), tmp_path_factory.mktemp("inventory"), digest)
    ran = verb("provision", "--host", HOST, *found.declare())
    assert ran.status == 0, ran.output
    yield found
    subprocess.run([sys.executable, "-m", "boxwright.lab", "down", HOST], cwd=ROOT, check=True, timeout=300)


@pytest.fixture(scope="module")
def well(box):
    """The release that serves and must go on doing so."""
    return box.serves()


FAILURES = [
    ("crash", {}, ["ended with exit status 1", "CUDA out of memory"]),
    ("ends", {}, ["ended with exit status 0"]),
    ("garbled", {}, ["asked what this checkpoint has answered before"]),
]


@pytest.mark.parametrize(("way", "variables", "said"), FAILURES, ids=[row[0] for row in FAILURES])
def test_a_release_that_does_not_serve_makes_way_for_the_one_before(box, well, way, variables, said):
    message = box.bring(variables, env={"STAND_IN": way})
    for text in said:
        assert text in message
    assert f"The release before it, {well}, serves again." in message
    assert box.serves() == well
    failed = message.split("release ")[1].split(" ")[0]
    assert failed != well
    kept = json.loads(box.do("cat", f"/var/lib/boxwright/releases/smollm2/{failed}/failure.json"))
    assert said[0] in kept["what"]
    assert box.key not in message


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"image": f"{DEPOT}/{image.NAME}:v0.30.0"}, "the registry has no"),
        ({"extra_args": {"max-num-queued-reqs": 8}}, "unrecognized arguments: --max-num-queued-reqs"),
    ],
    ids=["image missing", "option removed"],
)
def test_what_cannot_begin_stops_nothing(box, well, changes, said):
    before = box.do("docker", "inspect", "--format", "{{.Id}} {{.State.StartedAt}}", "boxwright-smollm2")
    message = box.bring(**changes)
    assert said in message
    after = box.do("docker", "inspect", "--format", "{{.Id}} {{.State.StartedAt}}", "boxwright-smollm2")
    assert after == before
    assert box.serves() == well
