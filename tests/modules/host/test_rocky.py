"""Rocky Linux 9 as people have it: facts by rpm, the plan that follows, and what dnf then does.

Over what the real dnf 4.14 and rpm said to the same calls; see recordings.py for a new recording.
"""

import copy
import importlib.util
import json
import subprocess
from pathlib import Path

import pytest
import yaml
from ansible.module_utils import dnf, package_facts, role_receipts
from host_doubles import load

from boxwright import catalog, planner
from boxwright.facts import HostFacts, parse
from boxwright.spec.box import box_from_variables

recordings, dnf_repository = load("recordings"), load("dnf_repository")
TESTS, ROLES = Path(__file__).resolve().parents[2], Path(__file__).resolve().parents[3] / "roles"
spec = importlib.util.spec_from_file_location("unit_boxes", TESTS / "unit/conftest.py")
boxes = importlib.util.module_from_spec(spec)
spec.loader.exec_module(boxes)
CATALOG = catalog.load()
OS_RELEASE = (
    'NAME="Rocky Linux"\nVERSION="9.6 (Blue Onyx)"\nID="rocky"\nID_LIKE="rhel centos fedora"\n'
    'VERSION_ID="9.6"\nPLATFORM_ID="platform:el9"\nPRETTY_NAME="Rocky Linux 9.6 (Blue Onyx)"\n'
)
KERNEL, WAITING = "5.14.0-503.1.1.el9_5.x86_64", f"{dnf_repository.KERNEL}.x86_64"
BOX = {
    "box_gpus": {"model": "rtx5090", "count": 1},
    "container_runtime_source": "vendor",
    "box_deployments": [{"name": "q", "model": "qwen3-8b-awq", "image": "vllm/vllm-openai:v0.29.0"}],
}
NEW = "3:580.105.08-1.el9"
REPOSITORIES = """[baseos]
name=Rocky Linux $releasever - BaseOS
mirrorlist=https://mirrors.rockylinux.org/mirrorlist?arch=$basearch&repo=BaseOS-$releasever$rltype
enabled=1

[devel]
name=Rocky Linux $releasever - Devel WARNING! FOR BUILDROOT USE ONLY!
baseurl=http://dl.rockylinux.org/$contentdir/$releasever/devel/$basearch/os/
enabled=0
"""
EPEL = """[epel]
name=Extra Packages for Enterprise Linux $releasever - $basearch
metalink=https://mirrors.fedoraproject.org/metalink?repo=epel-$releasever&arch=$basearch
"""


def of_role(role, *names):
    """Values of a role's variables for Red Hat's family, those without templates."""
    found = {}
    for file in ("main", "redhat"):
        found.update(yaml.safe_load((ROLES / role / f"vars/{file}.yml").read_text()))
    return [found[name] for name in names]


FAMILY, STRANGERS = of_role("nvidia_driver", "_nvidia_driver_family", "_nvidia_driver_strangers")
DOCKER_FAMILY, DOCKER_LEAVES = of_role(
    "container_runtime", "_container_runtime_family", "_container_runtime_may_remove"
)


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    """The arguments of held_packages that the role makes for such a host."""
    raw = raw_of({"rpms": {"rc": 0, "stdout": "", "stderr": ""}, "locked": [], "repositories": []})
    place, hosts = tmp_path_factory.mktemp("asked"), {"box1": (parse(raw, "box1"), {})}
    return load("role_arguments").of_hosts(place, "redhat", hosts)["box1"]


@pytest.fixture
def rocky(request, root, tmp_path, monkeypatch, module, repository, asked):
    """A Rocky Linux 9 in small: install(*packages), driver(**arguments), runtime(**arguments), look()."""
    name = "rocky_" + request.node.name.removeprefix("test_")
    host = recordings.DnfHost(name, root, tmp_path, monkeypatch, repository)
    monkeypatch.setattr(dnf, "LOCKS", ())
    (root / "etc/os-release").write_text(OS_RELEASE)
    sources = root / "etc/yum.repos.d"
    sources.mkdir(parents=True)
    (sources / "rocky.repo").write_text(REPOSITORIES)
    host.epel = lambda: (sources / "epel.repo").write_text(EPEL)

    def call(*words):
        subprocess.run(["dnf", "-y", *words], check=True, capture_output=True, timeout=120)

    host.dnf = call
    # As it was before a repository was there that has something in a package's place.
    host.install = lambda *packages: call("--setopt=obsoletes=0", "install", *packages)
    # Without what the running kernel needs, which the tests name.
    host.driver = module("held_packages", **{**asked, "alongside": []})
    host.runtime = module(
        "held_packages",
        name="container-runtime",
        packages=["docker-ce", "docker-ce-cli", "containerd.io", "nvidia-container-toolkit"],
        hold=DOCKER_FAMILY,
        may_remove=DOCKER_LEAVES,
    )
    host.look = lambda: package_facts.look(str(root))
    yield host
    host.keep()


