"""The driver's packages on Ubuntu 22.04 and 24.04: from a host's facts, by the role, to what apt does.

The module's arguments are those that Ansible makes of the role, over the plan of such a host; apt and dpkg
answer as the real ones (2.6, 1.21) did over sources like Ubuntu's and NVIDIA's: ubuntu_repository.py tells
whose names and versions these are, recordings.py how to record anew.
"""

import importlib.util
import json
from pathlib import Path

import host_doubles as doubles
import pytest
from ansible.module_utils import apt

from boxwright.facts import parse

ROOT = Path(__file__).resolve().parents[3]
spec = importlib.util.spec_from_file_location("unit_boxes", ROOT / "tests/unit/conftest.py")
boxes = importlib.util.module_from_spec(spec)
spec.loader.exec_module(boxes)
recordings, sources = doubles.load("recordings"), doubles.load("ubuntu_repository")
OWN, VENDOR = sources.OWN[-1], sources.VENDOR["580"][-1]
#: What is declared, by the name under which the tests ask for it.
DECLARED = {
    "vendor": {},
    "older branch": {"nvidia_driver_branch": "570"},
    "newer branch": {"nvidia_driver_branch": "595"},
    "exact": {"nvidia_driver_version": "580.105.08"},
    "vanished": {"nvidia_driver_version": "580.99.01"},
    "proprietary": {"nvidia_driver_flavor": "proprietary"},
    "distribution": {"nvidia_driver_source": "distribution"},
    "toolkit": {"nvidia_driver_cuda_toolkit": "12.8"},
}
RELEASES = list(sources.KERNELS)


def facts_of(release):
    """The facts of a bare box with a card on which both flavors of modules run."""
    raw = boxes.raw_box(["rtx4090"], system=recordings.UBUNTU.format(release=release))
    kernel = f"{sources.KERNELS[release]}-generic"
    raw["uname"]["release"], raw["next_kernel"], raw["headers"] = kernel, kernel, False
    raw["commands"]["packages"]["stdout"] = raw["commands"]["holds"]["stdout"] = ""
    return parse(raw, "box1")


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    """(release, name of DECLARED) -> arguments of held_packages, as the role gives them."""
    hosts = {
        f"{release}_{name}".replace(" ", "_"): (facts_of(release), variables)
        for release in RELEASES
        for name, variables in DECLARED.items()
    }
    found = doubles.load("role_arguments").of_hosts(tmp_path_factory.mktemp("asked"), "ubuntu", hosts)
    return lambda release, name: found[f"{release}_{name}".replace(" ", "_")]


@pytest.fixture(params=RELEASES)
def host(request, root, tmp_path, monkeypatch, module, ubuntu_repository, asked):
    """An Ubuntu in small: driver(name of DECLARED, **arguments) runs the module as the role does."""
    release = request.param
    name = request.node.name.removeprefix("test_")
    arguments = (name, root, tmp_path, monkeypatch, ubuntu_repository)
    found = recordings.AptHost(release, [f"ubuntu-{release}", "cuda"], *arguments)
    monkeypatch.setattr(apt, "LOCKS", ())
    monkeypatch.setattr(apt, "_native", [])
    found.release, found.kernel = release, f"{sources.KERNELS[release]}-generic"
    found.driver = lambda name="vendor", **more: module("held_packages")(**{**asked(release, name), **more})
    found.own = OWN.format(release=release)
    found.record = lambda: json.loads((root / "var/lib/boxwright/holds/nvidia-driver.json").read_text())
    yield found
    found.keep()


def installed():
    """Versions by name, as dpkg has them now."""
    return {name: package.version for name, package in apt.installed().items()}


def of_driver(packages):
    return {name: version for name, version in packages.items() if "nvidia" in name}


def test_nothing_is_there(host):
    result = host.driver()
    assert f"install nvidia-headless-580-open {VENDOR}" in result["steps"], result
    found = installed()
    assert set(of_driver(found).values()) == {VENDOR}
    assert {
        "nvidia-headless-580-open",
        "nvidia-dkms-580-open",
        "nvidia-utils-580",
        "nvidia-compute-utils-580",
    } <= set(found)
    assert {"dkms", "linux-headers-generic", f"linux-headers-{host.kernel}"} <= set(found)
    assert len(host.transactions) == 1
    assert set(apt.holds()) == set(of_driver(found)) == set(host.record()["holds"])
    assert not host.driver()["changed"]


def test_check_mode_says_what_would_come(host):
    steps = host.driver(check=True)["steps"]
    assert f"install nvidia-dkms-580-open {VENDOR}" in steps
    assert not [step for step in steps if host.own in step]
    assert host.transactions == []


def test_the_distributions_driver_is_exchanged_for_the_vendors(host):
    """Also its modules, which it has built and signed for one kernel each."""
    host.driver("distribution")
    (host.root / "var/lib/boxwright/holds/nvidia-driver.json").unlink()
    apt.run(["apt-mark", "unhold", *apt.holds()])
    assert set(of_driver(installed()).values()) >= {host.own}
    result = host.driver()
    assert f"upgrade nvidia-utils-580 {host.own} -> {VENDOR}" in result["steps"], result
    assert f"remove linux-modules-nvidia-580-open-{host.kernel}" in " ".join(result["steps"])
    left = of_driver(installed())
    left.pop(f"linux-signatures-nvidia-{host.kernel}")
    assert set(left.values()) == {VENDOR}
    assert len(host.transactions) == 2
    assert not host.driver()["changed"]


