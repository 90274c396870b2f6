"""Names as people count them, and numbers as they write them."""

import pytest

from boxwright.texts import from_home, numbered, thousands


@pytest.mark.parametrize(
    ("names", "told"),
    [
        ([], []),
        (["lab10", "lab2", "lab1", "box1"], ["box1", "lab1", "lab2", "lab10"]),
        ([f"lab{number}" for number in range(1, 21)], ["lab1 to lab20"]),
        (["lab1", "lab2", "lab3", "lab4", "lab6"], ["lab1 to lab4", "lab6"]),
        (["rtx3090x2", "rtx5090", "rtx5090x2"], ["rtx3090x2", "rtx5090", "rtx5090x2"]),
        (["lab", "lab0", "lab1", "lab2"], ["lab", "lab0", "lab1", "lab2"]),
        (["a", "b01", "b02"], ["a", "b01", "b02"]),
    ],
)
def test_numbered(names, told):
    assert numbered(names) == told


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("128k", 131072),
        ("128K", 131072),
        (" 32 k ", 32768),
        ("128k tokens", 131072),
        ("1M", 1048576),
        ("131,072", 131072),
        ("1_000_000", 1000000),
        ("131072", None),
        ("1,5", None),
        ("12k8", None),
        ("k", None),
        ("auto", None),
    ],
)
def test_thousands(text, number):
    assert thousands(text) == number


@pytest.mark.parametrize(
    ("home", "path", "told"),
    [
        ("/home/me", "/home/me/.local/x.log", "~/.local/x.log"),
        ("/home/me", "/home/meg/x.log", "/home/meg/x.log"),
        ("/home/me", "/var/x.log", "/var/x.log"),
        ("/", "/var/x.log", "/var/x.log"),
    ],
)
def test_a_path_from_home(home, path, told, monkeypatch):
    monkeypatch.setenv("HOME", home)
    assert from_home(path) == told