def raw_of(seen, kept=None, **changes):
    """The raw answer of such a host. seen: of package_facts. changes: by dotted path."""
    raw = boxes.raw_box(["rtx5090"], changes.pop("driver", None), system=OS_RELEASE)
    for name in ("packages", "holds"):
        del raw["commands"][name]
    raw["commands"]["rpms"] = seen["rpms"]
    raw.update(locked=seen["locked"], repositories=seen["repositories"], kept=kept or {})
    raw["uname"]["release"], raw["next_kernel"] = KERNEL, KERNEL
    raw["files"]["selinux"] = "1"
    for path, value in changes.items():
        *steps, last = path.split("/")
        place = raw
        for step in steps:
            place = place.setdefault(step, {})
        place[last] = value
    return raw


def facts_of(seen, **changes):
    return parse(raw_of(seen, **changes), "box1")


def plan_of(found, **variables):
    return planner.plan(box_from_variables("box1", {**copy.deepcopy(BOX), **variables}), found, CATALOG)


def told(made):
    return [change.text for change in made.changes]


def ids(findings):
    return {one.id for one in findings}


def test_a_bare_host(rocky):
    rocky.install("kernel-core")
    found = facts_of(rocky.look(), **{"commands/firewalld": {"rc": 0, "stdout": "active\n", "stderr": ""}})
    assert found.os.manager == "dnf"
    assert (found.os.name, found.os.major) == ("Rocky Linux 9.6 (Blue Onyx)", "9")
    assert found.os.selinux == "enforcing"
    assert found.repositories == ("baseos",)
    assert found.firewalls == ("firewalld",)
    assert (found.driver.state, dict(found.driver.packages), found.docker.version) == ("nouveau", {}, None)
    made = plan_of(found)
    assert ids(made.gates) == set()
    assert "dkms-needs-epel" in ids(made.advice)
    assert told(made)[:3] == [
        "driver none -> branch 580, reboot",
        "Docker Engine none -> the newest docker-ce",
        "NVIDIA container toolkit none -> the newest",
    ]
    assert {"nvidia_driver", "container_runtime", "engine"} <= set(made.to_json()["visits"])
    assert HostFacts.from_json(json.loads(json.dumps(found.to_json()))) == found


def test_what_a_run_of_ours_left(rocky, root, monkeypatch):
    """After both roles there is nothing to do, and a lock that somebody lifts is found."""
    rocky.epel()
    rocky.driver(alongside=[f"kernel-devel-matched={dnf_repository.KERNEL}"])
    rocky.runtime()
    holds = root / "var/lib/boxwright/holds"
    kept = {f"/var/lib/boxwright/holds/{one.name}": one.read_text() for one in holds.iterdir()}
    for name, url in (
        ("cuda", "https://developer.download.nvidia.com/compute/cuda/repos/rhel9/x86_64/"),
        ("docker", "https://download.docker.com/linux/rhel/9/x86_64/stable"),
        ("container-toolkit", "https://nvidia.github.io/libnvidia-container/stable/rpm/x86_64"),
    ):
        kept[f"/etc/yum.repos.d/boxwright-{name}.repo"] = f"[boxwright-{name}]\nbaseurl={url}\nenabled=1\n"
    for path in ("/etc/modprobe.d/boxwright-nvidia.conf", "/etc/modules-load.d/boxwright-nvidia.conf"):
        kept[path] = ""
    docker = {"ServerVersion": "28.5.1", "Runtimes": {"nvidia": {}, "runc": {}}, "CDISpecDirs": ["/etc/cdi"]}
    changes = {
        "driver": "580.105.08",
        "commands/docker-info": {"rc": 0, "stdout": json.dumps(docker), "stderr": ""},
        "commands/toolkit": {
            "rc": 0,
            "stdout": "NVIDIA Container Toolkit CLI version 1.18.0\n",
            "stderr": "",
        },
        "commands/cdi": {"rc": 0, "stdout": "nvidia.com/gpu=0\nnvidia.com/gpu=all\n", "stderr": ""},
        "files/daemon-json": '{"features": {"cdi": true}, "runtimes": {"nvidia": {"path": '
        '"nvidia-container-runtime"}}}',
    }
    seen = rocky.look()
    found = facts_of(seen, kept=kept, **changes)
    assert found.driver.packages["kmod-nvidia-open-dkms"] == NEW
    assert found.driver.packages["kernel-devel"] == dnf_repository.KERNEL
    assert found.docker.packages["docker-ce"] == "3:28.5.1-1.el9"
    assert found.docker.packages["container-selinux"] == "4:2.235.0-1.el9"
    assert {"nvidia-driver-cuda", "libnvidia-ml", "docker-ce", "containerd.io"} <= set(found.driver.held)
    assert "dkms" not in found.driver.held
    made = plan_of(found)
    assert ids(made.gates) == set()
    of_packages = [text for text in told(made) if not text.startswith(("weights", "image", "q:", "persist"))]
    assert [text for text in of_packages if "driver" in text or "Docker" in text or "hold" in text] == []

    states = role_receipts.installed
    monkeypatch.setattr(role_receipts.package_manager, "name", lambda root="": "dnf")
    monkeypatch.setattr(role_receipts, "VersionLock", lambda _: versionlock_of(root))
    before = states()
    assert before["nvidia-driver-cuda"] == f"{NEW} held"
    assert before["dkms"] == "0:3.2.1-1.el9"
    locks = root / "etc/dnf/plugins/versionlock.list"
    kept_locks = [line for line in locks.read_text().splitlines() if "nvidia-driver-cuda-3" not in line]
    locks.write_text("\n".join(kept_locks) + "\n")
    assert states()["nvidia-driver-cuda"] == NEW
    lifted = facts_of(rocky.look(), kept=kept, **changes)
    assert "hold of nvidia-driver-cuda lifted -> held" in told(plan_of(lifted))


