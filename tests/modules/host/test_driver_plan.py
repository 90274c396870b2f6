"""Which packages nvidia_driver asks for, by distribution: those too of which the lab has no hosts."""

from pathlib import Path

import pytest
import yaml
from ansible.module_utils import packages
from host_doubles import play

ROOT = Path(__file__).resolve().parents[3]
ROLE = ROOT / "roles" / "nvidia_driver"
ASKED = {
    "uri": "_nvidia_driver_uri",
    "version": "_nvidia_driver_version",
    "upstream": "_nvidia_driver_upstream",
    "packages": "_nvidia_driver_packages + _nvidia_driver_toolkit",
    "headers": "_nvidia_driver_headers",
    "replaces": "_nvidia_driver_replaces",
    "may_remove": "_nvidia_driver_may_remove",
    "supported": "_nvidia_driver_host in _nvidia_driver_supported",
    "signed": "_nvidia_driver_signed",
    "avoid": "_nvidia_driver_avoid[nvidia_driver_source]",
    "from_vendor": "_nvidia_driver_from_vendor",
    "key": "_nvidia_driver_key_url",
    "stream": "_nvidia_driver_stream",
    "kernel_headers": "[_nvidia_driver_os.kernel] | map('regex_replace', _nvidia_driver_headers_of.from, "
    "_nvidia_driver_headers_of.to) | list",
}
HELD = yaml.safe_load((ROLE / "vars/main.yml").read_text())["_nvidia_driver_family"]
STRANGERS = yaml.safe_load((ROLE / "vars/redhat.yml").read_text())["_nvidia_driver_strangers"]
VENDOR = "https://developer.download.nvidia.com/compute/cuda/repos"
HEADLESS = ["nvidia-driver-cuda", "nvidia-kernel-open-dkms", "nvidia-persistenced"]


def os_facts(release, kernel, architecture="x86_64"):
    name, _, version = release.partition("-")
    return {"id": name, "version_id": version, "kernel": kernel, "architecture": architecture}


#: As the role chooses it.
FAMILY = "{{ _nvidia_driver_families[box_plan.facts.os.id] }}.yml"

