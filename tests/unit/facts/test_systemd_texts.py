"""Unit files and files of variables as systemd reads them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boxwright.facts.parsers.systemd_texts import Setting, settings, variables


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("A=b\n", {"A": "b"}),
        ("A=b", {"A": "b"}),
        ("  A = b c  \n", {"A": "b c"}),
        ("# A=1\n; B=2\nC=3 # no comment\n", {"C": "3 # no comment"}),
        ("A='-H fd://' --debug\n", {"A": "-H fd://--debug"}),
        ('A="-g /data\\\n --debug"\nB=1\n', {"A": "-g /data --debug", "B": "1"}),
        ("A=-g /data \\\n --debug\nB=1\n", {"A": "-g /data  --debug", "B": "1"}),
        ("A='a\nB=2'\nC=3\n", {"A": "a\nB=2", "C": "3"}),
        ('A="x \\"y\\" \\$z \\n"\n', {"A": 'x "y" $z \\n'}),
        ("A=it's\n", {"A": "it's"}),
        ("A=\\x\n", {"A": "x"}),
        ("A=1\nA=2\n", {"A": "2"}),
        ("export A=1\n1A=2\nnothing\n=3\nB=\n", {"B": ""}),
        ('A="never closed\n', {"A": "never closed\n"}),
        ("A=1\r\n", {"A": "1"}),
        ("", {}),
        ("# at the end", {}),
    ],
)
def test_files_of_variables(text, read):
    assert variables(text) == read


@given(st.text(alphabet="AB=\\\"'# \n$x", max_size=40))
def test_any_file_of_variables_is_read_to_its_end(text):
    assert all(name.isidentifier() for name in variables(text))


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("[Service]\nExecStart=/x -a\n", [Setting(2, "Service", "ExecStart", "/x -a")]),
        ("[Service]\n# ExecStart=/x\n;ExecStart=/y\n", []),
        (
            "[Service]\nExecStart=/x \\\n# between\n  -b \\\n\nUser=y\n",
            [Setting(2, "Service", "ExecStart", "/x  -b"), Setting(6, "Service", "User", "y")],
        ),
        ("[Service]\nExecStart = /x \\\\\n", [Setting(2, "Service", "ExecStart", "/x \\\\")]),
        ("[Service]\nExecStart=\n", [Setting(2, "Service", "ExecStart", "")]),
        ("[Timer]\nOnBootSec=1", [Setting(2, "Timer", "OnBootSec", "1")]),
        ("A=1 \\", [Setting(1, "", "A", "1")]),
    ],
)
def test_settings_of_a_unit_file(text, read):
    assert list(settings(text)) == read
