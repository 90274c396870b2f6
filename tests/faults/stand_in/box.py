"""A simulated box with the engine of the tests on it, and what is declared of it."""

import contextlib
import json
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import yaml

from boxwright.cli.ansible_run import play

sys.path.insert(0, str(Path(__file__).parents[1]))
from stand_in import image

ROOT = Path(__file__).resolve().parents[3]
DEPOT = "depot.boxwright.lab:5000"
UNIT = "boxwright-smollm2.service"
TRIAL = f"/run/systemd/system.control/{UNIT}"
#: Says which container runs, and since when.
RUNS = ("docker", "inspect", "--format", "{{.Id}} {{.State.StartedAt}}", "boxwright-smollm2")


class Box:
    """The simulated box, and what is declared of it."""

    def __init__(self, host, place, digest):
        self.host, self.name, self.place = host, host.name, place
        # By content: a host that has an older one by this name keeps that.
        self.image = f"{DEPOT}/{image.NAME}:{image.TAG}@{digest}"
        self.address = state()["hosts"][self.name]["address"]
        self.do = host.do
        declared = yaml.safe_load((ROOT / "inventory" / "lab" / "group_vars" / "serving.yml").read_text())
        self.deployment = {**declared["box_deployments"][0], "image": self.image}
        (place / "hosts.yml").write_text(yaml.safe_dump({"lab": {"hosts": {self.name: {}}}}))
        (place / "host_vars").mkdir()

    def declare(self, variables=None, *others, **deployment):
        """What the box shall serve from now on; the words that name the inventories.

        others: further deployments, each as it differs from the first. What is None is left out.
        """
        first = {
            name: value for name, value in {**self.deployment, **deployment}.items() if value is not None
        }
        found = {"box_deployments": [first, *({**first, **one} for one in others)], **(variables or {})}
        (self.place / "host_vars" / f"{self.name}.yml").write_text(yaml.safe_dump(found))
        return ["--inventory", ROOT / "inventory" / "lab", "--inventory", self.place]

    def bring(self, variables=None, *others, **deployment):
        """Bring it there; the failure's message, None without one."""
        words = self.declare(variables, *others, **deployment)
        report = play("../tests/faults/engine.yml", [self.name], words[1::2], quiet=True)
        failure = report.hosts[self.name].failure
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


@contextlib.contextmanager
def up(name, simulated, verb, scratch):
    """A box on which the engine of the tests serves. scratch: makes a directory of a name."""
    lab("up", name)
    digest = image.push(registry(), scratch("empty"))
    found = Box(simulated(name), scratch("inventory"), digest)
    ran = verb("provision", "--host", name, *found.declare())
    assert ran.status == 0, ran.output
    yield found
    lab("down", name)


def registry():
    return f"http://127.0.0.1:{state()['ports']['registry']}"


def lab(*words):
    subprocess.run([sys.executable, "-m", "boxwright.lab", *words], cwd=ROOT, check=True, timeout=1800)