def test_the_distributions_driver_is_signed_and_no_package_of_the_vendors(host):
    result = host.driver("distribution")
    names = {f"linux-modules-nvidia-580-open-{host.kernel}", "linux-modules-nvidia-580-open-generic"}
    found = installed()
    assert names <= set(found), result
    assert {version for name, version in of_driver(found).items() if not name.startswith("linux-")} == {
        host.own
    }
    assert not {"nvidia-dkms-580-open", "dkms"} & set(found)
    # The modules follow the kernel.
    assert not names & set(apt.holds())
    assert not host.driver("distribution")["changed"]


def test_another_branch_that_we_hold(host):
    """One transaction: the old branch's packages leave, our holds go with them, new ones are set."""
    host.driver("older branch")
    before = set(apt.holds())
    assert "nvidia-headless-570-open" in before
    result = host.driver()
    assert f"install nvidia-headless-580-open {VENDOR}" in result["steps"], result
    assert len(host.transactions) == 2
    found = of_driver(installed())
    assert set(found.values()) == {VENDOR}
    assert not [name for name in found if "570" in name]
    assert set(apt.holds()) == set(found) == set(host.record()["holds"])
    back = host.driver("older branch")
    assert back["changed"]
    assert set(of_driver(installed()).values()) == {sources.VENDOR["570"][-1]}


def test_a_branch_without_its_number_in_the_names(host):
    """From 590 on: no nvidia-utils, and the daemon is a package of its own."""
    host.driver()
    newest = sources.VENDOR["595"][-1]
    result = host.driver("newer branch")
    assert f"install nvidia-headless-open {newest}" in result["steps"], result
    found = of_driver(installed())
    assert set(found.values()) == {newest}
    assert {"nvidia-persistenced", "nvidia-dkms-open", "libnvidia-compute"} <= set(found)
    assert set(apt.holds()) == set(found)
    assert not host.driver("newer branch")["changed"]
    host.driver()
    assert set(of_driver(installed()).values()) == {VENDOR}
    assert len(host.transactions) == 3


def test_a_persons_hold_is_named_and_nothing_changes(host):
    host.driver("older branch")
    (host.root / "var/lib/boxwright/holds/nvidia-driver.json").unlink()
    apt.run(["apt-mark", "unhold", *(name for name in apt.holds() if name != "libnvidia-compute-570")])
    before, files = installed(), sorted((host.root / "etc/apt").rglob("*.pref"))
    said = host.driver()["msg"]
    assert "remove libnvidia-compute-570 570.195.03-0ubuntu1 (held by a person, not by Boxwright)" in said
    assert "Nothing was changed." in said
    assert (installed(), sorted((host.root / "etc/apt").rglob("*.pref"))) == (before, files)
    apt.run(["apt-mark", "unhold", "libnvidia-compute-570"])
    assert host.driver()["changed"]
    assert set(of_driver(installed()).values()) == {VENDOR}


def test_a_version_that_vanished_lists_what_is_there(host):
    said = host.driver("vanished")["msg"]
    assert "nvidia-headless-580-open has no version 580.99.01-[01]ubuntu[0-9]; there is" in said
    assert all(version in said for version in sources.VENDOR["580"])
    assert installed() == {}
    assert host.transactions == []
    assert not (host.root / "var/lib/boxwright").exists()


def test_one_exact_version_and_from_it_to_the_newest(host):
    host.driver("exact")
    assert set(of_driver(installed()).values()) == {"580.105.08-0ubuntu1"}
    # Whoever no longer names one stays with what is there.
    assert not [step for step in host.driver()["steps"] if step]
    assert set(of_driver(installed()).values()) == {"580.105.08-0ubuntu1"}


def test_the_other_flavor_takes_the_place_of_the_first(host):
    host.driver()
    result = host.driver("proprietary")
    assert f"remove nvidia-dkms-580-open {VENDOR}" in result["steps"], result
    found = of_driver(installed())
    assert {"nvidia-headless-580", "nvidia-dkms-580"} <= set(found)
    assert not [name for name in found if name.endswith("-open")]


def test_the_toolkit_comes_beside_and_brings_no_driver(host):
    host.driver()
    result = host.driver("toolkit")
    assert sorted(result["steps"]) == [
        "install cuda-nvcc-12-8 12.8.93-1",
        "install cuda-toolkit-12-8 12.8.1-1",
    ]
    assert set(of_driver(installed()).values()) == {VENDOR}


def test_an_uninstall_brings_back_the_distributions_driver(host):
    host.driver("distribution")
    (host.root / "var/lib/boxwright/holds/nvidia-driver.json").unlink()
    apt.run(["apt-mark", "unhold", *apt.holds()])
    before = installed()
    host.driver()
    assert host.driver(state="absent", packages=[], version=None)["not_restored"] == ""
    assert installed() == before
    assert apt.holds() == []