def test_repositories_that_are_on(root):
    """Not those that are off, nor of a file that dnf cannot read, either."""
    place = root / "etc/yum.repos.d"
    place.mkdir(parents=True)
    (place / "a.repo").write_text(REPOSITORIES + EPEL)
    (place / "b.repo").write_text("no section\nenabled=1\n")
    (place / "c.repo").write_text("[c]\nenabled = False\n[d]\nbaseurl =\n  http://a/\n  http://b/\n[c]\n")
    (place / "d.txt").write_text("[e]\n")
    found = package_facts.repositories(str(root))
    assert [(one["id"], one["file"]) for one in found] == [
        ("baseos", "a.repo"),
        ("epel", "a.repo"),
        ("d", "c.repo"),
    ]
    assert found[2]["from"] == "http://a/"


def versionlock_of(root):
    return package_facts.VersionLock(str(root))


def test_locks_that_are_off_hold_nothing(rocky, root):
    rocky.driver()
    settings = root / "etc/dnf/plugins/versionlock.conf"
    settings.write_text("[main]\nenabled = 0\n")
    assert rocky.look()["locked"] == []


def test_the_vendors_driver_of_another_branch(rocky):
    rocky.epel()
    rocky.dnf("module", "enable", "nvidia-driver:570-open")
    rocky.install("kernel-core", "nvidia-driver-cuda", "kmod-nvidia-open-dkms")
    found = facts_of(rocky.look(), driver="570.195.03")
    assert (found.driver.installed_version, found.driver.branch) == ("570.195.03", 570)
    assert "driver 570.195.03 -> branch 580, reboot" in told(plan_of(found))
    result = rocky.driver()
    assert f"upgrade kmod-nvidia-open-dkms 3:570.195.03-1.el9 -> {NEW}" in result["steps"]
    assert len(rocky.transactions) == 1
    assert facts_of(rocky.look(), driver="580.105.08").driver.installed_version == "580.105.08"


@pytest.mark.parametrize(
    "packages",
    [
        pytest.param(["xorg-x11-drv-nvidia-cuda", "akmod-nvidia", f"kmod-nvidia-{WAITING}"], id="rpmfusion"),
        pytest.param(["nvidia-x11-drv", "kmod-nvidia"], id="elrepo"),
    ],
)
def test_a_driver_of_another_source_leaves_in_the_one_transaction(rocky, packages):
    rocky.epel()
    rocky.install(*packages)
    found = facts_of(rocky.look(), driver="570.169")
    assert found.driver.installed_version == "570.169"
    assert set(found.driver.packages) == set(packages)
    assert "driver 570.169 -> branch 580, reboot" in told(plan_of(found))
    result = rocky.driver()
    assert {f"remove {name}" for name in packages} <= {" ".join(step.split()[:2]) for step in result["steps"]}
    assert f"install nvidia-driver-cuda {NEW}" in result["steps"]
    assert len(rocky.transactions) == 1
    assert not rocky.driver()["changed"]
    after = facts_of(rocky.look(), driver="580.105.08")
    assert not set(packages) & set(after.driver.packages)


def test_uninstall_brings_back_a_driver_of_another_source(rocky):
    rocky.install("nvidia-x11-drv", "kmod-nvidia")
    rocky.driver()
    result = rocky.driver(state="absent", packages=[])
    assert "install nvidia-x11-drv 570.169-1.el9_6.elrepo" in result["steps"]
    assert not [name for name in facts_of(rocky.look()).driver.packages if name.startswith("nvidia-driver")]


