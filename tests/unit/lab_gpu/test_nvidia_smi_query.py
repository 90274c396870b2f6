"""Rows and headers against what facts/nvidia_smi.md records of real cards."""

from __future__ import annotations

import re

import pytest

MEMORY = "index,name,memory.total,memory.reserved,memory.used,memory.free"
POWER = "index,power.limit,power.default_limit,power.min_limit,power.max_limit"
LINK = "pci.bus_id,pcie.link.gen.current,pcie.link.gen.max,pcie.link.width.current,pcie.link.width.max"
CLOCKS = "clocks.gr,clocks.mem,clocks.max.gr,clocks.max.mem"
ABSENT = "mig.mode.current,ecc.mode.current,temperature.memory,driver_model.current"


@pytest.mark.parametrize(
    ("rig", "fields", "rows"),
    [
        ("rtx5090", MEMORY, ["0, NVIDIA GeForce RTX 5090, 32607 MiB, 487 MiB, 2 MiB, 32118 MiB"]),
        ("rtx5090", POWER, ["0, 575.00 W, 575.00 W, 400.00 W, 600.00 W"]),
        ("rtx5090", CLOCKS, ["22 MHz, 405 MHz, 3090 MHz, 14001 MHz"]),
        ("rtx3090x2", POWER, [f"{n}, 350.00 W, 350.00 W, 100.00 W, 385.00 W" for n in (0, 1)]),
        ("rtx3090x2", LINK, ["00000000:01:00.0, 1, 4, 16, 16", "00000000:02:00.0, 1, 4, 16, 16"]),
        ("rtx4090x2", CLOCKS, ["210 MHz, 405 MHz, 3105 MHz, 10501 MHz"] * 2),
        ("rtx4090x2", ABSENT, ["[N/A], [N/A], N/A, [N/A]"] * 2),
    ],
)
def test_rows(make_driven, rig, fields, rows):
    done = make_driven(rig).smi(f"--query-gpu={fields}", "--format=csv,noheader")
    assert (done.returncode, done.stdout.splitlines(), done.stderr) == (0, rows, "")


def test_header_carries_canonical_names_and_units(make_driven):
    done = make_driven("rtx5090").smi(
        "--query-gpu=gpu_name,clocks.gr,memory.used,clocks_throttle_reasons.active,power.draw,utilization.gpu",
        "--format=csv",
    )
    assert done.stdout.splitlines()[0] == (
        "name, clocks.current.graphics [MHz], memory.used [MiB], clocks_event_reasons.active, "
        "power.draw [W], utilization.gpu [%]"
    )


def test_nounits_drops_units_of_values_and_header(make_driven):
    done = make_driven("rtx5090").smi(
        "--query-gpu=memory.total,driver_version,compute_cap", "--format=csv,nounits"
    )
    assert done.stdout == "memory.total, driver_version, compute_cap\n32607, 580.105.08, 12.0\n"


def test_memory_adds_up(make_driven):
    done = make_driven("rtx5090").smi(f"--query-gpu={MEMORY}", "--format=csv,noheader,nounits")
    total, reserved, used, free = map(int, done.stdout.strip().split(", ")[2:])
    assert abs(total - reserved - used - free) <= 2


@pytest.mark.parametrize("wanted", ["1", "00000000:02:00.0", "0000:02:00.0", "uuid"])
def test_one_card_is_chosen_by_index_address_or_uuid(make_driven, wanted):
    host = make_driven()
    uuids = re.findall(r"UUID: (GPU-[0-9a-f-]{36})\)", host.smi("-L").stdout)
    done = host.smi(
        "-i", uuids[1] if wanted == "uuid" else wanted, "--query-gpu=index,uuid", "--format=csv,noheader"
    )
    assert done.stdout == f"1, {uuids[1]}\n"


def test_unknown_field_fails_the_whole_call(make_driven):
    done = make_driven().smi("--query-gpu=index,xyz", "--format=csv")
    assert (done.returncode, done.stdout) == (2, 'Field "xyz" is not a valid field to query.\n\n')


def test_newer_branch_calls_old_fields_deprecated(make_driven):
    done = make_driven("rtx5090", "595.71.05").smi(
        "--query-gpu=clocks.applications.gr,power.management", "--format=csv,noheader"
    )
    assert done.stdout == ", ".join(["[Requested functionality has been deprecated]"] * 2) + "\n"


