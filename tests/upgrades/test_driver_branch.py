"""Another branch of the driver under a model that is served: one line is edited, the same command run again.

The tests follow one another on one box: it serves on branch 570, a download fails on the way to 580, then it
goes to 580 and back. Whatever happens, the model answers to the key that it had, from the release it had.
"""

import json
import re
import urllib.request
from pathlib import Path

import pytest
import yaml

from boxwright.lab.store.servers.control import Fault, Settings, write

pytestmark = pytest.mark.lab

HOST, UNIT = "lab4", "boxwright-smollm2.service"
ROOT = Path(__file__).resolve().parents[2]
CONTROL = ROOT / ".lab" / "depot" / "control" / "www.json"
DRIVERS = {"570": "570.195.03", "580": "580.105.08"}
PROMPT = "Name the capital city of France."


class Served:
    """The box, its declaration of which one line is edited, and what it answers."""

    def __init__(self, verb, host, inventory):
        self.verb, self.host, self.inventory = verb, host, inventory
        self.file = inventory / "host_vars" / f"{HOST}.yml"
        self.key = self.address = None

    def edit(self, branch):
        """Edit the one line."""
        text = self.file.read_text()
        self.file.write_text(
            re.sub(r"(?m)^nvidia_driver_branch: .*$", f'nvidia_driver_branch: "{branch}"', text)
        )

    def run(self, name, *words):
        own = ["--inventory", ROOT / "inventory" / "lab", "--inventory", self.inventory]
        return self.verb(name, "--host", HOST, *words, *own)

    def answer(self):
        """What the model says to the key that it had at first."""
        body = {
            "model": "smollm2", "messages": [{"role": "user", "content": PROMPT}], "temperature": 0,
            "max_tokens": 16,
        }  # fmt: skip
        request = urllib.request.Request(
            f"{self.address}/v1/chat/completions",
            headers={"Content-Type": "application/json", "Authorization": f"Bearer {self.key}"},
            data=json.dumps(body).encode(),
        )
        with urllib.request.urlopen(request, timeout=120) as answer:
            return json.loads(answer.read())["choices"][0]["message"]["content"]

    def driver(self):
        """What answers, and what is on disk."""
        words = ("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader")
        installed = self.host.do("dpkg-query", "-W", "-f", "${db:Status-Abbrev} ${Version}", "libcuda1")
        return self.host.do(*words).split()[0], installed

    def on(self, branch):
        """See that the whole driver is of this branch, held, and the model back as it was."""
        version = DRIVERS[branch]
        assert self.driver() == (version, f"hi  {version}-1")
        assert self.host.do("dpkg", "--audit") == ""
        assert self.release() == self.first
        assert "Paris" in self.answer()

    def release(self):
        """The release that serves, and its image."""
        current = self.host.do("readlink", "-f", "/var/lib/boxwright/releases/smollm2/current").strip()
        return current, self.host.do("docker", "inspect", "--format", "{{.Image}}", "boxwright-smollm2")

    def whole(self):
        """The host's fingerprint, but for whether the last run of a role can be relied upon."""
        found = self.host.fingerprint()
        files = [line for line in found["files"].splitlines() if "/etc/boxwright/receipts/" not in line]
        return {**found, "files": files}

    def running(self):
        """What stands still where nothing is changed: container and boot."""
        since = self.host.do(
            "docker", "inspect", "--format", "{{.Id}} {{.State.StartedAt}}", "boxwright-smollm2"
        )
        return since, self.host.do("cat", "/proc/sys/kernel/random/boot_id")


@pytest.fixture(scope="module")
def served(verb, simulated, lab_hosts, tmp_path_factory):
    """A box that serves its model on branch 570, from an image whose CUDA this branch still runs."""
    lab_hosts(HOST)
    inventory = tmp_path_factory.mktemp("upgraded")
    serving = yaml.safe_load((ROOT / "inventory" / "lab" / "group_vars" / "serving.yml").read_text())
    [deployment] = serving["box_deployments"]
    declared = {
        "nvidia_driver_branch": "570",
        "box_deployments": [{**deployment, "image": f"{deployment['image']}-cu129"}],
    }
    (inventory / "host_vars").mkdir()
    (inventory / "hosts.yml").write_text(yaml.safe_dump({"lab": {"hosts": {HOST: {}}}}))
    box = Served(verb, simulated(HOST), inventory)
    box.file.write_text(yaml.safe_dump(declared))
    ran = box.run("provision")
    assert ran.status == 0, ran.output
    box.address = re.search(r"endpoint +(http://\S+)/v1 ", ran.output)[1]
    box.key = box.run("key").stdout.strip()
    box.first = box.release()
    return box


@pytest.fixture
def depot():
    """Break the depot's files; it is whole again afterwards."""
    yield lambda *faults: write(CONTROL, Settings(faults))
    write(CONTROL, Settings())


def test_it_serves_on_the_lower_branch(served):
    served.on("570")


@pytest.mark.parametrize(
    "fault",
    [
        Fault("drop", path="*/libnvidia-ml1_580*", after_bytes=5000),
        Fault("status", path="*/libnvidia-ptxjitcompiler1_580*", status=503),
    ],
    ids=("cut in the middle", "not there"),
)
def test_a_package_whose_download_fails_leaves_the_running_model_running(served, depot, fault):
    served.edit("580")
    before, running = served.whole(), served.running()
    # What an earlier try brought is taken from apt's own store.
    served.host.do("apt-get", "clean")
    depot(fault)
    ran = served.run("provision")
    assert ran.status == 1, ran.output
    said = " ".join(ran.output.split())
    assert "the packages cannot be downloaded, nothing was changed" in said
    assert fault.path.strip("*/_580") in said, "the package is named"
    assert served.whole() == before
    assert served.running() == running
    served.on("570")


def test_one_line_edited_is_the_upgrade_and_the_model_comes_back(served):
    served.edit("580")
    planned = served.run("plan", "--json")
    assert planned.status == 0, planned.output
    assert "driver 570.195.03 -> branch 580, reboot" in [one["text"] for one in planned.json["changes"]]
    ran = served.run("provision")
    assert ran.status == 0, ran.output
    assert "Paris" in re.search(r"answered +(.+)", ran.output)[1]
    served.on("580")


def test_again_nothing_changes(served):
    running = served.running()
    ran = served.run("provision", "--full", "--json")
    assert ran.status == 0, ran.output
    assert ran.json["hosts"][HOST]["changed"] == 0, ran.json["hosts"][HOST]["changes"]
    assert served.running() == running


def test_the_same_line_brings_it_back(served):
    served.edit("570")
    ran = served.run("provision")
    assert ran.status == 0, ran.output
    assert "Paris" in re.search(r"answered +(.+)", ran.output)[1]
    served.on("570")
    left = served.host.do("find", "/etc/apt", "/etc/modprobe.d", "-name", "*580*")
    assert left == ""
    assert UNIT in served.host.do("systemctl", "list-units", "--state=active", "--plain", "--no-legend", UNIT)
