"""Names of files as people give them: none of them is a fault of ours."""

import os
from pathlib import Path

import pytest

from boxwright.cli import bisecting, exporting, paging, reporting
from boxwright.cli.benching import picture_path
from boxwright.cli.paths import exists, is_file, named, output_directory, output_file
from boxwright.cli.targets import inventory_paths
from boxwright.errors import UserError

LONG = "a" * 300


@pytest.mark.parametrize("word", [LONG, f"/{LONG}/x", "~nobody-of-this-name/x", "loop/x"])
def test_a_name_that_nothing_can_have(word, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("loop").symlink_to("loop")
    assert not exists(named(word))
    assert not is_file(named(word))
    for call, options in (
        (output_file, {"option": "--output", "path": named(word)}),
        (paging.page, {"hosts": ["lab1"], "inventories": [], "output": word}),
        (reporting.report, {"hosts": ["lab1"], "inventories": [], "output": word}),
        (picture_path, {"picture": f"{word}.svg", "names": ["lab1"]}),
    ):
        with pytest.raises(UserError) as error:
            call(**options)
        assert error.value.status == 2
    with pytest.raises(UserError, match="there is no inventory at"):
        inventory_paths([word])
    with pytest.raises(UserError, match="there is no file"):
        bisecting.bisect(["lab1"], [], good=f"{word}/good.yml", wanted=None)


@pytest.mark.parametrize("word", [LONG, "file", "file/below", "loop/x"])
def test_a_directory_that_cannot_be_made(word, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("loop").symlink_to("loop")
    Path("file").touch()
    with pytest.raises(UserError) as error:
        exporting.export(["lab1"], [], format_="compose", output=word)
    assert error.value.status == 2
    output_directory("--output", tmp_path / "new" / "newer")


def test_what_is_no_plain_file_is_neither_read_nor_written(tmp_path):
    os.mkfifo(tmp_path / "pipe.html")
    with pytest.raises(UserError, match="is no plain file"):
        paging.page(["lab1"], [], output=str(tmp_path / "pipe.html"))