def test_work_shows_in_clocks_memory_and_processes(make_driven):
    host = make_driven("rtx4090x2")
    host.lab_gpu("load", "--gpu", "1", "--memory", "20000", "--pid", "4242", "--busy")
    rows = host.smi(
        "--query-gpu=pstate,memory.used,clocks.mem,pcie.link.gen.current", "--format=csv,noheader"
    ).stdout.splitlines()
    assert rows == ["P8, 2 MiB, 405 MHz, 1", "P2, 20002 MiB, 10251 MHz, 4"]
    apps = host.smi("--query-compute-apps=pid,name,used_memory", "--format=csv,noheader,nounits")
    assert apps.stdout == "4242, VLLM::EngineCore, 20000\n"


def test_list_and_versions(make_driven):
    host = make_driven("rtx4090x2", "595.71.05")
    assert re.fullmatch(
        r"(GPU [01]: NVIDIA GeForce RTX 4090 \(UUID: GPU-[0-9a-f-]{36}\)\n){2}", host.smi("-L").stdout
    )
    assert [line.split(": ")[1] for line in host.smi("--version").stdout.splitlines()] == [
        "595.71.05",
        "595.71",
        "595.71.05",
        "13.2",
    ]


def test_details_as_text_and_xml_say_the_same(make_driven):
    host = make_driven("rtx5090")
    text, xml = host.smi("-q").stdout, host.smi("-q", "-x").stdout
    for line in ("Product Architecture", "Addressing Mode", "Persistence Mode"):
        assert re.search(rf"^    {line} +: \S", text, re.MULTILINE)
    assert re.search(r"^        Total {29,}: 32607 MiB$", text, re.MULTILINE)
    assert "<total>32607 MiB</total>" in xml
    assert "<current_power_limit>575.00 W</current_power_limit>" in xml
    from xml.etree import ElementTree

    assert (
        ElementTree.fromstring(xml.split("\n", 2)[2]).find("gpu/gpu_power_readings/min_power_limit").text
        == "400.00 W"
    )


def test_supported_clocks_of_a_consumer_blackwell(make_driven):
    lines = make_driven("rtx5090").smi("-q", "-d", "SUPPORTED_CLOCKS").stdout.splitlines()
    clocks = [line.split(" : ")[1] for line in lines if "Graphics" in line or "Memory" in line]
    assert clocks[:3] == ["14001 MHz", "3090 MHz", "3082 MHz"]
    assert sum(clock == "14001 MHz" for clock in clocks) == 1


def test_the_plain_call_is_a_table_of_one_width(make_driven):
    lines = make_driven().smi().stdout.splitlines()
    assert {len(line) for line in lines if line.startswith(("|", "+"))} == {91}
    assert sum("NVIDIA GeForce RTX 3090" in line for line in lines) == 2


def test_xml_has_the_real_names(make_driven):
    from xml.etree import ElementTree

    text = make_driven("rtx3090x2").smi("-q", "-x").stdout
    root = ElementTree.fromstring(text.split("\n", 2)[2])
    found = {
        path: root.find("gpu/" + path).text
        for path in (
            "uuid",
            "clocks/graphics_clock",
            "max_clocks/mem_clock",
            "utilization/gpu_util",
            "temperature/gpu_temp",
            "pci/pci_bus_id",
            "pci/pci_gpu_link_info/pcie_gen/max_link_gen",
            "clocks_event_reasons/clocks_event_reason_gpu_idle",
            "mig_mode/current_mig",
            "supported_clocks/supported_mem_clock/supported_graphics_clock",
        )
    }
    assert list(found.values())[1:] == [
        "210 MHz",
        "9751 MHz",
        "0 %",
        "38 C",
        "00000000:01:00.0",
        "4",
        "Active",
        "N/A",
        "2100 MHz",
    ]
    assert len(root.findall("gpu")) == 2


def test_an_answer_can_go_to_a_file(make_driven, tmp_path):
    done = make_driven().smi("-L", "-f", str(tmp_path / "out"))
    assert done.stdout == ""
    assert (tmp_path / "out").read_text().startswith("GPU 0: NVIDIA GeForce RTX 3090")


def test_every_field_that_help_lists_can_be_asked_for(make_driven):
    host = make_driven()
    names = [
        line.strip('"') for line in host.smi("--help-query-gpu").stdout.splitlines() if line.startswith('"')
    ]
    assert len(names) > 90
    row = host.smi(f"--query-gpu={','.join(names)}", "--format=csv,noheader", "-i", "0").stdout
    assert len(row.split(", ")) == len(names)
