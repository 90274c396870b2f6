"""Receipts of roles: what differs is found, nothing else is, and no value leaves the host."""

import hashlib
import json
import stat
from pathlib import Path
from types import SimpleNamespace

import pytest
from ansible.module_utils import role_receipts
from ansible.module_utils.command import Result

DECLARED = {"gpu_tuning": {"code": "c0", "gpu_tuning_max_clock_mhz": "a1", "box_proxy": "b2"}}


@pytest.fixture
def host(tmp_path, monkeypatch):
    """A host with two files of ours, one of somebody else's, three packages and two units."""
    place = tmp_path / "host"
    for name, text in {"ours/a.conf": "a", "ours/b.conf": "b", "theirs/c.conf": "c"}.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(text)
    (place / "kernels").mkdir()
    (place / "kernels" / "6.12.1").touch()
    packages = {"nvidia-open": "580.1-1\thi ", "nvidia-container-x": "1.19\tii ", "vim": "9\tii "}
    units = {"a.service": "active enabled loaded no", "b.service": "active enabled loaded no"}

    def run(argv, timeout):
        assert timeout
        if argv[0] == "dpkg-query":
            return Result(0, "".join(f"{name}\t{rest}\n" for name, rest in packages.items()), "")
        keys = ("ActiveState", "UnitFileState", "LoadState", "NeedDaemonReload")
        blocks = []
        for name in argv[argv.index("--") + 1 :]:
            told = zip(keys, units[name].split(), strict=True)
            blocks.append("\n".join([f"Id={name}", *(f"{key}={value}" for key, value in told)]))
        return Result(0, "\n\n".join(blocks) + "\n", "")

    monkeypatch.setattr(role_receipts, "run", run)
    return SimpleNamespace(place=place, packages=packages, units=units)


@pytest.fixture
def watch(host):
    return {
        "files": [f"{host.place}/ours/*"],
        "beside": [f"{host.place}/theirs/**"],
        "listings": [f"{host.place}/kernels/*"],
        "packages": ["nvidia-*", "!nvidia-container-*"],
        "units": ["a.service", "b.service"],
    }


@pytest.fixture
def compared(tmp_path, watch, run_module):
    """Records the host as it is, then says what a later run finds: call it after the drift."""
    config = str(tmp_path / "etc")
    result = run_module("role_receipt", roles={"gpu_tuning": watch}, config_dir=config, declared=DECLARED)
    assert result["changed"] is False
    assert result["watched"] == 7

    def compare(declared=DECLARED):
        return role_receipts.compared(config, declared)["gpu_tuning"]

    compare.config = config
    return compare


def drift(kind, subject, was, now):
    return [{"kind": kind, "subject": subject, "was": was, "now": now}]


def test_a_host_as_it_was_left_differs_in_nothing(compared):
    assert compared() == {"differs": [], "drift": []}


def test_a_receipt_is_for_root_alone_and_tells_no_value(compared):
    path = Path(role_receipts.path_of(compared.config, "gpu_tuning"))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    text = path.read_text()
    assert "a1" not in json.loads(text)["declared"].values()
    assert hashlib.sha256(b"a1").hexdigest() not in text


@pytest.mark.parametrize(
    ("declared", "differs"),
    [
        ({"gpu_tuning_max_clock_mhz": "zz"}, ["gpu_tuning_max_clock_mhz"]),
        ({"code": "c1"}, ["code"]),
        ({"gpu_tuning_power_limit_w": "d3"}, ["gpu_tuning_power_limit_w"]),
    ],
)
def test_what_is_declared_otherwise_is_named(compared, declared, differs):
    assert compared({"gpu_tuning": {**DECLARED["gpu_tuning"], **declared}})["differs"] == differs


def test_what_is_declared_no_more_is_named(compared):
    left = {name: value for name, value in DECLARED["gpu_tuning"].items() if name != "box_proxy"}
    assert compared({"gpu_tuning": left})["differs"] == ["box_proxy"]


