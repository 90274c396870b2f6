"""A box on its distribution's own driver, and the way to the vendor's when a module does not build.

Debian's backports have branches that the release itself has not; the lab's are files on the host.
"""

import subprocess

import pytest

from boxwright.lab.gpu import hardware
from boxwright.lab.gpu.packages import distribution
from boxwright.lab.payload import archive

pytestmark = pytest.mark.lab

HOST, RELEASE, REVISION = "start1", "570.195.03", "3~bpo13+1"
VENDORS = {"nvidia_driver_source": "vendor", "nvidia_driver_branch": "580"}
LOG = "/var/lib/dkms/nvidia/580.105.08/build/make.log"


@pytest.fixture(scope="module")
def box(simulated, lab_hosts, role_box, tmp_path_factory):
    """A bare host whose distribution has the driver in its backports."""
    lab_hosts(HOST)
    box = role_box(simulated(HOST), tmp_path_factory.mktemp(HOST), "preflight", "nvidia_driver")
    box.declared.update(nvidia_driver_source="distribution", nvidia_driver_branch="570")
    files = hardware.local_repository(
        "backports",
        distribution.packages(RELEASE, REVISION),
        "Debian Backports",
        NotAutomatic="yes",
        ButAutomaticUpgrades="yes",
    )
    subprocess.run(
        ["docker", "cp", "-", f"{box.host.container}:/"], input=archive(files), check=True, timeout=60
    )
    return box


def on_the_distributions(box):
    """See that the whole driver is the distribution's, and answers."""
    assert box.driver() == RELEASE
    assert box.driver_versions() == {f"{RELEASE}-{REVISION}"}
    assert f"nvidia-current-open/{RELEASE}" in box.do("dkms", "status")
    assert box.do("dpkg", "--audit") == ""
    assert box.do("sh", "-c", "grep -rl compute/cuda /etc/apt || true") == "", (
        "the vendor's source is not there"
    )


def test_the_distributions_driver_is_installed_and_held(box):
    box.converges()
    on_the_distributions(box)
    held = box.do("apt-mark", "showhold").split()
    assert {"nvidia-smi", "nvidia-open-kernel-dkms", "libcuda1"} <= set(held)


def test_a_module_that_does_not_build_is_named_at_each_run_and_the_line_back_goes_back(box):
    box.do("lab-gpu", "fault", "dkms-build", "--version", "580")
    for said in ("apt failed half-way", "cannot be brought to an end (dpkg --configure -a): nvidia-kernel"):
        status, output, _ = box.run(**VENDORS)
        assert status != 0
        assert said in output
        assert f"Consult {LOG} for more information" in output
        assert box.do("cat", "/sys/module/nvidia/version") == f"{RELEASE}\n", "what is loaded stays loaded"
    # As long as it does not build, and without a word of anything but the line.
    box.converges()
    on_the_distributions(box)


def test_once_it_builds_the_rerun_gets_there(box):
    status, output, _ = box.run(**VENDORS)
    assert status != 0, output
    box.do("lab-gpu", "clear", "dkms-build")
    box.converges(**VENDORS)
    assert box.driver() == "580.105.08"
    assert box.driver_versions() == {"580.105.08-1"}
    assert box.do("dpkg", "--audit") == ""
