"""The CDI specification: as the toolkit makes it now, replaced only when that differs."""

import pytest
from ansible.module_utils import cdi, cdi_refresh, systemctl
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
def toolkit(monkeypatch, tmp_path):
    """The toolkit on a host whose units lie in a folder of the test's own."""
    found = Toolkit()
    monkeypatch.setattr(cdi, "run", found.run)
    monkeypatch.setattr(cdi, "REFRESHED", str(tmp_path / "run-cdi"))
    monkeypatch.setattr(cdi_refresh, "UNITS", str(tmp_path / "units"))
    found.units, found.vendor, found.calls, found.on_restart = tmp_path / "units", "not-found", [], None
    found.enabled = True

    def show(unit):
        return systemctl.UnitState(
            found.vendor, "inactive", "dead", "success", 0, "", 0, found.enabled, False
        )

    def restart(unit):
        found.calls.append(("restart", unit))
        if found.on_restart:
            found.on_restart()

    monkeypatch.setattr(systemctl, "show", show)
    monkeypatch.setattr(systemctl, "call", lambda *words: found.calls.append(words))
    monkeypatch.setattr(systemctl, "restart", restart)
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


def test_without_the_toolkits_own_service_a_unit_describes_the_cards_before_docker(
    toolkit, run_module, tmp_path
):
    path = tmp_path / "cdi" / "nvidia.yaml"
    run_module("cdi_spec", path=str(path))
    unit = toolkit.units / "boxwright-cdi-refresh.service"
    assert f"cdi generate --output={path}\n" in unit.read_text()
    assert "Before=docker.service\n" in unit.read_text()
    assert toolkit.calls == [("daemon-reload",), ("enable", "boxwright-cdi-refresh.service")]
    assert run_module("cdi_spec", path=str(path))["changed"] is False
    toolkit.enabled = False
    assert run_module("cdi_spec", check=True, path=str(path))["changed"] is True, "it would not be started"
    assert run_module("cdi_spec", path=str(path))["changed"] is True
    assert toolkit.calls[2:] == [("daemon-reload",), ("enable", "boxwright-cdi-refresh.service")]
    toolkit.enabled, toolkit.vendor = True, "loaded"
    assert run_module("cdi_spec", path=str(path))["changed"] is True, "a newer toolkit brings its own"
    assert not unit.exists()
    order = toolkit.units / "nvidia-cdi-refresh.service.d" / "boxwright.conf"
    assert "Before=docker.service\n" in order.read_text()
    run_module("cdi_spec", path=str(path), state="absent")
    assert list(toolkit.units.iterdir()) == []


def test_another_description_of_the_cards_is_named_and_nothing_changed(toolkit, run_module, tmp_path):
    path, other = tmp_path / "cdi" / "nvidia.yaml", tmp_path / "cdi" / "old.json"
    other.parent.mkdir()
    other.write_text('{\n  "cdiVersion": "0.5.0",\n  "kind": "nvidia.com/gpu",\n  "devices": []\n}\n')
    (other.parent / "amd.yaml").write_text("kind: amd.com/gpu\n")
    found = run_module("cdi_spec", path=str(path))
    assert f"{other} describes the cards too" in found["msg"]
    assert not path.exists()
    assert not toolkit.units.exists()
    assert "describes the cards too" in run_module("cdi_spec", check=True, path=str(path))["msg"]
    other.unlink()
    assert run_module("cdi_spec", path=str(path))["changed"] is True


def test_what_the_service_wrote_for_another_driver_is_written_anew(toolkit, run_module, tmp_path):
    path, refreshed = tmp_path / "cdi" / "nvidia.yaml", tmp_path / "run-cdi" / "nvidia.yaml"
    refreshed.parent.mkdir()
    refreshed.write_text(SPEC + "# /lib/libcuda.so.570.1.2\n")
    toolkit.generated = Result(0, SPEC + "# /lib/libcuda.so.580.1.2\n", "")
    found = run_module("cdi_spec", path=str(path))
    assert "does not bring it up to date" in found["msg"]
    toolkit.on_restart = lambda: refreshed.write_text(toolkit.generated.stdout)
    assert run_module("cdi_spec", path=str(path))["changed"] is True
    assert toolkit.calls[-1] == ("restart", "nvidia-cdi-refresh.service")
    assert run_module("cdi_spec", path=str(path))["changed"] is False
