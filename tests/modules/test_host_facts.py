"""The module host_facts on this very machine, and its reading of disks and fake roots."""

from __future__ import annotations

import importlib
import json
import os
import re
import stat
import struct
import time
from pathlib import Path

import pytest
from ansible.module_utils import driver_load, host_reading, store_manifest
from ansible.module_utils.apt_texts import pins_text, source_text
from ansible.module_utils.docker_proxy import variables_text
from ansible.module_utils.partial_file import PartialFile

from boxwright.facts import parse

COMMIT = "a" * 40


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """Programs of ours come first on PATH: programs(name, script)."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")

    def write(name, script):
        path = folder / name
        path.write_text("#!/bin/sh\n" + script)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    return write


def model(directory: Path, record=True):
    directory.mkdir(parents=True)
    header = json.dumps({"a.0.w": {"dtype": "BF16", "data_offsets": [0, 4]}}).encode()
    (directory / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + b"\0" * 4)
    (directory / "config.json").write_text('{"model_type": "llama"}')
    if record:
        (directory / ".boxwright-manifest.json").write_text(
            json.dumps({"files": [{"path": "model.safetensors", "sha256": "b" * 64}]})
        )


def test_it_reads_this_machine_and_changes_nothing(run_module, tmp_path):
    result = run_module("host_facts", check=True, root_dir=str(tmp_path / "not" / "yet"))
    assert result["changed"] is False
    found = parse(result["raw"], "here")
    assert found.os.id
    assert found.memory.total > 1 << 28
    assert found.filesystem(str(tmp_path / "not" / "yet")) is not None
    assert not (tmp_path / "not").exists()


def test_files_of_a_driver_that_no_package_brought(programs, tmp_path):
    """The .run installer's: https://github.com/NVIDIA/nvidia-installer, and libraries over a package's."""
    for name in ("bin/nvidia-uninstall", "lib64/libcuda.so.570.124.06", "lib64/libcuda.so.580.105.08"):
        (tmp_path / "usr" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "usr" / name).touch()
    (tmp_path / "usr/lib64/libcuda.so.1").symlink_to("libcuda.so.580.105.08")
    found = host_reading.driver_files(str(tmp_path))
    assert found == [
        "/usr/bin/nvidia-uninstall",
        "/usr/lib64/libcuda.so.570.124.06",
        "/usr/lib64/libcuda.so.580.105.08",
    ]
    programs("dpkg-query", "echo 'libcuda1:amd64: /usr/lib64/libcuda.so.580.105.08'; exit 1")
    assert host_reading.unowned(found) == found[:2]
    programs("dpkg-query", "echo 'libcuda1: /lib/x86_64-linux-gnu/libcuda.so.580.1'; exit 1")
    assert host_reading.unowned(["/usr/lib/x86_64-linux-gnu/libcuda.so.580.1"]) == []


def test_a_package_manager_that_does_not_answer_accuses_nobody(programs):
    programs("dpkg-query", "exit 127")
    assert host_reading.unowned(["/usr/bin/nvidia-uninstall"]) == []


def test_another_kernel_that_waits_is_a_fact():
    raw = {"uname": {"release": "6.1", "machine": "x86_64"}, "next_kernel": "6.2", "next_headers": False}
    driver = parse(raw, "box1").driver
    assert (driver.next_kernel, driver.next_headers) == ("6.2", False)
    driver = parse({**raw, "next_kernel": "6.1", "unowned": ["/usr/bin/nvidia-uninstall", 1]}, "box1").driver
    assert (driver.next_kernel, driver.next_headers) == (None, None)
    assert driver.unowned == ("/usr/bin/nvidia-uninstall",)


def test_the_store_needs_no_hub(run_module, tmp_path):
    model(tmp_path / "models" / "org--name" / COMMIT)
    model(tmp_path / "models" / "org--name" / "staging-x")
    result = run_module(
        "host_facts",
        root_dir=str(tmp_path),
        models=[{"repo": "org/name", "revision": COMMIT}],
        endpoint="http://127.0.0.1:1",
    )
    (stored,) = parse(result["raw"]).models
    assert (stored.origin, stored.revision, stored.complete) == ("store", COMMIT, True)
    assert stored.tensors
    assert stored.tensors[0].bytes == 4


def test_an_unfinished_revision_is_asked_for_again(run_module, tmp_path):
    model(tmp_path / "models" / "org--name" / COMMIT, record=False)
    result = run_module(
        "host_facts",
        root_dir=str(tmp_path),
        models=[{"repo": "org/name", "revision": COMMIT}],
        endpoint="http://127.0.0.1:1",
    )
    stored, asked = parse(result["raw"]).models
    assert not stored.complete
    assert asked.error == "unreachable"


def test_what_has_come_of_an_interrupted_fetch_is_a_fact(run_module, tmp_path):
    tree = tmp_path / "models" / ".staging" / f"org--name--{COMMIT}" / "tree"
    (tmp_path / "models" / ".staging" / "org--name-other--x" / "tree").mkdir(parents=True)
    partial = PartialFile(str(tree / "model-1.safetensors"), 200_000, "")
    partial.write(0, memoryview(b"a" * 1000))
    partial.close()
    (tree / "config.json").write_text("{}")
    result = run_module(
        "host_facts",
        root_dir=str(tmp_path),
        models=[{"repo": "org/name", "revision": COMMIT}],
        endpoint="http://127.0.0.1:1",
    )
    staged, asked = parse(result["raw"]).models
    assert (staged.origin, staged.revision, staged.complete) == ("staged", COMMIT, False)
    assert [(file.path, file.size) for file in staged.files] == [
        ("config.json", 2),
        ("model-1.safetensors", 1000),
    ]
    assert asked.error == "unreachable"


@pytest.mark.parametrize("flaw", ["none", "gone", "longer", "touched"])
def test_a_revision_is_whole_while_its_files_are_as_recorded(run_module, tmp_path, flaw):
    directory = tmp_path / "models" / "org--name" / COMMIT
    model(directory)
    file = directory / "model.safetensors"
    store_manifest.save(
        str(directory),
        store_manifest.Manifest(
            "hub",
            "org/name",
            COMMIT,
            [store_manifest.entry_of(str(directory), file.name, "b" * 64, "sha256")],
        ),
    )
    if flaw == "gone":
        file.unlink()
    elif flaw == "longer":
        file.write_bytes(file.read_bytes() + b"\0")
    elif flaw == "touched":
        os.utime(file, ns=(1, 1))
    raw = run_module(
        "host_facts", root_dir=str(tmp_path), models=[{"repo": "org/name", "revision": COMMIT}],
        endpoint="http://127.0.0.1:1",
    )["raw"]  # fmt: skip
    assert parse(raw).models[0].complete is (flaw == "none")


def test_a_model_by_its_directory(run_module, tmp_path):
    model(tmp_path / "here")
    result = run_module(
        "host_facts", models=[{"path": str(tmp_path / "here")}, {"path": str(tmp_path / "gone")}]
    )
    here, gone = parse(result["raw"]).models
    assert (here.origin, here.weight_bytes > 0, here.error) == ("path", True, None)
    assert (gone.error, gone.directory) == ("not-found", str(tmp_path / "gone"))


def test_a_driver_that_hangs_does_not_hang_the_run(run_module, programs, monkeypatch, tmp_path):
    from boxwright.ansible.modules import host_facts

    monkeypatch.setattr(host_facts, "COMMAND_TIMEOUT", 1)
    programs("nvidia-smi", "sleep 600\n")
    started = time.monotonic()
    result = run_module("host_facts", root_dir=str(tmp_path))
    assert time.monotonic() - started < 300
    assert result["raw"]["commands"]["cards"]["rc"] == 124


def test_a_field_that_the_driver_does_not_know_is_left_out(run_module, programs, tmp_path):
    programs(
        "nvidia-smi",
        'case "$*" in *compute_cap*) echo \'Field "compute_cap" is not a valid field to query.\'; exit 2;;\n'
        "*mig.mode.current*) echo 'Field \"mig.mode.current\" is not a valid field to query.'; exit 2;;\n"
        "*query-gpu*) echo '0, GPU-1, NVIDIA GeForce RTX 3090, 470.1, 00000000:01:00.0, 24576 MiB, 1 MiB, 2 "
        "MiB, "
        "Enabled, 350 W, 350 W, 100 W, 385 W, 210 MHz, 2100 MHz, 405 MHz, 9751 MHz, 1, 4, 8, 16';; esac\n",
    )
    result = run_module("host_facts", root_dir=str(tmp_path))
    (card,) = parse(result["raw"]).cards
    assert (card.name, card.compute_capability, card.mig) == ("NVIDIA GeForce RTX 3090", None, None)
    assert card.link.max_width == 16


def test_the_token_is_in_no_result(run_module, tmp_path):
    result = run_module(
        "host_facts",
        root_dir=str(tmp_path),
        models=[{"repo": "org/name"}],
        token="hf_secret",
        endpoint="http://127.0.0.1:1",
    )
    assert "hf_secret" not in json.dumps(result["raw"])


def test_releases_and_which_is_live(tmp_path):
    for name in ("one", "two"):
        (tmp_path / "q" / name).mkdir(parents=True)
        (tmp_path / "q" / name / "release.json").write_text("{}")
    (tmp_path / "q" / "current").symlink_to("two")
    found = host_reading.releases(str(tmp_path))
    assert [(one["id"], one["current"]) for one in found] == [("one", False), ("two", True)]


@pytest.mark.parametrize("content", [b"", b"short", struct.pack("<Q", 5) + b"[1]  "])
def test_a_broken_model_is_told(tmp_path, content):
    (tmp_path / "model.safetensors").write_bytes(content)
    assert host_reading.model_directory(str(tmp_path))["error"] == "invalid"


def test_what_earlier_runs_left_is_read(run_module, tmp_path, monkeypatch):
    """Our own files, as the modules that write them do, come out as the facts that the plan compares."""
    root = tmp_path / "root"
    config = root / "etc" / "boxwright"
    receipt = {"entries": [{"path": ["log-opts", "max-size"], "value": "1m", "item": False}], "made": []}
    files = {
        "etc/apt/sources.list.d/boxwright-cuda.sources": source_text(
            {"key_url": "http://k", "uris": ["http://depot/cuda/debian12/x86_64/"], "suites": ["/"],
             "components": [], "architectures": ["amd64"]}, "/etc/apt/keyrings/boxwright-cuda.gpg"),
        "etc/apt/preferences.d/boxwright-held-nvidia-driver.pref": pins_text(
            [{"packages": ["nvidia-*"], "pin": "version 580.*", "priority": 1001}]),
        "var/lib/boxwright/holds/nvidia-driver.json": json.dumps(
            {"declared": ["a"], "installed": [], "holds": ["a", "b"]}),
        "etc/modprobe.d/boxwright-nvidia.conf": "blacklist nouveau\n",
        "run/boxwright/gpu-tuning.json": json.dumps(
            {"driver_load": "boot:7",
             "cards": {"GPU-1": {"clocks_mhz": [0, 2100], "power_limit_w": 400}},
             "unsupported": {"GPU-2": ["clocks"]}}),
        "etc/boxwright/docker-proxy.env": variables_text("http://me:sec@ret@proxy:3128", ["localhost"]),
        "etc/boxwright/container-runtime.json": json.dumps(receipt),
        "etc/cdi/nvidia.yaml": "- containerPath: /usr/lib/x86_64-linux-gnu/libcuda.so.580.105.08\n",
        "etc/docker/daemon.json": '{"proxies": {"http-proxy": "http://me:secret@proxy:3128"}}',
    }  # fmt: skip
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    module = importlib.import_module("boxwright.ansible.modules.host_facts")
    monkeypatch.setattr(host_reading, "KEPT", tuple(f"{root}{path}" for path in host_reading.KEPT))
    monkeypatch.setattr(module, "CDI_SPEC", str(root / "etc/cdi/nvidia.yaml"))
    monkeypatch.setitem(module.FILES, "daemon-json", str(root / "etc/docker/daemon.json"))
    monkeypatch.setattr(driver_load, "identity", lambda: "boot:7")
    raw = run_module("host_facts", root_dir=str(tmp_path / "var"), config_dir=str(config))["raw"]
    assert not re.search("secret|sec@|ret@", json.dumps(raw))
    raw["kept"] = {path.removeprefix(str(root)): text for path, text in raw["kept"].items()}
    kept = parse(raw, "here").kept
    assert kept.sources == {"cuda": ("http://depot/cuda/debian12/x86_64/",)}
    assert kept.pins == {"nvidia-driver": "580.*"}
    assert kept.groups["nvidia-driver"].holds == ("a", "b")
    assert kept.limits["GPU-1"].clocks_mhz == (0, 2100)
    assert kept.limits["GPU-2"].spared == ("clocks",)
    # After a reload of the driver the cards know nothing of it.
    assert parse({**raw, "driver_load": "boot:8"}, "here").kept.limits == {}
    assert kept.daemon_keys == ("log-opts.max-size",)
    assert kept.docker_proxy == "http://***@proxy:3128"
    assert kept.cdi_driver == "580.105.08"
    assert kept.files == ("/etc/modprobe.d/boxwright-nvidia.conf",)


def header(text):
    return struct.pack("<Q", len(text)) + text


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"config.json": b"{"}, "config.json is not JSON"),
        ({"config.json": b"version https://git-lfs.github.com/spec/v1"}, "is a Git LFS pointer"),
        ({"model.safetensors": b"version https://git-lfs.github.com/spec/v1"}, "run git lfs pull"),
        ({"model.safetensors": b""}, "model.safetensors is no safetensors file (it is empty)"),
        ({"model.safetensors": struct.pack("<Q", 5000) + b"{}"}, "it is cut off"),
        ({"model.safetensors": header(b'{"a": {"data_offsets": [0, 8]}}') + b"123"}, "lacks 5 of the bytes"),
        (
            {"model.safetensors.index.json": b'{"weight_map": {"a": "gone.safetensors"}}'},
            "names gone.safetensors",
        ),
        ({"model.safetensors.index.json": b"{}"}, "is no index of weights"),
        ({"hf_quant_config.json": b"[]", "config.json": b"{}"}, "hf_quant_config.json is not a JSON object"),
    ],
)
def test_a_directory_that_is_no_whole_model_is_told(tmp_path, files, words):
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    found = host_reading.model_directory(str(tmp_path))
    assert found["error"] == "invalid"
    assert words in found["detail"]


def test_links_are_followed_and_links_to_nothing_told(tmp_path):
    model(tmp_path / "blobs")
    (tmp_path / "linked").mkdir()
    for name in ("config.json", "model.safetensors"):
        (tmp_path / "linked" / name).symlink_to(tmp_path / "blobs" / name)
    found = host_reading.model_directory(str(tmp_path / "linked"))
    assert "error" not in found
    assert found["tensors"][0]["bytes"] == 4
    (tmp_path / "linked" / "tokenizer.json").symlink_to(tmp_path / "blobs" / "gone.json")
    found = host_reading.model_directory(str(tmp_path / "linked"))
    assert "tokenizer.json cannot be read: a link to nothing" in found["detail"]
    (tmp_path / "again").symlink_to(tmp_path / "blobs")
    assert "error" not in host_reading.model_directory(str(tmp_path / "again"))


def test_a_directory_that_may_not_be_read_is_told(tmp_path, monkeypatch):
    def denied(path):
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(host_reading.os, "listdir", denied)
    found = host_reading.model_directory(str(tmp_path))
    assert found["detail"] == f"{tmp_path} cannot be read: Permission denied"


def test_pipes_and_devices_are_no_files_of_a_model(tmp_path):
    os.mkfifo(tmp_path / "model.safetensors")
    found = host_reading.model_directory(str(tmp_path))
    assert (found["files"], found["tensors"]) == ([], None)


@pytest.mark.parametrize(("all_of_them", "asked"), [(False, ["r/gone:1"]), (True, ["r/here:1", "r/gone:1"])])
def test_registries_are_asked_of_what_is_here_only_where_that_is_wanted(monkeypatch, all_of_them, asked):
    module = importlib.import_module("boxwright.ansible.modules.host_facts")
    seen = []

    class Registry:
        def image(self, reference):
            seen.append(reference)
            return {"reference": reference, "digest": "sha256:" + "b" * 64}

    monkeypatch.setattr(module.registry_access, "ask_as_docker", lambda *_: Registry())
    parameters = {
        "ca": "",
        "proxy": "",
        "hub": "huggingface",
        "endpoint": "",
        "token": "",
        "models": [],
        "images": ["r/here:1", "r/gone:1"],
        "ask_registries": all_of_them,
    }
    told = module.lookups(parameters, [], [{"reference": "r/here:1", "present": True}])
    assert [one["reference"] for one in told["registry"]] == asked
    assert sorted(seen) == sorted(asked)
