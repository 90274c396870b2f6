"""Files of an inventory that are none: each is told with its name, at once, and nothing is waited for."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from boxwright.spec import merging
from boxwright.spec.inventory import Inventory, load
from boxwright.spec.validate import check

Read = Callable[[Mapping[str, str]], Inventory]
HOSTS = "all: {hosts: {box1: {}}}\n"


@pytest.fixture
def vars_file(tmp_path: Path) -> Path:
    """host_vars/box1.yml of an inventory, not made yet."""
    (tmp_path / "hosts.yml").write_text(HOSTS)
    (tmp_path / "host_vars").mkdir()
    return tmp_path / "host_vars" / "box1.yml"


def told(directory: Path) -> list[str]:
    return [f"{problem.where}: {problem.message}" for problem in check(load([directory]))]


def pipe(file: Path) -> None:
    os.mkfifo(file)


def loop(file: Path) -> None:
    file.symlink_to(file.name)


def device(file: Path) -> None:
    file.symlink_to("/dev/zero")


def dangling(file: Path) -> None:
    file.symlink_to("nowhere.yml")


def huge(file: Path) -> None:
    with file.open("wb") as stream:
        stream.truncate(merging.MOST_BYTES + 1)


def binary(file: Path) -> None:
    file.write_bytes(bytes(range(256)))


def zeros(file: Path) -> None:
    file.write_bytes(b"\0" * 10)


def deep(file: Path) -> None:
    file.write_text("a: " + "[" * 20_000)


def billion_laughs(file: Path) -> None:
    lines = ["a0: &a0 [x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    file.write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (pipe, "cannot be read: it is no regular file"),
        (loop, "cannot be read: Too many levels of symbolic links"),
        (device, "cannot be read: it is no regular file"),
        (dangling, "cannot be read: No such file or directory"),
        (huge, "cannot be read: it has 4 MB, and no declaration has over 4 MB"),
        (binary, "is not UTF-8 text (byte 0x80)"),
        (zeros, "not valid YAML: character U+0000 is not allowed"),
        (deep, "not usable YAML: nested too deeply"),
        (billion_laughs, "not usable YAML: aliases refer to themselves, or stand for too much"),
    ],
)
def test_a_vars_file_that_is_none(vars_file: Path, make: Callable[[Path], None], words: str) -> None:
    make(vars_file)
    [said] = told(vars_file.parents[1])
    assert said.startswith(str(vars_file))
    assert words in said


@pytest.mark.parametrize("make", [pipe, device, loop, huge])
def test_a_hosts_file_that_is_none(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "hosts.yml")
    assert any("hosts.yml: cannot be read" in said for said in told(tmp_path))


def test_a_directory_that_leads_back_to_itself(tmp_path: Path) -> None:
    (tmp_path / "hosts.yml").write_text(HOSTS)
    (tmp_path / "more").symlink_to(".")
    (tmp_path / "host_vars").symlink_to(".")
    assert told(tmp_path) == [f"{tmp_path}/host_vars: is a link to where it lies itself"]


def test_a_directory_of_vars_files_that_leads_back(vars_file: Path) -> None:
    vars_file.with_suffix("").mkdir()
    (vars_file.with_suffix("") / "a.yml").write_text("box_proxy: nonsense\n")
    (vars_file.with_suffix("") / "again").symlink_to("..")
    assert len(told(vars_file.parents[1])) == 1
