"""Settings measured against each other on a simulated box, by the real engine.

A planted better one is found, a planted slow option is named, and each time the box is as it was. Speed is
noisy on a busy machine: the factors are large, and one thread computes, for threads that wait for each other
lose all of it (25 times slower was seen).
"""

import json
import signal
import subprocess
import time
from pathlib import Path

import pytest
import yaml

pytestmark = pytest.mark.lab

ROOT = Path(__file__).resolve().parents[2]
HOST = "lab1"
SERVED = yaml.safe_load((ROOT / "inventory" / "lab" / "group_vars" / "serving.yml").read_text())
QUICK = {"OMP_NUM_THREADS": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind"}
#: Four at once, who wait for each other where the engine takes one.
MEASURED = ("--objective", "throughput", "--concurrency", "4", "--output", "24")
#: vLLM's own way to find where it hangs, which somebody forgot: a file gets a line for every call.
TRACED = {"VLLM_TRACE_FUNCTION": "1"}


def declared(**changes):
    """The lab's deployment with some lines changed, and an exam that is short on a processor."""
    deployment = {**SERVED["box_deployments"][0], "env": QUICK, **changes}
    return {
        "box_deployments": [deployment],
        "engine_warm_tokens": 0,
        "engine_gate_skip": ["reference", "stream"],
    }


@pytest.fixture(scope="module")
def box(verb, simulated):
    """A box that serves the lab's deployment."""
    ran = verb("provision", "--host", HOST, timeout=2400)
    assert ran.status == 0, ran.output
    return simulated(HOST)


def running(box):
    """The release whose container runs; empty while none does."""
    label = '{{index .Config.Labels "boxwright.release"}}'
    return box.do("docker", "inspect", "boxwright-smollm2", "--format", label, check=False).strip()


def state(box):
    """What must be as before: what counts, what is started at boot, what runs, which releases lie there."""
    root = "/var/lib/boxwright/releases/smollm2"
    return {
        "links": box.do("sh", "-c", f"readlink {root}/current {root}/previous", check=False),
        "unit": box.do("cat", "/etc/systemd/system/boxwright-smollm2.service"),
        "trial": box.do("ls", "/run/systemd/system.control", check=False),
        "runs": running(box),
        "releases": box.do("ls", "-A", root),
        "limits": box.do("cat", "/etc/boxwright/gpu-tuning.json"),
    }


def test_a_planted_better_setting_is_found(verb, box, over_lab):
    before = state(box)
    # What a step costs by itself counts for more then, as on a card: with two or four at once about twice as
    # many tokens a second were seen as with one, which a processor that only reckons does not show.
    where = over_lab(HOST, **declared(concurrency=1, env={**QUICK, **TRACED}))
    words = ("--what", "sequences", "--candidates", "2", "--fresh", *MEASURED)
    ran = verb("tune", "--host", HOST, *words, *where, "--json", timeout=3000)
    assert ran.status == 0, ran.output
    found = ran.json[HOST]
    assert found["better"], json.dumps(found, indent=1)
    assert found["declare"]["concurrency"] in (2, 4)
    assert found["change"]["change"] > 0.3
    assert found["restored"]
    assert state(box) == before


def test_a_planted_slow_option_is_named(verb, box, over_lab, tmp_path):
    before = state(box)
    slow = declared(prefix_caching=False, env={**QUICK, **TRACED})
    where = over_lab(HOST, **slow)
    good = tmp_path / "good.yml"
    good.write_text(yaml.safe_dump(declared()))
    words = ("--good", good, "--fresh", "--objective", "decode", "--output", "24")
    ran = verb("tune", "--bisect", "--host", HOST, *words, *where, "--json", timeout=4500)
    assert ran.status == 0, ran.output
    found = ran.json[HOST]
    [slow] = [f"env.{name}" for name in TRACED]
    assert set(found["differences"]) == {slow, "prefix_caching"}
    assert [slow] in [one["options"] for one in found["culprits"]], json.dumps(found, indent=1)
    assert found["restored"]
    assert state(box) == before


def test_ctrl_c_brings_back_what_served(box, over_lab):
    before = state(box)
    where = over_lab(HOST, **declared(concurrency=2))
    words = ["tune", "--host", HOST, "--what", "sequences", "--fresh", *MEASURED, *where]
    run = subprocess.Popen(
        [ROOT / "invoke", *map(str, words)],
        cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        start_new_session=True, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    until = time.monotonic() + 1500
    while time.monotonic() < until and running(box) in ("", before["runs"]):
        time.sleep(2)
    assert running(box) not in ("", before["runs"])
    run.send_signal(signal.SIGINT)
    said, _ = run.communicate(timeout=1500)
    assert run.returncode == 130, said
    assert "going back to the release that served before" in said
    assert state(box) == before