def test_dockers_runc_takes_the_place_of_the_distributions(rocky):
    """Podman goes on with crun."""
    rocky.install("podman", "crun", "runc")
    result = rocky.runtime()
    assert "remove runc 4:1.2.5-2.el9" in result["steps"]
    assert "install docker-ce 3:28.5.1-1.el9" in result["steps"]
    assert not [step for step in result["steps"] if "podman" in step]
    back = rocky.runtime(state="absent", packages=[], unpurged=["docker*"])
    assert "install runc 4:1.2.5-2.el9" in back["steps"]


def test_podman_that_has_runc_alone_gets_another(rocky):
    rocky.install("podman", "runc")
    result = rocky.runtime()
    assert {"remove runc 4:1.2.5-2.el9", "install crun 1.21-1.el9"} <= set(result["steps"])
    assert not [step for step in result["steps"] if "podman" in step]


def test_podman_in_dockers_clothes(rocky):
    rocky.install("podman-docker", "crun")
    traces = {"programs": {"docker": {"path": "/usr/bin/docker", "real": "/usr/bin/docker", "podman": True}}}
    found = facts_of(rocky.look(), docker_traces=traces)
    made = plan_of(found)
    assert ids(made.gates) == {"docker-is-podman"}
    assert any("dnf remove podman-docker" in way for gate in made.gates for way in gate.fix)


def test_docker_that_confines_containers(rocky):
    """`selinux-enabled` of daemon.json on a host that enforces: engines are let out of it."""
    rocky.runtime()
    docker = {"ServerVersion": "28.5.1", "SecurityOptions": ["name=seccomp,profile=builtin", "name=selinux"]}
    info = {"rc": 0, "stdout": json.dumps(docker), "stderr": ""}
    found = facts_of(rocky.look(), **{"commands/docker-info": info})
    assert (found.os.selinux, found.docker.labels) == ("enforcing", True)
    assert plan_of(found).to_json()["deployments"][0]["selinux"] is True


def test_headers_come_for_the_kernel_that_runs_and_bring_no_other_one(rocky):
    """Without a version kernel-devel-matched brings the newest kernel-core, and nothing of its modules."""
    running = KERNEL.removesuffix(".x86_64")
    rocky.install(f"kernel-core-{running}")
    result = rocky.driver(alongside=[f"kernel-devel-matched={running}"])
    assert f"install kernel-devel {running}" in result["steps"]
    assert not [step for step in result["steps"] if "kernel-core" in step]
    assert not rocky.driver(alongside=["kernel-devel-matched"])["changed"]


def test_headers_of_the_kernel_that_runs_and_of_one_that_waits_come_together(rocky):
    running = KERNEL.removesuffix(".x86_64")
    rocky.install(f"kernel-core-{running}", f"kernel-core-{dnf_repository.KERNEL}")
    asked = [
        f"kernel-devel-matched={dnf_repository.KERNEL}",
        f"kernel-devel={running}",
        f"kernel-devel={dnf_repository.KERNEL}",
    ]
    result = rocky.driver(alongside=asked)
    brought = {step for step in result["steps"] if step.startswith("install kernel-devel ")}
    assert brought == {f"install kernel-devel {running}", f"install kernel-devel {dnf_repository.KERNEL}"}
    assert len(rocky.transactions) == 1
    assert not rocky.driver(alongside=asked)["changed"]


def test_headers_of_a_kernel_that_the_sources_have_no_more(rocky):
    said = rocky.driver(alongside=["kernel-devel=5.14.0-427.13.1.el9_4"])["msg"]
    assert "kernel-devel has no version 5.14.0-427.13.1.el9_4; there is 5.14.0-570.12.1.el9_6" in said
    assert "dnf upgrade kernel, reboot into it, then run again" in said
    assert not rocky.transactions


def test_a_kernel_that_waits_is_told_with_its_headers(rocky):
    rocky.install(f"kernel-core-{dnf_repository.KERNEL}", f"kernel-devel-{dnf_repository.KERNEL}")
    changes = {"next_kernel": WAITING, "next_headers": True}
    dkms = f"nvidia-open/580.105.08, {KERNEL}, x86_64: installed\n"
    found = facts_of(rocky.look(), driver="580.105.08", **changes, **{
        "commands/dkms": {"rc": 0, "stdout": dkms, "stderr": ""}
    })  # fmt: skip
    assert (found.driver.next_kernel, found.driver.next_headers) == (WAITING, True)
    assert found.driver.packages["kernel-devel"] == dnf_repository.KERNEL
    assert f"modules for the next kernel, {WAITING} none -> built" in told(plan_of(found))
