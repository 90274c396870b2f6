"""The roles nvidia_driver and container_runtime on Rocky Linux 9: what they ask of their modules, and refuse.

Ansible is the real one, and so are the plan and the roles; the modules only tell what they were asked.
"""

import importlib.util
import json
import sys
from pathlib import Path

import host_doubles as doubles
import pytest

from boxwright import catalog, planner
from boxwright.facts import parse
from boxwright.spec.box import box_from_variables

ROOT = Path(__file__).resolve().parents[3]
spec = importlib.util.spec_from_file_location("unit_boxes", ROOT / "tests/unit/conftest.py")
boxes = importlib.util.module_from_spec(spec)
spec.loader.exec_module(boxes)
OS_RELEASE = (
    'ID="rocky"\nID_LIKE="rhel centos fedora"\nVERSION_ID="9.6"\nPRETTY_NAME="Rocky Linux 9.6 (Blue Onyx)"\n'
)
KERNEL, WAITING = "5.14.0-503.1.1.el9_5.x86_64", "5.14.0-570.12.1.el9_6.x86_64"
NVIDIA = "https://developer.download.nvidia.com/compute/cuda/repos/rhel9/x86_64/"
BOX = {
    "box_gpus": {"model": "rtx5090", "count": 1},
    "container_runtime_source": "vendor",
    "box_deployments": [{"name": "q", "model": "qwen3-8b-awq", "image": "vllm/vllm-openai:v0.29.0"}],
}
#: What the modules answer, as they do on a host where all went well.
ANSWERS = {
    "package_source": {"created": True},
    "held_packages": {"after": {"nvidia-driver-cuda": "3:580.105.08-1.el9"}, "not_restored": ""},
    "nvidia_module": {"reboot_needed": ""},
    "nvidia_cards": {"outcome": "ok", "cards": [{"driver_version": "580.105.08"}], "lost": [], "why": ""},
    "docker_daemon_config": {
        "cdi": True,
        "version": "28.5.1",
        "info": {"runtimes": ["nvidia"]},
        "applied": "",
    },
    "cdi_spec": {"devices": ["0", "all"]},
    "docker_registries": {},
}
STUB = """#!/usr/bin/python
# WANT_JSON
import json, sys
asked = json.load(open(sys.argv[1]))
with open({log!r}, "a") as stream:
    given = {{k: v for k, v in asked.items() if not k.startswith("_ansible")}}
    stream.write(json.dumps([{name!r}, given]) + "\\n")
print(json.dumps(dict({answer!r}, changed=True)))
"""


@pytest.fixture
def run(tmp_path):
    """Runs tasks on a Rocky box: run(tasks, facts, **variables) -> status, output, the modules' calls."""
    library, log = tmp_path / "library", tmp_path / "asked"
    library.mkdir()
    for name, answer in ANSWERS.items():
        (library / f"{name}.py").write_text(STUB.format(log=str(log), name=name, answer=answer))

    def play(tasks, changes=None, **variables):
        raw = boxes.raw_box(["rtx5090"], system=OS_RELEASE)
        raw["uname"]["release"], raw["next_kernel"] = KERNEL, KERNEL
        raw.update({"headers": False, "repositories": [{"id": "epel"}], **(changes or {})})
        given = {**BOX, **variables}
        made = planner.plan(box_from_variables("box1", given), parse(raw, "box1"), catalog.load()).to_json()
        host = {
            **given,
            "box_plan": made,
            "ansible_connection": "local",
            "ansible_python_interpreter": sys.executable,
        }
        done = doubles.play(tmp_path, {"box1": host}, tasks, ANSIBLE_LIBRARY=str(library))
        lines = log.read_text().splitlines() if log.exists() else []
        return done.returncode, done.stdout + done.stderr, [json.loads(line) for line in lines]

    return play


def roles(*names, tasks="main"):
    return [{"include_role": {"name": name, "tasks_from": tasks}} for name in names]


