"""nvidia-smi's texts as they were recorded (and as they were reported), in all their spellings."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boxwright.facts.parsers import nvidia_smi

FIELDS = ("index", "name", "driver_version", "memory.total", "power.limit")

#: RTX 4080 SUPER, 595.71.05, idle (utkuozdemir/nvidia_gpu_exporter).
RECORDED_FIELDS = (
    "index",
    "name",
    "driver_version",
    "memory.total",
    "memory.reserved",
    "memory.used",
    "memory.free",
    "pci.bus_id",
    "pcie.link.gen.current",
    "pcie.link.gen.max",
    "pcie.link.gen.hostmax",
    "pcie.link.width.current",
    "pcie.link.width.max",
)
RECORDED = (
    "0, NVIDIA GeForce RTX 4080 SUPER, 595.71.05, 16376 MiB, 434 MiB, 596 MiB, 15348 MiB, 00000000:01:00.0, "
    "1, 4, 5, 16, 16\n"
)
NO_DRIVER = (
    "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest "
    "NVIDIA driver is installed and running.\n\n"
)
MISMATCH = "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 570.195\n"
LOST = "Unable to determine the device handle for GPU3: 0000:04:00.0: Unknown Error\n"


def test_a_recorded_row_gives_its_values():
    found = nvidia_smi.query(RECORDED, "", RECORDED_FIELDS)
    (row,) = found.rows
    assert row["name"] == "NVIDIA GeForce RTX 4080 SUPER"
    assert nvidia_smi.whole(row["memory.total"]) == 16376
    assert nvidia_smi.bus_address(row["pci.bus_id"] or "") == "0000:01:00.0"
    assert not found.lost
    assert not found.notes


@pytest.mark.parametrize(
    "cell",
    [
        "[N/A]",
        "N/A",
        "[Not Supported]",
        "[Requested functionality has been deprecated]",
        "[Insufficient Permissions]",
        "[Unknown Error]",
        "[GPU is lost]",
        "[GPU requires reset]",
        "",
        "   ",
        "Unknown Error",
        "ERR!",
    ],
)
def test_every_spelling_of_nothing_is_none(cell):
    assert nvidia_smi.value(cell) is None
    assert nvidia_smi.number(cell) is None
    assert nvidia_smi.enabled(cell) is None
    (row,) = nvidia_smi.query(f"0, Card, 595.80, {cell}, 350.00 W", "", FIELDS).rows
    assert row["memory.total"] is None
    assert nvidia_smi.number(row["power.limit"]) == 350


@pytest.mark.parametrize(
    ("cell", "number"),
    [
        ("350.00 W", 350),
        ("32607 MiB", 32607),
        ("45", 45),
        ("45 %", 45),
        ("-5", -5),
        ("8.9", 8.9),
        (None, None),
        ("abc", None),
    ],
)
def test_numbers_come_with_and_without_units(cell, number):
    assert nvidia_smi.number(cell) == number


def test_a_name_with_commas_is_one_name():
    found = nvidia_smi.query("0, Quadro, the second, edition, 570.195.03, 24576, 350.00", "", FIELDS)
    assert found.rows[0]["name"] == "Quadro, the second, edition"
    assert found.rows[0]["power.limit"] == "350.00"


def test_headers_warnings_and_short_rows_are_notes():
    text = (
        "index, name, driver_version, memory.total [MiB], power.limit [W]\n"
        "Warning: persistence mode is disabled on device 00000000:01:00.0.\n"
        "0, Card, 595.80\n"
        "\x1b[4m1, Card, 595.80, 24576 MiB, 350.00 W\x1b[0m\r\n"
    )
    found = nvidia_smi.query(text, "", FIELDS)
    assert [row["index"] for row in found.rows] == ["1"]
    assert len(found.notes) == 3


@pytest.mark.parametrize(
    "text", ["", "\n\n", "index, name, driver_version, memory.total [MiB], power.limit [W]\n"]
)
def test_no_rows_is_no_error(text):
    assert nvidia_smi.query(text, "", FIELDS).rows == []


@pytest.mark.parametrize(
    "line",
    [
        LOST,
        "Unable to determine the device handle for GPU 0000:04:00.0: Unknown Error\n",
        "Unable to determine the device handle for GPU0000:04:00.0: Unknown Error\n",
        "Unable to determine the device handle for GPU3: 00000000:04:00.0: Not Found\n",
    ],
)
def test_a_lost_card_is_told_beside_those_that_answer(line):
    found = nvidia_smi.query("0, Card, 595.80, 24576 MiB, 350.00 W\n", line, FIELDS)
    assert len(found.rows) == 1
    assert found.lost == ["0000:04:00.0"]


@pytest.mark.parametrize(
    ("rc", "stdout", "stderr", "outcome"),
    [
        (0, RECORDED, "", "ok"),
        (9, NO_DRIVER, "", "no-driver"),
        (18, MISMATCH, "", "mismatch"),
        (255, MISMATCH, "", "mismatch"),
        (12, "NVIDIA-SMI couldn't find libnvidia-ml.so library in your system.", "", "library-missing"),
        (6, "No devices were found\n", "", "no-devices"),
        (9, "No devices were found\n", "", "no-devices"),
        (0, RECORDED, LOST, "lost"),
        (15, "", LOST, "lost"),
        (2, 'Field "xyz" is not a valid field to query.\n', "", "bad-field"),
        (4, "The current user does not have permission to change clocks for GPU 0.", "", "permission"),
        (0, "0, Card, 595.80, [Insufficient Permissions], 350.00 W", "", "ok"),
        (127, "", "nvidia-smi: not found", "not-installed"),
        (124, "", "nvidia-smi: no answer within 15 s", "hung"),
        (255, "", "something else", "failed"),
    ],
)
def test_the_outcome_of_a_call(rc, stdout, stderr, outcome):
    assert nvidia_smi.outcome(rc, stdout, stderr) == outcome


def test_versions_are_compared_by_parts():
    assert nvidia_smi.version("595.71.05") > nvidia_smi.version("595.8")
    assert nvidia_smi.version("580.142") == (580, 142)
    assert nvidia_smi.version("1:570.195.03-1") == (570, 195, 3)
    assert nvidia_smi.version("none") == ()
    assert nvidia_smi.same_version("570.195", "570.195.03")
    assert not nvidia_smi.same_version("570.124", "570.195.03")
    assert not nvidia_smi.same_version("", "570.195.03")
    assert nvidia_smi.library_version(MISMATCH) == "570.195"


def test_the_field_that_is_not_known_is_named():
    assert nvidia_smi.bad_field('Field "compute_cap" is not a valid field to query.', "") == "compute_cap"
    assert nvidia_smi.bad_field("", "") is None


@pytest.mark.parametrize(
    "text",
    [
        "NVIDIA-SMI version  : 595.71.05\nNVML version : 595.71\nDRIVER version : 595.71.05\nCUDA Version : "
        "13.2\n",
        "KMD version : 610.57.04\nCUDA UMD version : 13.2\n",
        "| Driver Version: 595.71.05  CUDA Version: 13.2 |",
    ],
)
def test_the_cuda_version_of_every_release(text):
    assert nvidia_smi.cuda_version(text) == "13.2"


class TestTopology:
    def test_a_header_with_underline(self):
        text = (
            "\x1b[4m\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\n"
            "GPU0\t X \tPHB\t0-63\t0\t\tN/A\nGPU1\tPHB\t X \t0-63\t0\t\tN/A\n\nLegend:\n\n  X    = Self\n"
        )
        assert nvidia_smi.topology(text) == {0: ("X", "PHB"), 1: ("PHB", "X")}

    def test_the_recorded_header_without_a_leading_tab(self):
        text = (
            "\x1b[4mGPU0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\nGPU0\t X "
            "\t0-23\t0\t\tN/A\n\nLegend:\n"
        )
        assert nvidia_smi.topology(text) == {0: ("X",)}

    def test_network_cards_and_empty_cells(self):
        text = (
            "\tGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"
            "GPU0\t X \tNV4\tNODE\t0\t0\t\tN/A\nGPU1\tNV4\t X \tNODE\t\t1\t\tN/A\nNIC0\tNODE\tNODE\t X \n"
        )
        assert nvidia_smi.topology(text) == {0: ("X", "NV4"), 1: ("NV4", "X")}

    @pytest.mark.parametrize("text", ["", NO_DRIVER, "ERROR: Option -m is missing its value."])
    def test_no_topology(self, text):
        assert nvidia_smi.topology(text) == {}


@given(st.text(), st.text(), st.integers(-1, 255))
def test_no_text_makes_it_raise(stdout, stderr, rc):
    nvidia_smi.outcome(rc, stdout, stderr)
    nvidia_smi.query(stdout, stderr, nvidia_smi.CARD_FIELDS)
    nvidia_smi.topology(stdout)
    nvidia_smi.cuda_version(stdout)
    nvidia_smi.version(stdout)
    nvidia_smi.bus_address(stdout)
    nvidia_smi.library_version(stdout)


@given(st.lists(st.text("0123456789,[]N/A MiBW.GPU:\t -\x1b"), max_size=8))
def test_rows_have_every_field_or_are_none(lines):
    for row in nvidia_smi.query("\n".join(lines), "", FIELDS).rows:
        assert set(row) == set(FIELDS)
        assert (row["index"] or "0").isdigit()