def test_an_edited_file(compared, host):
    (host.place / "ours/a.conf").write_text("A")
    assert compared()["drift"] == drift("file", f"{host.place}/ours/a.conf", "as it was left", "edited")


def test_a_file_whose_mode_was_changed(compared, host):
    (host.place / "ours/a.conf").chmod(0o666)
    assert compared()["drift"] == drift("file", f"{host.place}/ours/a.conf", "as it was left", "edited")


def test_a_file_that_is_gone_and_one_that_is_new(compared, host):
    (host.place / "ours/a.conf").rename(host.place / "ours/z.conf")
    assert [(one["subject"].rpartition("/")[2], one["now"]) for one in compared()["drift"]] == [
        ("a.conf", "gone"),
        ("z.conf", "new"),
    ]


def test_a_file_that_became_a_link_to_the_same_text(compared, host):
    (host.place / "ours/a.conf").rename(host.place / "elsewhere")
    (host.place / "ours/a.conf").symlink_to(host.place / "elsewhere")
    assert compared()["drift"] == drift("file", f"{host.place}/ours/a.conf", "as it was left", "edited")


def test_somebody_elses_file(compared, host):
    (host.place / "theirs/c.conf").write_text("C")
    assert compared()["drift"] == drift("beside", f"{host.place}/theirs/c.conf", "as it was left", "edited")


def test_a_new_kernel(compared, host):
    (host.place / "kernels" / "6.12.9").touch()
    assert compared()["drift"] == drift("list", f"{host.place}/kernels/*", "6.12.1", "6.12.1 6.12.9")


@pytest.mark.parametrize(
    ("state", "now"),
    [
        ("580.2-1\thi ", "580.2-1 held"),
        ("580.1-1\tii ", "580.1-1"),
        ("580.1-1\thF ", "580.1-1 held broken"),
        ("580.1-1\trc ", "gone"),
    ],
)
def test_packages(compared, host, state, now):
    host.packages["nvidia-open"] = state
    assert compared()["drift"] == drift("package", "nvidia-open", "580.1-1 held", now)


def test_packages_that_are_not_meant(compared, host):
    host.packages |= {"vim": "10\tii ", "nvidia-container-x": "1.20\tii "}
    assert compared()["drift"] == []


@pytest.mark.parametrize(
    ("state", "now"),
    [
        ("failed enabled loaded no", "failed, enabled"),
        ("active disabled loaded no", "active, disabled"),
        ("inactive masked masked no", "inactive, masked, masked"),
        ("active enabled loaded yes", "active, enabled, edited since it was read"),
    ],
)
def test_units(compared, host, state, now):
    host.units["b.service"] = state
    assert compared()["drift"] == drift("unit", "b.service", "active, enabled", now)


def test_a_receipt_that_is_forgotten_or_of_another_form_is_none(compared, run_module):
    path = Path(role_receipts.path_of(compared.config, "gpu_tuning"))
    receipt = json.loads(path.read_text())
    for text in ("", "[]", json.dumps({**receipt, "format": 0}), json.dumps({**receipt, "seen": 3})):
        path.write_text(text)
        assert role_receipts.compared(compared.config, DECLARED) == {}
    arguments = {"roles": {"gpu_tuning": {}}, "config_dir": compared.config, "state": "absent"}
    assert run_module("role_receipt", **arguments)["changed"] is False
    assert not path.exists()
    assert run_module("role_receipt", **arguments)["changed"] is False


def test_check_mode_writes_nothing(tmp_path, run_module):
    config = tmp_path / "etc"
    run_module("role_receipt", check=True, roles={"engine": {}}, config_dir=str(config), declared={})
    assert not config.exists()


