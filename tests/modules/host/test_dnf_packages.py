"""held_packages on a host with dnf: over what the real dnf 4.14 and rpm said to the same calls."""

import json

import pytest
from ansible.module_utils import dnf
from host_doubles import load

recordings = load("recordings")
FAMILY = ["nvidia-*", "libnvidia-*", "kmod-nvidia-*", "!nvidia-container-*"]
NEW, OLD = "3:580.105.08-1.el9", "3:580.95.05-1.el9"
COMPANIONS = ["libnvidia-ml", "nvidia-driver-cuda-libs", "nvidia-kmod-common", "nvidia-persistenced"]


@pytest.fixture
def host(request, root, tmp_path, monkeypatch, module, repository):
    """A host in small: call(**arguments) runs the module on it."""
    same = request.node.get_closest_marker("as_recorded_for")
    name = same.args[0] if same else request.node.name.removeprefix("test_")
    found = recordings.DnfHost(name, root, tmp_path, monkeypatch, repository)
    monkeypatch.setattr(dnf, "LOCKS", ())
    found.call = module(
        "held_packages",
        name="driver",
        packages=["nvidia-driver-cuda", "kmod-nvidia-open-dkms"],
        version="3:580.*",
        stream="nvidia-driver:580-open",
        hold=FAMILY,
        pin=True,
        may_remove=FAMILY,
        allow_downgrade=True,
    )
    found.record = lambda: json.loads((root / "var/lib/boxwright/holds/driver.json").read_text())
    found.locks = lambda: (root / "etc/dnf/plugins/versionlock.list").read_text().splitlines()
    found.stream = lambda: dnf.enabled_stream((root / "etc/dnf/modules.d/nvidia-driver.module").read_text())
    yield found
    found.keep()


def versions(result):
    return set(result["after"].values())


def test_installs_the_branch_in_one_transaction_and_locks_it(host):
    result = host.call(alongside=["kernel-devel-matched"])
    assert result["changed"]
    assert result["after"]["nvidia-driver-cuda"] == NEW
    assert len(host.transactions) == 1
    assert host.stream() == "580-open"
    assert f"kmod-nvidia-open-dkms-{NEW}.*" in host.locks()
    assert host.record()["holds"] == sorted([*COMPANIONS, "kmod-nvidia-open-dkms", "nvidia-driver-cuda"])
    assert {"dkms", "kernel-devel-matched", "python3-dnf-plugin-versionlock"} <= set(
        host.record()["installed"]
    )


@pytest.mark.as_recorded_for("installs_the_branch_in_one_transaction_and_locks_it")
@pytest.mark.parametrize(
    "version",
    ["580.105.08-1.el9", NEW, "580.105.08-1.el9.x86_64", "580.105.08-1.*", "3:580.105.08-*", "580.105.08-*"],
)
def test_an_exact_version_as_people_write_it(host, version):
    result = host.call(alongside=["kernel-devel-matched"], version=version)
    assert result["after"]["nvidia-driver-cuda"] == NEW
    assert result["after"]["kmod-nvidia-open-dkms"] == NEW


def test_second_run_only_reads(host):
    host.call()
    calls = len(host.world["calls"])
    assert not host.call()["changed"]
    assert {call[0] for call in host.world["calls"][calls:]} == {"rpm"}


def test_check_mode_tells_and_touches_nothing(host, root):
    result = host.call(check=True)
    assert f"install nvidia-driver-cuda {NEW}" in result["steps"]
    assert "stream nvidia-driver 580-open" in result["steps"]
    assert not host.transactions
    assert not (root / "etc/dnf/modules.d/nvidia-driver.module").exists()


def test_another_branch_comes_in_one_transaction_with_its_stream(host):
    host.call(version="3:570.*", stream="nvidia-driver:570-open")
    assert host.stream() == "570-open"
    result = host.call()
    assert f"upgrade kmod-nvidia-open-dkms 3:570.195.03-1.el9 -> {NEW}" in result["steps"]
    assert "stream nvidia-driver 570-open -> 580-open" in result["steps"]
    assert len(host.transactions) == 2
    assert host.stream() == "580-open"
    assert not [lock for lock in host.locks() if "570" in lock]


def test_another_flavor_and_an_older_version(host):
    host.call()
    result = host.call(
        packages=["nvidia-driver-cuda", "kmod-nvidia-latest-dkms"],
        version="3:580.95.05-*",
        stream="nvidia-driver:580-dkms",
        replaces=["kmod-nvidia-open-dkms"],
    )
    assert f"downgrade libnvidia-ml {NEW} -> {OLD}" in result["steps"]
    assert f"remove kmod-nvidia-open-dkms {NEW}" in result["steps"]
    assert versions(result) >= {OLD}
    assert NEW not in versions(result)
    assert not [lock for lock in host.locks() if "105" in lock or "open" in lock]


def test_an_older_version_only_where_it_may_be(host):
    host.call()
    assert "versions would go down" in host.call(version="3:580.95.05-*", allow_downgrade=False)["msg"]
    assert len(host.transactions) == 1


