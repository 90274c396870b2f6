"""Which lines of a shell set the cards, and which of them can be taken over as they are."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boxwright.facts.parsers import smi_commands

PLAIN = {
    "nvidia-smi -pm 1": ("persistence", "1", None),
    "/usr/bin/nvidia-smi -pl 300": ("power limit", "300", None),
    "sudo -n nvidia-smi --lock-gpu-clocks=0,2100": ("clocks", "0,2100", None),
    "nvidia-smi -i 1 -lgc 0,2100 || true": ("clocks", "0,2100", "1"),
    "nvidia-smi --id=GPU-ab -lmc 9000 &": ("memory clocks", "9000", "GPU-ab"),
    "nvidia-smi -pl 300 > /dev/null 2>&1": ("power limit", "300", None),
    "nvidia-smi -ac 5001,1500": ("application clocks", "5001,1500", None),
    "nvidia-smi -rgc": ("clocks", "", None),
    "nvidia-smi -pm 1 # as ever": ("persistence", "1", None),
}


@pytest.mark.parametrize("line", PLAIN)
def test_one_whole_call(line):
    assert smi_commands.read(line) == (*PLAIN[line], True)


@pytest.mark.parametrize(
    "line",
    [
        "nvidia-smi -pm 1 && nvidia-smi -pl 300",
        "for c in 0 1; do nvidia-smi -i $c -pl 300; done",
        "nvidia-smi -i $CARD -pl 300",
        "nvidia-smi -pl `cat /etc/limit`",
        "nvidia-smi -pl 300 > /root/log",
        "nvidia-smi -i 0,1 -pl 300",
        "sleep 5; nvidia-smi -pl 300",
        'sh -c "nvidia-smi -pl 300"',
        "nvidia-smi -pl 300 'torn",
        "nvidia-smi -pl 300 --error-on-warning",
        "nvidia-smi -pm 1 -pl 300",
        "nvidia-smi -pl",
    ],
)
def test_more_than_one_call_is_told_and_no_more(line):
    found = smi_commands.read(line)
    assert found == (smi_commands.OTHER, "", None, False)


@pytest.mark.parametrize(
    "line",
    ["", "# nvidia-smi -pl 300", "nvidia-smi", "nvidia-smi -q", "nvidia-smi -L | head", "my-nvidia-smi-pl 3"],
)
def test_nothing_is_set(line):
    assert smi_commands.read(line) is None


@given(st.text(alphabet="nvidia-smi plgc01,;&|$'\"\\ \t#>", max_size=60))
def test_no_line_makes_it_raise(line):
    smi_commands.read("nvidia-smi -pl " + line)
