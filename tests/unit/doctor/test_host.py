"""A host's report out of what was read there: states, values, and which log counts."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boxwright.doctor import readings
from boxwright.doctor.host import examine

RUNNING = {"load": "loaded", "active": "active", "sub": "running", "running": True, "down": False,
           "ending": "", "restarts": 0, "began": 1764410400.0}  # fmt: skip
FAILED = {**RUNNING, "active": "failed", "sub": "failed", "running": False, "down": True,
          "ending": "ended with exit status 1", "began": None}  # fmt: skip
KV = (
    "1764410300.000000 box1 boxwright-qwen[9]: (EngineCore pid=7) ERROR 11-29 10:00:00 [core.py:1] "
    "ValueError: max_num_seqs (256) exceeds available Mamba cache blocks (117)."
)


def deployment(**changes):
    return {"name": "qwen", "release": "r1", "journal": {"rc": 0, "text": ""}, "unit": RUNNING,
            "container": None, "failure": None, "health": 200, "metrics": "", **changes}  # fmt: skip


def host(*deployments, **changes):
    return {"format": 1, "deployments": list(deployments), "kernel": {"rc": 0, "text": ""},
            "smi": {"rc": 0, "text": "ok"}, "docker": {"rc": 0, "text": ""},
            "previous_boot": {"rc": 1, "text": ""}, "throttle": {"rc": 0, "text": ""}, "pci": [],
            "filesystems": [], "reboot_required": False, **changes}  # fmt: skip


def names(diagnoses):
    return [one.id for one in diagnoses]


def test_one_that_serves_is_fine():
    states, report = examine(host(deployment()))
    assert (states[0].state, report.verdict, report.causes) == ("serving", "fine", ())


def test_one_that_failed_is_told_with_the_cause_of_its_journal():
    states, report = examine(host(deployment(unit=FAILED, health=None, journal={"rc": 0, "text": KV})))
    assert (states[0].state, states[0].what) == ("failed", "ended with exit status 1")
    assert names(report.causes) == ["too-many-sequences-for-state-blocks"]
    assert names(report.consequences) == ["not-serving"]
    assert report.causes[0].evidence[0].source == "journal of qwen"


def test_the_log_of_the_release_that_failed_counts_until_something_serves():
    failure = {"release": "r2", "when": "2026-11-29T10:00:00Z", "what": "x", "log": KV}
    assert names(examine(host(deployment(failure=failure)))[1].causes) == []
    report = examine(host(deployment(unit=FAILED, health=None, failure=failure)))[1]
    assert report.causes[0].evidence[0].source.startswith("release r2 of qwen, failed 2026")


@pytest.mark.parametrize(
    ("unit", "health", "state"),
    [
        (RUNNING, 200, "serving"),
        (RUNNING, 0, "loading"),
        (RUNNING, 503, "loading"),
        ({**FAILED, "active": "activating", "sub": "start-pre"}, None, "loading"),
        ({**FAILED, "active": "activating", "sub": "auto-restart"}, None, "failed"),
        (FAILED, None, "failed"),
        ({**FAILED, "active": "inactive", "sub": "dead"}, None, "stopped"),
        ({**FAILED, "active": "inactive", "sub": "dead", "load": "not-found"}, None, "stopped"),
        ({"error": "systemctl is not there"}, None, "failed"),
    ],
)
def test_states(unit, health, state):
    states, report = examine(host(deployment(unit=unit, health=health)))
    assert states[0].state == state
    assert ("not-serving" in names([*report.consequences, *report.causes])) is (
        state in ("failed", "stopped") and "error" not in unit
    )


def test_a_service_that_was_stopped_is_the_fault_whatever_slows_it_while_it_runs():
    """It leaves no error behind, and does not follow from what its log warns of."""
    slow = (
        "1764410300.000000 box1 boxwright-qwen[9]: WARNING [vllm.py:1] Enforce eager set, disabling "
        "torch.compile"
    )
    stopped = {**FAILED, "active": "inactive", "sub": "dead", "ending": ""}
    states, report = examine(host(deployment(unit=stopped, health=None, journal={"rc": 0, "text": slow})))
    assert (states[0].state, report.verdict, names(report.causes)) == (
        "stopped", "fatal", ["not-serving", "eager-mode"])  # fmt: skip
    assert report.on("box1").causes[0].fix[0].startswith("./invoke provision --host box1 ")
    assert report.consequences == ()


def docker(active, load="loaded"):
    return {"load": load, "active": active, "sub": "dead", "down": active in ("inactive", "failed")}


@pytest.mark.parametrize("service", [docker("inactive"), docker("failed"), docker("inactive", "masked")])
def test_a_docker_that_does_not_run_is_named_before_what_follows_from_it(service):
    stopped = {**FAILED, "active": "inactive", "sub": "dead", "ending": ""}
    states, report = examine(host(deployment(unit=stopped, health=None), docker_unit=service))
    assert (states[0].state, names(report.causes)) == ("stopped", ["docker-down"])
    assert [(one.id, one.because) for one in report.consequences] == [("not-serving", "docker-down")]


@pytest.mark.parametrize(
    "service", [docker("active"), docker("inactive", "not-found"), {"error": "no systemd"}]
)
def test_a_docker_that_runs_or_is_not_there_is_no_service_that_stands_still(service):
    assert names(examine(host(deployment(), docker_unit=service))[1].causes) == []


def test_nobody_waits_for_docker_where_nothing_is_deployed():
    assert examine(host(docker_unit=docker("inactive")))[1].verdict == "fine"


def test_why_docker_does_not_run_comes_before_that_it_does_not():
    why = (
        "1764410300.000000 box1 dockerd[9]: unable to configure the Docker daemon with file "
        "/etc/docker/daemon.json: invalid character 'x' looking for beginning of object key string"
    )
    raw = host(
        deployment(unit=FAILED, health=None), docker_unit=docker("failed"), docker={"rc": 0, "text": why}
    )
    assert names(examine(raw)[1].causes) == ["docker-configuration-refused"]


def test_that_nothing_serves_is_fatal_even_when_no_log_says_why():
    report = examine(host(deployment(unit=FAILED, health=None)))[1]
    assert report.verdict == "fatal"


def test_an_old_xid_is_past_once_all_serve_and_fatal_when_not():
    kernel = {
        "rc": 0,
        "text": "1764410000.000000 box1 kernel: NVRM: Xid (PCI:0000:01:00): 13, pid=1, name=python3",
    }
    assert examine(host(deployment(), kernel=kernel))[1].verdict == "fine"
    assert examine(host(deployment(unit=FAILED, health=None), kernel=kernel))[1].causes[0].id == "xid-13"


METRICS = """\
# HELP vllm:num_requests_running x
vllm:num_requests_running{engine="0",model_name="q"} 2.0
vllm:num_requests_waiting{engine="0"} 9.0
vllm:kv_cache_usage_perc{engine="0"} 0.98
vllm:num_preemptions_total{engine="0"} 3.0
vllm:spec_decode_num_draft_tokens_total{engine="0"} 600.0
vllm:spec_decode_num_draft_tokens_total{engine="1"} 600.0
vllm:spec_decode_num_accepted_tokens_total{engine="0"} 12.0
vllm:broken{engine="0"} NaN
"""


def test_counters():
    found = readings.of_metrics(METRICS)
    assert found == {"running": 2, "waiting": 9, "preemptions": 3, "drafted": 1200, "accepted": 12,
                     "kv_usage": 0.98, "acceptance": 0.01}  # fmt: skip
    report = examine(host(deployment(metrics=METRICS)))[1]
    assert set(names(report.causes)) == {"drafts-rejected", "kv-cache-full", "preemptions"}
    assert report.verdict == "slows"


PCI = {"bus": "0000:01:00.0", "current_link_width": "16", "max_link_width": "16"}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"previous_boot": {"rc": 0, "text": "kernel: usb 1-1: new device"}}, "box-went-down-by-itself"),
        ({"previous_boot": {"rc": 0, "text": "systemd-journald[1]: Journal stopped"}}, None),
        (
            {"previous_boot": {"rc": 0, "text": "systemd[1]: Reached target reboot.target - System Reboot."}},
            None,
        ),
        ({"pci": [PCI, PCI], "throttle": {"rc": 0, "text": "0, 0x0000000000000000"}}, "card-missing"),
        ({"pci": [PCI], "throttle": {"rc": 0, "text": "0, 0x0000000000000001"}}, None),
        ({"pci": [PCI], "throttle": {"rc": 0, "text": "0, 0x0000000000000040"}}, "card-throttled-by-heat"),
        (
            {"pci": [PCI], "throttle": {"rc": 0, "text": "0, 0x0000000000000080"}},
            "card-throttled-by-power-brake",
        ),
        ({"pci": [PCI], "throttle": {"rc": 0, "text": "0, [N/A]"}}, None),
        ({"pci": [PCI, {**PCI, "current_link_width": "4"}]}, "link-narrow"),
        ({"pci": [{**PCI, "current_link_width": "4"}]}, None),
        ({"filesystems": [{"size": 100, "available": 1}]}, "filesystem-nearly-full"),
        ({"filesystems": [{"size": 100, "available": 50}, {"size": 0, "available": 0}]}, None),
        ({"reboot_required": True}, "reboot-due"),
        (
            {"smi": {"rc": 18, "text": "Failed to initialize NVML: Driver/library version mismatch"}},
            "driver-mismatch",
        ),
    ],
)
def test_values_of_the_host(changes, said):
    assert names(examine(host(deployment(), **changes))[1].causes) == ([said] if said else [])


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=True), st.text(max_size=8)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=100)
@given(st.sampled_from(sorted(host())), JSON, st.sampled_from(sorted(deployment())), JSON)
def test_whatever_a_host_sends_is_taken(key, value, inner, other):
    raw = host(deployment(**{inner: other}))
    raw[key] = value
    examine(raw)
