"""How fast weights are fetched, held against the hub's official client.

Both ways run on one simulated host, in turn, several times; what counts is the medians' ratio.
"""

import io
import json
import os
import statistics
import subprocess
import tarfile
from pathlib import Path

import ansible.module_utils
import lab_hub
import pytest

pytestmark = pytest.mark.lab

ROOT = Path(__file__).resolve().parents[2]
HOST, CODE, STORE = "lab1", "/var/tmp/boxwright-measured/code", "/var/tmp/boxwright-measured/models"
ENVIRONMENT, OWN = "/var/tmp/boxwright-measured/client", "/var/tmp/boxwright-measured/own"
MIB = 2**20
#: Shards that are fetched, in MiB: random bytes.
FETCHED, FETCH_ROUNDS = (400, 400, 200), 5
#: The least that is promised, of the client's rate.
FETCH_LEAST = 0.95


class Measured:
    """A simulated host with the modules' code on it, as Ansible brings it there."""

    def __init__(self, host):
        self.host, self.do = host, host.do
        self.do("mkdir", "-p", CODE)
        self._put(Path(ansible.module_utils.__file__).parent, "ansible/module_utils")
        self.do("touch", f"{CODE}/ansible/__init__.py")
        for part in ("ansible/module_utils", "ansible/modules", "facts/parsers"):
            self._put(ROOT / "boxwright" / part, f"boxwright/{part}")

    def _put(self, source, name):
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as archive:
            archive.add(source, name, filter=lambda one: None if "__pycache__" in one.name else one)
        argv = ["docker", "exec", "--interactive", self.host.container, "tar", "-x", "-f", "-", "-C", CODE]
        subprocess.run(argv, input=packed.getvalue(), check=True, timeout=60)

    def python(self, program, stdin=""):
        """Run a Python program on the host; what it says."""
        argv = ["docker", "exec", "--interactive", self.host.container, "python3", "-c", program]
        done = subprocess.run(argv, input=stdin, capture_output=True, text=True, check=False, timeout=1200)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def module(self, name):
        """The words that run a module there, its arguments on standard input."""
        return ["python3", "-c", lab_hub.program(name, Path(CODE))]

    def ratio(self, what, size, rounds, ways, shown):
        """Boxwright's rate in parts of the other's, shown with all that it is made of. size: bytes."""
        job = json.dumps({"rounds": rounds, "ways": ways})
        found = json.loads(self.python((Path(__file__).parent / "side_by_side.py").read_text(), job))
        took = {name: one["seconds"] for name, one in found.items()}
        median = {name: statistics.median(seconds) for name, seconds in took.items()}
        [other] = set(ways) - {"boxwright"}
        ratio = median[other] / median["boxwright"]
        rates = {name: round(size / seconds / 1e6) for name, seconds in median.items()}
        with shown.disabled():
            print(
                "", json.dumps({"what": what, "ratio": round(ratio, 3), "MB_per_s": rates, "seconds": took})
            )
        return ratio, found["boxwright"]["said"]


@pytest.fixture(scope="module")
def measured(verb, simulated):
    ran = verb("lab.up")
    assert ran.status == 0, ran.output
    made = Measured(simulated(HOST))
    yield made
    made.do("rm", "-rf", str(Path(CODE).parent))


@pytest.fixture
def hub(tmp_path):
    """A hub on this machine, at its address in the lab's network, with some shards of random bytes."""
    subnet = json.loads((ROOT / ".lab" / "state.json").read_text())["subnet"]
    made = lab_hub.Hub(tmp_path, "acme/large", bind=subnet.rpartition(".")[0] + ".1")
    names = [f"model-{number:05}-of-{len(FETCHED):05}.safetensors" for number in range(1, len(FETCHED) + 1)]
    for name, size in zip(names, FETCHED, strict=True):
        with (made.folder / name).open("wb") as file:
            for _ in range(size):
                file.write(os.urandom(MIB))
    index = {"weight_map": {str(number): name for number, name in enumerate(names)}}
    for name, content in {
        "config.json": {"model_type": "qwen3"},
        "model.safetensors.index.json": index,
    }.items():
        (made.folder / name).write_text(json.dumps(content))
    with made.running():
        yield made


def test_fetching_is_as_fast_as_the_official_client(measured, hub, capsys):
    """The client alone hashes nothing of what it fetches, and leaves to the kernel when it is written."""
    weights = hub.weights(STORE)
    given = lab_hub.arguments(weights, STORE, ENVIRONMENT)
    given["environment"]["index_url"] = "http://depot.boxwright.lab/simple/"
    words = ["hf", "download", hub.repo, "--revision", weights["revision"], "--local-dir", OWN]
    client = {"HF_ENDPOINT": hub.endpoint, "HF_HOME": f"{OWN}/home", "HF_HUB_DISABLE_TELEMETRY": "1"}
    ways = {
        "boxwright": {"argv": measured.module("model_store"), "stdin": json.dumps(given), "fresh": [STORE]},
        "client": {"argv": [f"{ENVIRONMENT}/bin/{words[0]}", *words[1:]], "env": client, "fresh": [OWN]},
    }
    # The client's environment is made once on a box, and the hub reads every byte before its first answer.
    first = {"rounds": 1, "ways": {"boxwright": ways["boxwright"]}}
    measured.python((Path(__file__).parent / "side_by_side.py").read_text(), json.dumps(first))
    before = hub.sent("1-of-00003.safetensors")
    ratio, said = measured.ratio("fetch against hf download", sum(FETCHED) * MIB, FETCH_ROUNDS, ways, capsys)
    assert json.loads(said)["stores"][0]["by_sha256"] == len(FETCHED)
    assert hub.sent("1-of-00003.safetensors") - before == 2 * FETCH_ROUNDS * FETCHED[0] * MIB
    assert ratio >= FETCH_LEAST
