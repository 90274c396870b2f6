"""Runs that are killed at places spread over the play: the rerun converges, and one more changes nothing.

Three kinds of death: of the run itself (every process of it, by SIGKILL), of the SSH connection, and of the
host (its power is cut, and it boots again). Each test kills one run on the way to the same, once bare host.
"""

import os
import queue
import re
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.lab

ROOT = Path(__file__).resolve().parents[2]
HOST = "lab3"
#: Seconds for a run to come to a place, and for a run whose connection was cut to end.
PATIENCE_S, DYING_S = 900, 180


class Run:
    """`./invoke provision` in the background, its lines as they come."""

    def __init__(self, host):
        self.process = subprocess.Popen(
            [ROOT / "invoke", "provision", "--host", host, "--verbose"],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.lines = []
        self._coming = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            self._coming.put(line)
        self._coming.put(None)

    @property
    def output(self):
        return "".join(self.lines)

    def reach(self, place):
        """Wait for a line. Fails where the run ends before it."""
        until = time.monotonic() + PATIENCE_S
        while True:
            line = self._coming.get(timeout=max(0.1, until - time.monotonic()))
            assert line is not None, f"the run ended before {place!r}:\n{self.output}"
            self.lines.append(line)
            if re.search(place, line):
                return

    def kill(self):
        """End every process of the run at once, as a power cut of the controller does."""
        mine = [self.process.pid]
        for pid in mine:
            mine += [child for child in children(pid) if child not in mine]
        for pid in mine:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        self.process.wait(30)

    def end(self, timeout):
        """Wait for its end; its status."""
        status = self.process.wait(timeout)
        while (line := self._coming.get(timeout=10)) is not None:
            self.lines.append(line)
        return status


def children(pid):
    """The processes that a process has started, its threads' among them."""
    found = []
    try:
        threads = list(Path(f"/proc/{pid}/task").iterdir())
    except OSError:  # it has ended meanwhile
        return found
    for thread in threads:
        try:
            found += [int(child) for child in (thread / "children").read_text().split()]
        except OSError:
            continue
    return found


class Victim:
    """The host, and how it is killed."""

    def __init__(self, simulated):
        self.host = simulated(HOST)

    def await_program(self, pattern):
        """Return as soon as a program of this command line runs on the host."""
        loop = 'until pgrep -f -- "$1" | grep -qvx $$; do sleep 0.02; done'
        self.host.do("timeout", "300", "sh", "-c", loop, "wait", pattern, timeout=320)

    def cut_connection(self, run):
        """End the run's SSH sessions, as often as it comes back; its status."""
        until = time.monotonic() + DYING_S
        while run.process.poll() is None:
            assert time.monotonic() < until, f"the run goes on without a connection:\n{run.output}"
            self.host.do("pkill", "-KILL", "-u", "ops", "-f", "sshd", check=False)
            time.sleep(0.3)
        return run.end(10)

    def cut_power(self):
        """Stop everything at once and boot again."""
        for words in (["kill", "--signal", "KILL"], ["start"]):
            subprocess.run(
                ["docker", *words, self.host.container], check=True, capture_output=True, timeout=180
            )


@pytest.fixture(scope="module")
def victim(verb, simulated):
    """A bare host; when the tests are through, it is stopped, so that it takes no time from others."""
    ran = verb("plan", "--host", HOST)
    assert ran.status == 0, ran.output
    found = Victim(simulated)
    assert "nvidia-driver" not in found.host.do("dpkg-query", "-W"), f"{HOST} is not bare"
    yield found
    subprocess.run(["docker", "stop", found.host.container], check=True, capture_output=True, timeout=180)


#: How a run dies; the line of it that tells where it is; a program of the host that must be running then.
DEATHS = [
    ("run", "nvidia_driver : The vendor's signed package source is there", None),
    ("host", "nvidia_driver : The driver's packages are installed and held", "dpkg .*--unpack"),
    ("run", "nvidia_driver : The driver's packages are installed and held", "dpkg .*--configure"),
    ("run", "nvidia_driver : The host is rebooted", None),
    ("connection", "container_runtime : Docker Engine and the container toolkit are inst", "dpkg .*--unpack"),
    ("host", "container_runtime : Docker runs with the declared settings", "systemctl .*restart.* docker"),
    ("connection", "gpu_tuning : The cards have the declared limits", None),
    ("host", "  fetching HuggingFaceTB/SmolLM2", None),
    ("connection", "  (fetching|unpacking) depot", None),
    ("host", f"  {HOST}  smollm2: starting release", "vllm serve"),
    # The last one: what it leaves on the host goes on there, and may finish before a further run comes to it.
    ("run", "smollm2: (starting|loading)", None),
]


@pytest.mark.parametrize(("death", "place", "program"), DEATHS)
def test_a_run_that_dies(victim, death, place, program):
    run = Run(HOST)
    try:
        run.reach(place)
        if program:
            victim.await_program(program)
        if death == "connection":
            status = victim.cut_connection(run)
            assert status == 1, run.output
            assert "cannot be reached over SSH" in run.output
            assert "It answered before, in this same run" in run.output
        if death == "host":
            victim.cut_power()
    finally:
        run.kill()
    assert "Traceback" not in run.output


def test_the_rerun_converges(verb, victim):
    ran = verb("provision", "--host", HOST)
    assert ran.status == 0, ran.output
    assert "Paris" in re.search(r"answered +(.+)", ran.output)[1]
    assert victim.host.do("dpkg", "--audit") == ""
    assert victim.host.do("systemctl", "--failed", "--no-legend", "--plain") == ""
    left = victim.host.do("find", "/etc", "/var/lib/boxwright", "-xdev", "-name", ".boxwright-??????*")
    assert [name for name in left.split() if "manifest" not in name and "environment" not in name] == []


def test_a_further_rerun_changes_nothing(verb, victim):
    ran = verb("provision", "--host", HOST, "--json")
    assert ran.status == 0, ran.output
    assert ran.json["hosts"][HOST]["changed"] == 0, ran.json["hosts"][HOST]["changes"]