def test_a_version_that_is_nowhere_lists_what_is_there(host):
    said = host.call(version="3:580.99.01-*")["msg"]
    assert "nvidia-driver-cuda has no version 3:580.99.01-*; there is 3:595.71.05-1.el9, " + NEW in said
    assert not host.transactions


@pytest.mark.as_recorded_for("a_version_that_is_nowhere_lists_what_is_there")
@pytest.mark.parametrize("version", ["580.99.01-1.el9", "2:580.105.08-1.el9", "580.105.08-7.el9"])
def test_an_exact_version_that_is_nowhere_lists_what_is_there(host, version):
    said = host.call(version=version)["msg"]
    assert f"has no version {version}; there is 3:595.71.05-1.el9, {NEW}" in said


def test_a_stream_that_is_nowhere_lists_what_is_there(host):
    said = host.call(version="3:580.*", stream="nvidia-driver:585-open")["msg"]
    assert "has no stream 585-open; there is 570-open, 580-dkms, 580-open, 595-open" in said


def test_a_source_without_that_module_needs_no_stream(host):
    result = host.call(packages=["dkms"], version="", hold=[], stream="nothing:1")
    assert result["after"] == {"dkms": "3.2.1-1.el9", "python3-dnf-plugin-versionlock": "4.3.0-21.el9"}


def test_a_package_that_is_nowhere(host):
    assert "nosuch is in none of the host's package sources" in host.call(packages=["nosuch"])["msg"]


def test_a_persons_lock_is_respected_and_named(host, root):
    host.call(version=OLD)
    record = root / "var/lib/boxwright/holds/driver.json"
    record.unlink()
    said = host.call(version=NEW)["msg"]
    assert f"upgrade libnvidia-ml {OLD} -> {NEW} (held by a person, not by Boxwright)" in said
    assert "dnf versionlock delete NAME" in said
    assert len(host.transactions) == 1


def test_a_persons_lock_on_the_branch_is_no_obstacle(host, root):
    locks = root / "etc/dnf/plugins/versionlock.list"
    locks.parent.mkdir(parents=True)
    locks.write_text("# mine\n*nvidia*-3:580.*\n")
    assert host.call()["changed"]
    assert host.record()["holds"] == []
    assert host.locks() == ["# mine", "*nvidia*-3:580.*"]


def test_a_lock_that_was_lifted_or_moved_is_set_again(host, root):
    host.call()
    locks = root / "etc/dnf/plugins/versionlock.list"
    locks.write_text(f"nvidia-driver-cuda-{OLD}.*\n")
    assert host.call()["changed"]
    assert f"nvidia-driver-cuda-{NEW}.*" in host.locks()
    assert f"nvidia-driver-cuda-{OLD}.*" not in host.locks()
    assert not host.call()["changed"]


def test_locks_that_are_switched_off_are_told_before_anything_happens(host, root):
    settings = root / "etc/dnf/plugins/versionlock.conf"
    settings.parent.mkdir(parents=True)
    settings.write_text("[main]\nenabled = 0\n")
    assert "versionlock.conf says enabled = 0" in host.call()["msg"]
    assert not host.transactions


def test_a_conflicting_package_leaves_only_if_it_may(host):
    host.call(name="other", packages=["nvidia-driver-old"], version="", stream="", hold=[])
    said = host.call(may_remove=["libnvidia-*"])["msg"]
    assert "dnf would remove packages that nobody asked to remove: nvidia-driver-old" in said
    assert "(held for other)" in said
    assert len(host.transactions) == 1


def test_a_package_declared_no_more_leaves_with_what_only_it_needed(host):
    host.call(packages=["nvidia-driver-cuda", "kmod-nvidia-open-dkms", "cuda-toolkit-12-8=12.8.*"])
    result = host.call()
    assert sorted(result["steps"]) == ["remove cuda-nvcc-12-8 12.8.93-1", "remove cuda-toolkit-12-8 12.8.1-1"]


def test_kernel_headers_come_beside_those_of_other_kernels(host):
    host.call(alongside=["kernel-devel=5.14.0-503.1.1.el9_5"])
    result = host.call(alongside=["kernel-devel=5.14.0-570.12.1.el9_6"])
    assert result["steps"] == ["install kernel-devel 5.14.0-570.12.1.el9_6"]
    assert result["repaired"] == []
    assert not host.call(alongside=["kernel-devel=5.14.0-503.1.1.el9_5"])["changed"]


def test_absent_brings_back_the_state_before(host, root):
    host.call()
    assert host.call(state="absent", packages=[])["changed"]
    assert host.locks() == []
    assert not (root / "etc/dnf/modules.d/nvidia-driver.module").exists()
    assert not host.call(state="absent", packages=[])["changed"]
    assert host.call(check=True)["after"] == {}


def test_absent_keeps_the_locks_of_a_person_at_work(host, root):
    host.call()
    locks = root / "etc/dnf/plugins/versionlock.list"
    locks.write_text(locks.read_text() + "bash-0:5.1.8-9.el9.*\n")
    result = host.call(state="absent", packages=[])
    assert host.locks() == ["bash-0:5.1.8-9.el9.*"]
    assert result["steps"]
    assert not [step for step in result["steps"] if "versionlock" in step]