CASES = {
    "rocky-9.6": (
        os_facts("rocky-9.6", "5.14.0-570.12.1.el9_6.x86_64"),
        {"nvidia_driver_cuda_toolkit": "12.8"},
        {
            "uri": f"{VENDOR}/rhel9/x86_64/",
            "key": f"{VENDOR}/rhel9/x86_64/D42D0685.pub",
            "version": "3:580.*",
            "stream": "nvidia-driver:580-open",
            "packages": [
                "nvidia-driver-cuda",
                "kmod-nvidia-open-dkms",
                "nvidia-persistenced",
                "cuda-toolkit-12-8=12.8.*",
            ],
            "headers": ["kernel-devel-matched=5.14.0-570.12.1.el9_6"],
            "kernel_headers": ["kernel-devel=5.14.0-570.12.1.el9_6"],
            "replaces": [
                "kmod-nvidia-latest-dkms",
                "kmod-nvidia-[0-9]*",
                "kmod-nvidia-open-[0-9]*",
                *STRANGERS,
            ],
            "may_remove": [*HELD, "*-nvidia-*", "glx-*", "libnvoptix1", "libnvrtc*", *STRANGERS],
            "signed": [],
            "avoid": [],
            "supported": True,
        },
    ),
    "rhel-9.8-proprietary-exact": (
        os_facts("rhel-9.8", "5.14.0-687.51.1.el9_8.x86_64"),
        {
            "nvidia_driver_branch": "570",
            "nvidia_driver_version": "570.195.03",
            "nvidia_driver_flavor": "proprietary",
        },
        {
            "version": "3:570.195.03-*",
            "stream": "nvidia-driver:570-dkms",
            "packages": ["nvidia-driver-cuda", "kmod-nvidia-latest-dkms", "nvidia-persistenced"],
            "replaces": [
                "kmod-nvidia-open-dkms",
                "kmod-nvidia-[0-9]*",
                "kmod-nvidia-open-[0-9]*",
                *STRANGERS,
            ],
            "supported": True,
        },
    ),
    **{
        f"rocky-as-written-{number}": (
            os_facts("rocky-9.6", "5.14.0-570.12.1.el9_6.x86_64"),
            {"nvidia_driver_version": written},
            {"version": version, "upstream": "580.105.08"},
        )
        for number, (written, version) in enumerate(
            [
                ("580.105.08", "3:580.105.08-*"),
                ("3:580.105.08", "3:580.105.08-*"),
                ("580.105.08-1", "580.105.08-1.*"),
                ("580.105.08-1.el9", "580.105.08-1.el9"),
                ("3:580.105.08-1.el9", "3:580.105.08-1.el9"),
                ("580.105.08-1.el9.x86_64", "580.105.08-1.el9.x86_64"),
            ]
        )
    },
    "almalinux-9.6": (
        os_facts("almalinux-9.6", "5.14.0-570.12.1.el9_6.x86_64"),
        {"nvidia_driver_branch": "595"},
        {"stream": "nvidia-driver:595-open", "version": "3:595.*", "supported": True},
    ),
    "rhel-10": (
        os_facts("rhel-10.1", "6.12.0-124.8.1.el10_1.aarch64", "aarch64"),
        {},
        {
            "uri": f"{VENDOR}/rhel10/sbsa/",
            "stream": "",
            "kernel_headers": ["kernel-devel=6.12.0-124.8.1.el10_1"],
            "supported": False,
        },
    ),
    "debian-12": (
        os_facts("debian-12", "6.1.0-40-amd64"),
        {"nvidia_driver_branch": "570"},
        {
            "uri": f"{VENDOR}/debian12/x86_64/",
            "version": "570.*",
            "packages": HEADLESS,
            "headers": ["linux-headers-amd64"],
            "replaces": ["nvidia-kernel-dkms", "cuda-drivers*"],
            "may_remove": [*HELD, "*-nvidia-*", "glx-*", "libnvoptix1", "libnvrtc*"],
            "supported": True,
            "signed": [],
            "avoid": ["o=Debian", "o=Debian Backports"],
            "from_vendor": True,
        },
    ),
    "debian-distribution": (
        os_facts("debian-13", "6.12.48+deb13-amd64"),
        {"nvidia_driver_source": "distribution", "nvidia_driver_flavor": "proprietary"},
        {
            "version": "580.*",
            "packages": ["nvidia-smi", "nvidia-kernel-dkms", "libcuda1", "nvidia-persistenced"],
            "headers": ["linux-headers-amd64"],
            "replaces": ["nvidia-kernel-open-dkms", "nvidia-open*"],
            "avoid": ["o=NVIDIA"],
            "from_vendor": False,
        },
    ),
    "debian-distribution-toolkit": (
        os_facts("debian-12", "6.1.0-40-amd64"),
        {"nvidia_driver_source": "distribution", "nvidia_driver_cuda_toolkit": "12.8"},
        {
            "packages": [
                "nvidia-smi",
                "nvidia-open-kernel-dkms",
                "libcuda1",
                "nvidia-persistenced",
                "cuda-toolkit-12-8=12.8.*",
            ],
            "from_vendor": True,
        },
    ),
    # https://packages.ubuntu.com/noble-updates/linux-modules-nvidia-580-open-generic
    "ubuntu-signed": (
        os_facts("ubuntu-24.04", "6.8.0-85-generic"),
        {"nvidia_driver_source": "distribution"},
        {
            "version": "580.*-0ubuntu0.*",
            "packages": ["nvidia-headless-no-dkms-580-open", "nvidia-utils-580"],
            "signed": [
                "linux-modules-nvidia-580-open-6.8.0-85-generic",
                "linux-modules-nvidia-580-open-generic",
            ],
            "avoid": ["o=NVIDIA", "o=LP-PPA-graphics-drivers"],
            "from_vendor": False,
        },
    ),
    "ubuntu-signed-enablement": (
        os_facts("ubuntu-22.04", "6.8.0-85-generic"),
        {"nvidia_driver_source": "distribution", "nvidia_driver_flavor": "proprietary"},
        {
            "packages": ["nvidia-headless-no-dkms-580", "nvidia-utils-580"],
            "signed": [
                "linux-modules-nvidia-580-6.8.0-85-generic",
                "linux-modules-nvidia-580-generic-hwe-22.04",
            ],
        },
    ),
    # The vendor's repository for Debian 13 begins with 590.
    "debian-13": (
        os_facts("debian-13", "6.12.48+deb13-cloud-amd64"),
        {},
        {
            "uri": f"{VENDOR}/debian12/x86_64/",
            "version": "580.*",
            "headers": ["linux-headers-cloud-amd64"],
        },
    ),
    "debian-13-new": (
        os_facts("debian-13", "6.18.0-custom"),
        {"nvidia_driver_branch": "595", "nvidia_driver_flavor": "proprietary"},
        {
            "uri": f"{VENDOR}/debian13/x86_64/",
            "packages": ["nvidia-driver-cuda", "nvidia-kernel-dkms", "nvidia-persistenced"],
            "headers": [],
        },
    ),
    "debian-exact": (
        os_facts("debian-12", "6.1.0-40-amd64"),
        {"nvidia_driver_version": "580.95.05", "nvidia_driver_cuda_toolkit": "12.8"},
        {"version": "580.95.05-*", "packages": [*HEADLESS, "cuda-toolkit-12-8=12.8.*"]},
    ),
    "debian-exact-revision": (
        os_facts("debian-12", "6.1.0-40-amd64"),
        {"nvidia_driver_version": "580.95.05-1"},
        {"version": "580.95.05-1"},
    ),
    "ubuntu-22.04": (
        os_facts("ubuntu-22.04", "5.15.0-91-generic"),
        {},
        {
            "uri": f"{VENDOR}/ubuntu2204/x86_64/",
            "version": "580.*-[01]ubuntu[0-9]",
            "packages": ["nvidia-headless-580-open", "nvidia-utils-580"],
            "headers": ["linux-headers-generic"],
        },
    ),
    "ubuntu-24.04-enablement": (
        os_facts("ubuntu-24.04", "6.11.0-26-generic"),
        {"nvidia_driver_branch": "595"},
        {
            "uri": f"{VENDOR}/ubuntu2404/x86_64/",
            "packages": ["nvidia-headless-open", "nvidia-persistenced"],
            "headers": ["linux-headers-generic-hwe-24.04"],
        },
    ),
    "ubuntu-cloud-arm": (
        os_facts("ubuntu-24.04", "6.8.0-1009-aws", "aarch64"),
        {"nvidia_driver_repository_url": "http://mirror/cuda/"},
        {"uri": "http://mirror/cuda/ubuntu2404/sbsa/", "headers": ["linux-headers-aws"]},
    ),
}