@pytest.mark.parametrize("role", ["../../etc/passwd", "", "a b", "-x"])
def test_only_names_of_roles(tmp_path, run_module, role):
    result = run_module("role_receipt", roles={role: {}}, config_dir=str(tmp_path), declared={})
    assert result["failed"]
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_cannot_be_written_is_told(tmp_path, run_module):
    (tmp_path / "receipts").write_text("a file")
    result = run_module("role_receipt", roles={"engine": {}}, config_dir=str(tmp_path), declared={})
    assert result["failed"]
    assert str(tmp_path / "receipts") in result["msg"]


def test_what_could_not_be_told_is_not_the_same_as_before(tmp_path, run_module, host, monkeypatch):
    def silent(argv, timeout):
        return Result(1, "", "timed out")

    monkeypatch.setattr(role_receipts, "run", silent)
    watch = {"units": ["a.service"]}
    run_module("role_receipt", roles={"engine": watch}, config_dir=str(tmp_path), declared={})
    found = role_receipts.compared(str(tmp_path), {"engine": {}})["engine"]["drift"]
    assert found == drift("unit", "a.service", "unknown", "unknown")


def test_a_library_of_several_architectures(monkeypatch):
    lines = "libcuda1\t580.1-1\thi \nlibcuda1\t570.9-1\tii \n"
    monkeypatch.setattr(role_receipts, "run", lambda *_, **__: Result(0, lines, ""))
    assert role_receipts.installed() == {"libcuda1": "580.1-1 held 570.9-1"}


def test_packages_by_rpm_with_those_that_versionlock_holds(monkeypatch, tmp_path):
    """Also where Debian's dpkg was installed on such a host, whose own database is empty."""
    (tmp_path / "etc/dnf/plugins").mkdir(parents=True)
    (tmp_path / "etc/dnf/plugins/versionlock.list").write_text("nvidia-driver-cuda-3:580.105.08-1.el9.*\n")
    text = (
        "nvidia-driver-cuda\t3:580.105.08-1.el9\ndkms\t0:3.2.1-1.el9\n"
        "kernel-devel\t0:5.14.0-570.1.el9\nkernel-devel\t0:5.14.0-503.1.el9\n"
    )
    lock = role_receipts.VersionLock
    monkeypatch.setattr(role_receipts.package_manager, "name", lambda: "dnf")
    monkeypatch.setattr(role_receipts, "VersionLock", lambda root: lock(str(tmp_path)))
    answers = {"rpm": Result(0, text, ""), "dpkg-query": Result(0, "", "")}
    monkeypatch.setattr(role_receipts, "run", lambda argv, timeout: answers[argv[0]])
    assert role_receipts.installed() == {
        "nvidia-driver-cuda": "3:580.105.08-1.el9 held",
        "dkms": "0:3.2.1-1.el9",
        "kernel-devel": "0:5.14.0-503.1.el9 0:5.14.0-570.1.el9",
    }


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"roles": {"gpu_tuning": ["/etc/*"]}}, "roles.gpu_tuning is a list, and must be a mapping"),
        (
            {"roles": {"gpu_tuning": {"files": "/etc/*"}}},
            "roles.gpu_tuning.files is a text, and must be a list",
        ),
        ({"roles": {"gpu_tuning": {"file": ["/etc/*"]}}}, "roles.gpu_tuning.file: it has beside, files, "),
        ({"declared": {"gpu_tuning": "a1"}}, "declared.gpu_tuning is a text, and must be a mapping"),
        ({"declared": {"gpu_tuning": {"code": 1}}, "state": "absent"}, "declared.gpu_tuning.code is a whole"),
    ],
)
def test_what_has_another_shape_is_refused_by_its_place(tmp_path, run_module, given, said):
    asked = {"roles": {"gpu_tuning": {}}, "config_dir": str(tmp_path / "etc"), **given}
    result = run_module("role_receipt", **asked)
    assert result["failed"]
    assert said in result["msg"]
    assert not (tmp_path / "etc").exists()
