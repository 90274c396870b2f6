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


@pytest.mark.parametrize(
    ("named", "is_it"),
    [
        (None, True),
        ("1", True),
        ("01", True),
        ("0", False),
        ("GPU-ab", True),
        ("gpu-AB", True),
        ("GPU-a", False),
        ("0000:0a:00.0", True),
        ("00000000:0A:00.0", True),
        ("0:a:0.0", True),
        ("0a:00.0", True),
        ("0000:0b:00.0", False),
        ("0000:0a:00.1", False),
        ("0001:0a:00.0", False),
        (":", False),
        ("", False),
        ("x:y", False),
        ("\u0661", False),
    ],
)
@pytest.mark.parametrize("bus", ["0000:0a:00.0", "00000000:0A:00.0"])
def test_a_card_is_meant_by_index_uuid_or_address(named, is_it, bus):
    assert smi_commands.is_card(named, 1, "GPU-ab", bus) is is_it


def test_a_card_without_uuid_or_address_is_meant_by_its_index():
    assert smi_commands.is_card("1", 1, None, "") is True
    assert not any(smi_commands.is_card(named, 1, None, "") for named in (":", "", "GPU-ab", "0000:0a:00.0"))