def test_both_roles_ask_for_what_red_hats_family_has(run):
    status, said, asked = run(
        roles("nvidia_driver", "container_runtime"), {"next_kernel": WAITING, "next_headers": False}
    )
    assert status == 0, said
    calls = [(name, words.get("name")) for name, words in asked]
    assert calls[:5] == [
        ("package_source", "boxwright-cuda"),
        ("held_packages", "nvidia-driver"),
        ("nvidia_module", None),
        ("nvidia_cards", None),
        ("package_source", "boxwright-docker"),
    ]
    source, driver, module = (words for _, words in asked[:3])
    assert (source["uris"], source["key_url"]) == ([NVIDIA], f"{NVIDIA}D42D0685.pub")
    assert driver["packages"] == ["nvidia-driver-cuda", "kmod-nvidia-open-dkms", "nvidia-persistenced"]
    assert (driver["version"], driver["stream"]) == ("3:580.*", "nvidia-driver:580-open")
    assert driver["alongside"] == [
        "kernel-devel-matched=5.14.0-570.12.1.el9_6",
        "kernel-devel=5.14.0-503.1.1.el9_5",
        "kernel-devel=5.14.0-570.12.1.el9_6",
    ]
    assert "akmod-nvidia*" in driver["replaces"]
    assert "xorg-x11-drv-nvidia*" in driver["may_remove"]
    assert module["version"] == "580.105.08"
    named = {words.get("name"): words for name, words in asked if name in ("package_source", "held_packages")}
    assert named["boxwright-docker"]["uris"] == ["https://download.docker.com/linux/rhel/9/x86_64/stable"]
    assert named["boxwright-container-toolkit"]["signed"] == ["metadata"]
    runtime = named["container-runtime"]
    assert runtime["packages"][:3] == ["docker-ce", "docker-ce-cli", "containerd.io"]
    assert runtime["may_remove"] == ["runc"]


def test_a_metapackage_of_headers_that_is_there_stays_in_its_version(run):
    rpms = "kernel-devel-matched\t0:5.14.0-570.12.1.el9_6\tx86_64\n"
    changes = {"headers": True}
    raw = boxes.raw_box(["rtx5090"])
    changes["commands"] = {**raw["commands"], "rpms": {"rc": 0, "stdout": rpms, "stderr": ""}}
    status, said, asked = run(roles("nvidia_driver"), changes)
    assert status == 0, said
    assert dict(asked)["held_packages"]["alongside"] == ["kernel-devel-matched"]


def test_both_roles_take_away_what_they_brought(run):
    status, said, asked = run(roles("container_runtime", "nvidia_driver", tasks="uninstall"))
    assert status == 0, said
    gone = [words["name"] for name, words in asked if name == "package_source" and words["state"] == "absent"]
    assert gone == ["boxwright-container-toolkit", "boxwright-docker", "boxwright-cuda"]


@pytest.mark.parametrize(
    ("role", "changes", "variables", "words"),
    [
        pytest.param(
            "nvidia_driver",
            {},
            {"nvidia_driver_source": "distribution"},
            ["Rocky Linux 9.6 (Blue Onyx) has no NVIDIA driver of its own", "nvidia_driver_source: vendor"],
            id="no driver of the distribution",
        ),
        pytest.param(
            "nvidia_driver",
            {"efi": True, "secure_boot": "0600000001"},
            {},
            [
                "Secure Boot is on",
                "sudo dnf install dkms mokutil",
                "sudo mokutil --import /var/lib/dkms/mok.pub",
            ],
            id="Secure Boot",
        ),
        pytest.param(
            "nvidia_driver",
            {},
            {"nvidia_driver_flavor": "proprietary"},
            ["works only with the open kernel modules", "nvidia_driver_flavor: open"],
            id="modules that do not drive the card",
        ),
        pytest.param(
            "nvidia_driver",
            {"files": {"os-release": OS_RELEASE.replace("9.6", "10.1")}},
            {},
            ["rocky-10 (x86_64) is not supported", "rhel-9, rocky-9, almalinux-9"],
            id="another release",
        ),
        pytest.param(
            "container_runtime",
            {},
            {"container_runtime_source": "distribution"},
            ["has no Docker of its own", "container_runtime_source: vendor"],
            id="no Docker of the distribution",
        ),
    ],
)
def test_refused_before_anything_is_asked_of_a_module(run, role, changes, variables, words):
    status, said, asked = run(roles(role), changes, **variables)
    assert status != 0
    flat = " ".join(said.split())
    assert [word for word in words if word not in flat] == []
    assert asked == []
