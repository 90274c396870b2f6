"""Persistence, clock locks and power limits: messages as recorded, and how long each lasts."""

from __future__ import annotations

import pytest

REMINDER = "Warning: persistence mode is disabled on device 00000000:01:00.0. See the Known Issues section"


@pytest.fixture
def host(make_driven):
    """One persistent RTX 5090."""
    made = make_driven("rtx5090")
    assert made.smi("-pm", "1").stdout == ("Enabled persistence mode for GPU 00000000:01:00.0.\nAll done.\n")
    return made


def read(host, *fields):
    return host.smi(f"--query-gpu={','.join(fields)}", "--format=csv,noheader").stdout.strip().split(", ")


@pytest.mark.parametrize(
    ("arguments", "status", "lines"),
    [
        (["-pm", "1"], 0, ["Persistence mode is already Enabled for GPU 00000000:01:00.0.", "All done."]),
        (
            ["-lgc", "2100"],
            0,
            ['GPU clocks set to "(gpuClkMin 2100, gpuClkMax 2100)" for GPU 00000000:01:00.0', "All done."],
        ),
        (
            ["-lgc", "0,2100"],
            0,
            ['GPU clocks set to "(gpuClkMin 0, gpuClkMax 2100)" for GPU 00000000:01:00.0', "All done."],
        ),
        (
            ["-lgc", "tdp,unlimited"],
            0,
            [
                'GPU clocks set to "(gpuClkMin tdp, gpuClkMax unlimited)" for GPU 00000000:01:00.0',
                "All done.",
            ],
        ),
        (
            ["--lock-gpu-clocks=5000"],
            2,
            [
                'Specified clock combination "(gpuClkMin 5000, gpuClkMax 5000)" is not supported for GPU '
                "00000000:01:00.0. Run 'nvidia-smi -q -d SUPPORTED_CLOCKS' to see list of supported clock "
                "combinations",
                "Terminating early due to previous errors.",
            ],
        ),
        (
            ["-pl", "450"],
            0,
            ["Power limit for GPU 00000000:01:00.0 was set to 450.00 W from 575.00 W.", "All done."],
        ),
        (
            ["-pl", "350"],
            2,
            [
                "Provided power limit 350.00 W is not a valid power limit which should be between 400.00 W "
                "and 600.00 W for GPU 00000000:01:00.0",
                "Terminating early due to previous errors.",
            ],
        ),
        (
            ["-lmc", "10000,10000"],
            0,
            [
                'Memory clocks set to "(memClkMin 10000, memClkMax 10000)" for GPU 00000000:01:00.0',
                "All done.",
            ],
        ),
    ],
)
def test_messages(host, arguments, status, lines):
    done = host.smi(*arguments)
    assert (done.returncode, done.stdout.splitlines()) == (status, lines)


def test_a_lock_is_felt_under_load_and_reported_nowhere(host):
    host.lab_gpu("load", "--busy", "--memory", "1000")
    before = read(host, "clocks.gr", "clocks.max.gr")
    host.smi("-lgc", "0,2100")
    assert before == ["2750 MHz", "3090 MHz"]
    assert read(host, "clocks.gr", "clocks.max.gr") == ["2100 MHz", "3090 MHz"]
    host.smi("-rgc")
    assert read(host, "clocks.gr") == ["2750 MHz"]


def test_an_accepted_memory_lock_is_not_honored(host):
    host.lab_gpu("load", "--busy")
    host.smi("-lmc", "10000,10000")
    assert read(host, "clocks.mem") == ["13801 MHz"]


def test_a_clock_between_two_steps_is_lowered_in_silence(host):
    host.lab_gpu("load", "--busy")
    host.smi("-lgc", "2005")
    assert read(host, "clocks.gr") == ["2002 MHz"]


def test_a_power_limit_caps_the_power_drawn(host):
    host.lab_gpu("load", "--busy")
    host.smi("-pl", "400")
    assert read(host, "power.limit", "power.draw", "clocks_event_reasons.sw_power_cap") == [
        "400.00 W",
        "400.00 W",
        "Active",
    ]


def test_without_persistence_a_setting_is_gone_when_nvidia_smi_ends(host):
    host.smi("-pm", "0")
    done = host.smi("-pl", "450")
    assert done.returncode == 0
    assert REMINDER in done.stdout
    assert read(host, "power.limit", "persistence_mode") == ["575.00 W", "Disabled"]


@pytest.mark.parametrize("end", ["reboot", "reload"])
def test_settings_do_not_outlive_the_module(host, end):
    host.smi("-pl", "450")
    if end == "reboot":
        host.reboot()
    else:
        assert host.modprobe("-r", "nvidia-drm").returncode == 0
        assert host.modprobe("nvidia").returncode == 0
    assert read(host, "power.limit", "persistence_mode") == ["575.00 W", "Disabled"]


def test_an_unsupported_power_limit_is_a_warning_and_succeeds(host):
    host.lab_gpu("fault", "power-unsupported")
    done = host.smi("-pl", "450")
    assert (done.returncode, done.stdout.splitlines()) == (
        0,
        [
            "Changing power management limit is not supported for GPU: 00000000:01:00.0.",
            "Treating as warning and moving on.",
            "All done.",
        ],
    )
    assert host.smi("-pl", "450", "--error-on-warning").returncode == 3


def test_an_unsupported_clock_lock_says_so(host):
    host.lab_gpu("fault", "clocks-unsupported")
    assert (
        "Setting locked GPU clocks is not supported for GPU 00000000:01:00.0."
        in host.smi("-lgc", "2100").stdout
    )


def test_an_ignored_clock_lock_is_told_by_the_clock_alone(host):
    host.lab_gpu("fault", "clocks-ignored")
    host.lab_gpu("load", "--busy")
    assert host.smi("-lgc", "0,2100").returncode == 0
    assert read(host, "clocks.gr") == ["2750 MHz"]
