"""Runs that are killed at places spread over the play: after each the rerun converges.

Three kinds of death: of the run itself (every process of it, by SIGKILL), of the SSH connection, and of the
host (its power is cut, and it boots again). The first run begins on a bare host. For each further one the box
loses what the place is about, so that the run has that to do again; the rest is as the rerun before left it.
A model is served from the first death on that is about one. After each rerun one more has nothing to change.
"""

import os
import queue
import re
import signal
import subprocess
import threading
import time
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from boxwright.cli.ansible_run import play

pytestmark = pytest.mark.lab

ROOT = Path(__file__).resolve().parents[2]
HOST, UNIT = "lab3", "boxwright-smollm2.service"
#: What a run does for a model: losing it is losing what such a one needs.
FOR_A_MODEL = ("weights", "image", "engine")
#: Seconds for a run to come to a place, and for a run whose connection was cut to end.
PATIENCE_S, DYING_S = 900, 180


class Run:
    """`./invoke provision` in the background, its lines as they come."""

    def __init__(self, *words):
        self.process = subprocess.Popen(
            [ROOT / "invoke", "provision", *words, "--verbose"],
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
    """The host, what is declared for it, how it is killed, and how it loses what was done on it."""

    def __init__(self, host, directory):
        self.host, self.directory = host, directory
        self.inventories = [ROOT / "inventory" / "lab", directory / "inventory"]
        self.words = ["--host", HOST, *(word for path in self.inventories for word in ("--inventory", path))]

    def serve(self, model):
        """Declare the lab's own model for it, or none."""
        own = self.inventories[1]
        (own / "host_vars").mkdir(parents=True, exist_ok=True)
        (own / "hosts.yml").write_text(yaml.safe_dump({"lab": {"hosts": {HOST: {}}}}))
        (own / "host_vars" / f"{HOST}.yml").write_text("{}\n" if model else "box_deployments: []\n")

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

    def lose(self, what):
        """Take from the box what a role made, or a model needs, while nothing serves. None: it is bare."""
        if what is None:
            assert "nvidia-driver" not in self.host.do("dpkg-query", "-W"), f"{HOST} is not bare"
            return
        # A pattern: before the first model there is none.
        self.host.do("systemctl", "stop", f"{UNIT}*")
        if what == "weights":
            self.host.do("sh", "-c", "rm -rf /var/lib/boxwright/models/*")
        elif what == "image":
            self.host.do("sh", "-c", "docker image ls --quiet | sort -u | xargs docker image rm --force")
        else:
            self.uninstall(what)

    def uninstall(self, role):
        """What the role itself takes away again."""
        file = self.directory / "uninstall.yml"
        tasks = [
            {"include_role": {"name": "preflight"}},
            {"include_role": {"name": role, "tasks_from": "uninstall"}},
        ]
        file.write_text(
            yaml.safe_dump([{"hosts": "all", "become": True, "gather_facts": False, "tasks": tasks}])
        )
        report = play(str(file), [HOST], self.inventories, quiet=True).hosts[HOST]
        assert report.failure is None, report.failure
        assert report.changed, f"there was nothing of {role} to lose"


@pytest.fixture(scope="module")
def victim(verb, simulated, tmp_path_factory):
    """The host; when the tests are through, it is stopped, so that it takes no time from others."""
    ran = verb("plan", "--host", HOST)
    assert ran.status == 0, ran.output
    found = Victim(simulated(HOST), tmp_path_factory.mktemp("kills"))
    found.serve(False)
    yield found
    subprocess.run(["docker", "stop", found.host.container], check=True, capture_output=True, timeout=180)


class Death(NamedTuple):
    """lost: what the box has lost before. place: the line of the run that tells where it is.

    program: of the host, which must be running then.
    """

    of: str
    lost: str | None
    place: str
    program: str | None = None


PACKAGES = "nvidia_driver : The driver's packages are installed and held"
ENGINE = "container_runtime : Docker Engine and the container toolkit are inst"
DEATHS = [
    Death("run", None, "nvidia_driver : The vendor's signed package source is there"),
    Death("host", "nvidia_driver", PACKAGES, "dpkg .*--unpack"),
    Death("run", "nvidia_driver", PACKAGES, "dpkg .*--configure"),
    Death("run", "nvidia_driver", "nvidia_driver : The host is rebooted"),
    Death("connection", "container_runtime", ENGINE, "dpkg .*--unpack"),
    Death(
        "host",
        "container_runtime",
        "container_runtime : Docker runs with the declared settings",
        "systemctl .*restart.* docker",
    ),
    Death("connection", "gpu_tuning", "gpu_tuning : The cards have the declared limits"),
    Death("host", "weights", "  fetching HuggingFaceTB/SmolLM2"),
    Death("connection", "image", "  (fetching|unpacking) depot"),
    Death("host", "engine", f"  {HOST}  smollm2: starting release", "vllm serve"),
    Death("run", "engine", "smollm2: (starting|loading)"),
]


@pytest.mark.parametrize("death", DEATHS, ids=lambda death: f"{death.of}-{death.place.strip()[:60]}")
def test_the_rerun_after_a_death_converges(victim, verb, death):
    served = death.lost in FOR_A_MODEL
    victim.serve(served)
    victim.lose(death.lost)
    die(victim, death)
    ran = verb("provision", *victim.words)
    assert ran.status == 0, ran.output
    if served:
        assert "Paris" in re.search(r"answered +(.+)", ran.output)[1]
    whole(victim.host)
    again = verb("provision", *victim.words, "--full", "--json")
    assert again.status == 0, again.output
    assert again.json["hosts"][HOST]["changed"] == 0, again.json["hosts"][HOST]["changes"]


def die(victim, death):
    """Have a run come to the place, and die there."""
    run = Run(*victim.words)
    try:
        run.reach(death.place)
        if death.program:
            victim.await_program(death.program)
        if death.of == "connection":
            status = victim.cut_connection(run)
            assert status == 1, run.output
            assert "cannot be reached over SSH" in run.output
            assert "It answered before, in this same run" in run.output
        if death.of == "host":
            victim.cut_power()
    finally:
        run.kill()
    assert "Traceback" not in run.output


def whole(host):
    """See that nothing half-done is left of the run that died."""
    assert host.do("dpkg", "--audit") == ""
    assert host.do("systemctl", "--failed", "--no-legend", "--plain") == ""
    left = host.do("find", "/etc", "/var/lib/boxwright", "-xdev", "-name", ".boxwright-??????*")
    assert [name for name in left.split() if "manifest" not in name and "environment" not in name] == []
