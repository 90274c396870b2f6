"""Each mistake ends with a message that names it, exit status not 0, and a host on which nothing changed."""

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

pytestmark = pytest.mark.lab

ROOT = Path(__file__).resolve().parents[2]
HOST = "lab2"


@pytest.fixture(scope="module", autouse=True)
def bare(verb, simulated):
    """A bare simulated host: nothing was provisioned on it, whatever other tests did to one of its name."""
    down = [sys.executable, "-m", "boxwright.lab", "down", HOST]
    subprocess.run(down, cwd=ROOT, check=True, capture_output=True, timeout=300)
    ran = verb("lab.up", "--hosts", 2)
    assert ran.status == 0, ran.output
    return simulated(HOST)


@pytest.fixture
def deployment():
    """The lab's own deployment, to be spoiled."""
    declared = Path("inventory/lab/group_vars/serving.yml").read_text()
    return yaml.safe_load(declared)["box_deployments"][0]


@pytest.fixture
def refused(verb, bare, over_lab):
    """Provision the bare host and see it refused, with nothing changed on it; returns the output."""

    def check(*, status=3, **variables):
        before = bare.fingerprint()
        ran = verb("provision", "--host", HOST, *over_lab(HOST, **variables))
        assert ran.status == status, ran.output
        assert "Traceback" not in ran.output
        assert bare.fingerprint() == before
        return ran.output

    return check


@pytest.mark.parametrize("name", ["lbx1", "lab*", "lab1,labx", "lab1:lab2", "all", "-bad"])
def test_unknown_host(verb, name):
    ran = verb("provision", "--host", name)
    assert ran.status == 2, ran.output
    assert "lab1" in ran.output
    assert "Traceback" not in ran.output


def test_unknown_model(refused, deployment):
    output = refused(status=2, box_deployments=[{**deployment, "model": "qwen3.8-27b-int5"}])
    assert "qwen3.8-27b-int5" in output
    assert "qwen3.8-27b-int4" in output


def test_weights_that_cannot_fit(refused, deployment):
    output = refused(box_deployments=[{**deployment, "model": "qwen3.8-27b", "context": 4096}])
    assert "weights" in output
    assert "qwen3.8-27b-int4" in output, "a way out is a form that fits"


def test_context_beyond_the_models(refused, deployment):
    output = refused(box_deployments=[{**deployment, "context": 65536}])
    assert "65,536" in output or "65536" in output
    assert "8,192" in output or "8192" in output


def test_option_of_no_release(refused, deployment):
    extra = {**deployment.get("extra_args", {}), "enable-mtp": True}
    output = refused(box_deployments=[{**deployment, "extra_args": extra}])
    assert "enable-mtp" in output
    assert "speculative" in output


def test_wrong_type(refused, deployment):
    output = refused(status=2, box_deployments=[{**deployment, "port": "8000"}])
    assert "host_vars/lab2.yml:" in output
    assert "port" in output


def test_ssh_refused(verb, tmp_path):
    (tmp_path / "hosts.yml").write_text(
        yaml.safe_dump(
            {
                "all": {
                    "hosts": {"box9": {"ansible_host": "127.0.0.1", "ansible_port": 9, "ansible_user": "me"}}
                }
            }
        )
    )
    ran = verb("provision", "--host", "box9", "--inventory", tmp_path)
    assert ran.status == 1, ran.output
    assert "box9: cannot be reached over SSH, nothing was changed" in ran.output
    assert "Connection refused" in ran.output


def test_hub_down(refused, deployment):
    output = refused(box_deployments=[deployment], box_hub={"endpoint": "http://depot.boxwright.lab:8399"})
    assert "http://depot.boxwright.lab:8399" in output
    assert "Connection refused" in output


def test_hub_of_no_name(refused, deployment):
    output = refused(box_deployments=[deployment], box_hub={"endpoint": "http://hub.boxwright.lab"})
    assert "hub.boxwright.lab" in output


def test_disk_too_small(refused, bare, deployment):
    bare.do("mkdir", "-p", "/var/lib/boxwright")
    bare.do("mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", "/var/lib/boxwright")
    try:
        output = refused(box_deployments=[deployment])
    finally:
        bare.do("umount", "/var/lib/boxwright")
    assert "/var/lib/boxwright" in output
    assert "free" in output
