"""Which packages and sources container_runtime asks for, by distribution: those too that the lab lacks."""

from pathlib import Path

import yaml
from host_doubles import play

from boxwright.planner.changes import runtime

ROOT = Path(__file__).resolve().parents[3]
ROLE = ROOT / "roles/container_runtime"
DOCKER, TOOLKIT = "https://download.docker.com/linux", "https://nvidia.github.io/libnvidia-container/stable"
TOOLKIT_PACKAGES = [
    "nvidia-container-toolkit",
    "nvidia-container-toolkit-base",
    "libnvidia-container-tools",
    "libnvidia-container1",
]
ASKED = {
    "packages": "_container_runtime_packages",
    "docker": "_container_runtime_docker_uri",
    "key": "_container_runtime_docker_base ~ '/gpg'",
    "toolkit": "_container_runtime_toolkit_uri",
    "signed": "_container_runtime_toolkit_signed",
    "may_remove": "_container_runtime_may_remove",
    "supported": "_container_runtime_host in _container_runtime_supported",
}
#: id, version, architecture -> variables -> what is asked for.
CASES = {
    ("debian", "13", "x86_64"): (
        {},
        {
            "packages": ["docker.io", "docker-cli", *TOOLKIT_PACKAGES],
            "toolkit": f"{TOOLKIT}/deb/amd64/",
            "signed": ["packages"],
            "may_remove": [],
            "supported": True,
        },
    ),
    ("ubuntu", "22.04", "x86_64"): ({}, {"packages": ["docker.io", *TOOLKIT_PACKAGES]}),
    ("ubuntu", "24.04", "x86_64"): (
        {"container_runtime_source": "vendor"},
        {
            "packages": ["docker-ce", "docker-ce-cli", "containerd.io", *TOOLKIT_PACKAGES],
            "docker": f"{DOCKER}/ubuntu",
            "key": f"{DOCKER}/ubuntu/gpg",
        },
    ),
    ("rocky", "9.6", "x86_64"): (
        {"container_runtime_source": "vendor", "container_runtime_version": "28.5.1"},
        {
            "packages": [
                "docker-ce=[0-9]:28.5.1-*",
                "docker-ce-cli=[0-9]:28.5.1-*",
                "containerd.io",
                *TOOLKIT_PACKAGES,
            ],
            "docker": f"{DOCKER}/rhel/9/x86_64/stable",
            "key": f"{DOCKER}/rhel/gpg",
            "toolkit": f"{TOOLKIT}/rpm/x86_64",
            "signed": ["metadata"],
            "may_remove": ["runc"],
            "supported": True,
        },
    ),
    ("almalinux", "9.7", "x86_64"): ({"container_runtime_source": "vendor"}, {"supported": True}),
    ("rocky", "10.0", "x86_64"): ({"container_runtime_source": "vendor"}, {"supported": False}),
    ("rhel", "9.8", "aarch64"): (
        {
            "container_runtime_source": "vendor",
            "container_runtime_toolkit_repository_url": "http://mirror/rpm/",
        },
        {"docker": f"{DOCKER}/rhel/9/aarch64/stable", "toolkit": "http://mirror/rpm/aarch64"},
    ),
}


def test_plans(tmp_path):
    """One run of Ansible over hosts of the cases' names; nothing is run on a host."""
    defaults = yaml.safe_load((ROLE / "defaults/main.yml").read_text())
    hosts = {}
    for (name, version, architecture), (variables, expected) in CASES.items():
        facts = {"os": {"id": name, "version_id": version, "architecture": architecture}}
        found = ", ".join(f"'{key}': {ASKED[key]}" for key in expected)
        hosts[f"{name}-{version}"] = {
            **defaults,
            **variables,
            "box_plan": {"facts": facts},
            "expected": expected,
            "found": "{{ {" + found + "} }}",
        }
    family = "{{ _container_runtime_families[box_plan.facts.os.id] }}.yml"
    # As people write the engine's version -> the glob that its packages are looked for by.
    written = {
        "28.5.*": "28.5.*",
        "28.5.1-1": "28.5.1-1.*",
        "28.5.1-1.el9": "28.5.1-1.el9",
        "3:28.5.1-1.el9": "28.5.1-1.el9",
        "28.5.1-1.el9.x86_64": "28.5.1-1.el9",
    }
    for place, (text, glob) in enumerate(written.items()):
        hosts[f"written-{place}"] = {
            **hosts["rocky-9.6"],
            "container_runtime_version": text,
            "expected": [f"docker-ce=[0-9]:{glob}", f"docker-ce-cli=[0-9]:{glob}"],
            "found": "{{ _container_runtime_packages[:2] }}",
        }
        assert runtime.engine_glob(text, vendor=True, manager="dnf") == f"[0-9]:{glob}"
    check = {"that": "found == expected", "fail_msg": "{{ found }} is not {{ expected }}"}
    tasks = [
        {"include_vars": str(ROLE / "vars/main.yml")},
        {
            "include_vars": f"{ROLE}/vars/{family}",
            "when": "box_plan.facts.os.id in _container_runtime_families",
        },
        {"assert": check},
    ]
    done = play(tmp_path, hosts, tasks)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("failed=0") == len(hosts)
