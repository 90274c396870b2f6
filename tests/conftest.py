"""What tests on simulated hosts share: running a verb as a user does, looking at a host from outside."""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import hypothesis
import pytest
import yaml

from boxwright import lab
from boxwright.cli import lab as cli_lab

sys.path.insert(0, str(Path(__file__).parent))
from lab_boxes import ROOT, RoleBox, SimulatedHost

# A busy machine is no fault of the code: no example has a deadline, and none is made too slowly.
hypothesis.settings.register_profile(
    "boxwright", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("boxwright")

DEFAULT_SUITE = "trixie"


class Ran(NamedTuple):
    """What a verb did. output: both streams, as a person sees them; stdout alone for --json."""

    status: int
    output: str
    stdout: str
    seconds: float

    @property
    def json(self):
        return json.loads(self.stdout)


def run_verb(*words, timeout=1500):
    started = time.monotonic()
    done = subprocess.run(
        [str(ROOT / "invoke"), *map(str, words)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout,
        stdin=subprocess.DEVNULL,
    )
    return Ran(done.returncode, done.stdout + done.stderr, done.stdout, time.monotonic() - started)


def pytest_addoption(parser):
    parser.addoption(
        "--suite",
        default=DEFAULT_SUITE,
        choices=("trixie", "bookworm"),
        help="Debian release of the simulated hosts on which faults are shown (%(default)s)",
    )


@pytest.fixture(scope="session")
def suite(pytestconfig):
    """The Debian release of the hosts on which faults are shown."""
    return pytestconfig.getoption("--suite")


@pytest.fixture(scope="module")
def lab_hosts(suite):
    """up(*names, keep=False): hosts of that release run, made anew where they are of another.

    They are removed when the module's tests are over. keep: those of the usual release stay for other tests.
    """
    passing = []

    def up(*names, keep=False):
        others = [host.name for host in lab.status().hosts if host.name in names and host.suite != suite]
        if others:
            lab.down(others)
        if not keep or suite != DEFAULT_SUITE:
            passing.extend(names)
        cli_lab.ensure(names, suite=suite)

    yield up
    if passing:
        lab.down(passing)


@pytest.fixture(scope="session")
def verb():
    """Run `./invoke WORDS…`; see Ran."""
    return run_verb


@pytest.fixture(scope="session")
def simulated():
    """A host of the lab by name; it must be up."""
    return SimulatedHost


@pytest.fixture(scope="session")
def role_box():
    """Roles run on a host of the lab by themselves; see RoleBox."""
    return RoleBox


@pytest.fixture
def over_lab(tmp_path):
    """Inventories for a lab host: the lab's variables, with some replaced. Returns --inventory words."""

    def build(host, **variables):
        directory = tmp_path / "over"
        (directory / "host_vars").mkdir(parents=True)
        (directory / "hosts.yml").write_text(yaml.safe_dump({"lab": {"hosts": {host: {}}}}))
        (directory / "host_vars" / f"{host}.yml").write_text(yaml.safe_dump(variables))
        return ["--inventory", ROOT / "inventory" / "lab", "--inventory", directory]

    return build
