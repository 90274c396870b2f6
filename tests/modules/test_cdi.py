"""The CDI specification: as the toolkit makes it now, replaced only when that differs."""

import pytest
from ansible.module_utils import cdi
from ansible.module_utils.command import Result

SPEC = 'cdiVersion: "0.6.0"\nkind: nvidia.com/gpu\ndevices:\n- name: "0"\n'
LIST = "nvidia.com/gpu=0\nnvidia.com/gpu=GPU-aaaa\nnvidia.com/gpu=all\nother.com/x=1\n"


class Toolkit:
    """nvidia-ctk on a host."""

    def __init__(self):
        self.generated, self.listed = (
            Result(0, SPEC, 'time="x" level=warning msg="no libx"'),
            Result(0, LIST, ""),
        )

    def run(self, argv, **kw):
        assert argv[:2] == ["nvidia-ctk", "cdi"]
        return {"generate": self.generated, "list": self.listed}[argv[2]]


@pytest.fixture
def toolkit(monkeypatch):
    found = Toolkit()
    monkeypatch.setattr(cdi, "run", found.run)
    return found


def test_devices_are_of_our_kind(toolkit):
    assert cdi.devices() == ["0", "GPU-aaaa", "all"]


@pytest.mark.parametrize(
    ("result", "said"),
    [
        (Result(127, "", "nvidia-ctk: not found"), "nvidia-ctk is not installed"),
        (Result(1, "", "failed to initialize NVML: Driver/library version mismatch"), "mismatch"),
        (Result(0, "", ""), "exit status 0"),
    ],
)
def test_what_the_toolkit_cannot_do_is_told(toolkit, run_module, tmp_path, result, said):
    toolkit.generated = result
    path = tmp_path / "nvidia.yaml"
    found = run_module("cdi_spec", path=str(path))
    assert said in found["msg"]
    assert not path.exists()
    in_check = run_module("cdi_spec", check=True, path=str(path))
    assert (in_check["changed"], in_check.get("failed")) == (True, None)


def test_written_once_and_again_when_the_driver_changes(toolkit, run_module, tmp_path):
    path = tmp_path / "cdi" / "nvidia.yaml"
    first = run_module("cdi_spec", path=str(path))
    assert (first["changed"], first["devices"], path.read_text()) == (True, ["0", "GPU-aaaa", "all"], SPEC)
    assert run_module("cdi_spec", path=str(path))["changed"] is False
    toolkit.generated = Result(0, SPEC + "# libcuda.so.595.71.05\n", "")
    assert run_module("cdi_spec", path=str(path))["changed"] is True
    assert "595" in path.read_text()


def test_a_specification_of_nothing_is_a_failure(toolkit, run_module, tmp_path):
    toolkit.listed = Result(0, "", "")
    found = run_module("cdi_spec", path=str(tmp_path / "nvidia.yaml"))
    assert "finds no device" in found["msg"]
    assert "no libx" in found["msg"]


def test_check_mode_shows_the_difference(toolkit, run_module, tmp_path):
    path = tmp_path / "nvidia.yaml"
    found = run_module("cdi_spec", check=True, diff=True, path=str(path))
    assert (found["changed"], found["diff"]["after"], path.exists()) == (True, SPEC, False)


def test_absent(toolkit, run_module, tmp_path):
    path = tmp_path / "nvidia.yaml"
    path.write_text(SPEC)
    assert run_module("cdi_spec", path=str(path), state="absent")["changed"] is True
    assert not path.exists()
    assert run_module("cdi_spec", path=str(path), state="absent")["changed"] is False