def test_plans(tmp_path):
    """One run of Ansible over hosts of the cases' names; nothing is run on a host."""
    defaults = yaml.safe_load((ROLE / "defaults/main.yml").read_text())
    hosts = {
        name: {
            **defaults,
            **variables,
            "box_plan": {"facts": {"os": system, "cards": [], "driver": {}}},
            "expected": expected,
            "found": "{{ {" + ", ".join(f"'{key}': {ASKED[key]}" for key in expected) + "} }}",
        }
        for name, (system, variables, expected) in CASES.items()
    }
    files = [str(ROLE / "vars" / name) for name in ("main.yml", FAMILY)]
    check = {"that": "found == expected", "fail_msg": "{{ found }} is not {{ expected }}"}
    tasks = [*({"include_vars": name} for name in files), {"assert": check}]
    done = play(tmp_path, hosts, tasks)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("ok=3 ") == len(CASES)


@pytest.mark.parametrize(
    ("name", "leaves"),
    [
        ("nvidia-headless-570-open", True),
        ("libnvidia-compute-535-server", True),
        ("nvidia-headless-580-open", False),
        ("linux-modules-nvidia-570-open-6.8.0-85-generic", True),
        ("linux-modules-nvidia-580-open-6.8.0-85-generic", False),
        ("libnvidia-container1", False),
    ],
)
def test_another_branch_leaves_in_the_same_transaction_on_ubuntu(name, leaves):
    variables = yaml.safe_load((ROLE / "vars/ubuntu.yml").read_text())
    globs = [
        glob.replace("{{ nvidia_driver_branch }}", "580") for glob in variables["_nvidia_driver_replaces"]
    ]
    assert packages.matches(name, globs) is leaves


def test_defaults_are_those_of_the_argument_specs():
    for role in ("nvidia_driver", "gpu_tuning"):
        directory = ROOT / "roles" / role
        specs = yaml.safe_load((directory / "meta/argument_specs.yml").read_text())["argument_specs"]["main"]
        declared = {
            name: option["default"] for name, option in specs["options"].items() if "default" in option
        }
        assert yaml.safe_load((directory / "defaults/main.yml").read_text()) == declared
