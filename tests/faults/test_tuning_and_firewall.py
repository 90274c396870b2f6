"""Limits of the cards and rules for published ports: made, kept, found changed and mended, taken away.

The tests follow one another on one box; a second host is the source that is declared or not. What listens is
a small program in a container that Docker publishes, under the unit of a deployment: the rules are made of
the declaration and know no engine.
"""

import json
import subprocess
import time
from pathlib import Path

import pytest
import yaml

from boxwright.cli.ansible_run import play

pytestmark = pytest.mark.lab

BOX, OTHER, PORT = "lab1", "lab2", 8377
UNIT, ACCESS, TUNING = "boxwright-stand-in", "boxwright-port-access", "boxwright-gpu-tuning"
BASE = [{"include_role": {"name": name}} for name in ("preflight", "nvidia_driver", "container_runtime")]
WORK = [
    {"include_role": {"name": "preflight"}},
    {"include_role": {"name": "gpu_tuning"}},
    {"include_role": {"name": "engine", "tasks_from": "configure"}},
]
UNDO = [{"include_role": {"name": "gpu_tuning", "tasks_from": "uninstall"}}]
#: An engine's unit in small: a container in the foreground with a published port.
STAND_IN = f"""[Unit]
After=docker.service
Requires=docker.service
[Service]
ExecStartPre=-/usr/bin/docker rm --force {UNIT}
ExecStart=/usr/bin/docker run --rm --name {UNIT} --publish 0.0.0.0:{PORT}:8000 --publish [::]:{PORT}:8000 \\
  --volume /usr:/usr:ro --workdir /tmp stand-in:1 /usr/bin/python3 -m http.server 8000
ExecStop=-/usr/bin/docker stop --time 1 {UNIT}
Restart=always
SuccessExitStatus=137 143
[Install]
WantedBy=multi-user.target
"""
IMAGE = (
    "cd $(mktemp -d) && mkdir usr tmp && ln -s usr/lib lib && ln -s usr/lib64 lib64 && "
    "tar c . | docker import - stand-in:1"
)
RC_LOCAL = """#!/bin/sh
nvidia-smi -i 0 -lgc 0,1800
nvidia-smi -lmc 9000
exit 0
"""
DECLARED = {
    "gpu_tuning_max_clock_mhz": 2100,
    "gpu_tuning_power_limit_w": 450,
    "gpu_tuning_cards": {"0": {"max_clock_mhz": 1905}},
}


@pytest.fixture(scope="module")
def run(lab_hosts, tmp_path_factory):
    """run(tasks, **variables): the tasks on the box with these variables; its report."""
    lab_hosts(BOX, OTHER, keep=True)
    folder, plays = tmp_path_factory.mktemp("tuning"), tmp_path_factory.mktemp("plays")
    serving = yaml.safe_load(Path("inventory/lab/group_vars/serving.yml").read_text())
    deployment = {**serving["box_deployments"][0], "name": "stand-in", "port": PORT}

    def go(tasks, **variables):
        (folder / "host_vars").mkdir(exist_ok=True)
        (folder / "hosts.yml").write_text(yaml.safe_dump({"lab": {"hosts": {BOX: {}}}}))
        declared = {"gpu_tuning_max_clock_mhz": None, "box_deployments": [deployment], **variables}
        (folder / "host_vars" / f"{BOX}.yml").write_text(yaml.safe_dump(declared))
        file = plays / "play.yml"
        file.write_text(
            yaml.safe_dump([{"hosts": "all", "become": True, "gather_facts": False, "tasks": tasks}])
        )
        inventories = [Path("inventory/lab").absolute(), folder]
        return play(str(file), [BOX], inventories, quiet=True).hosts[BOX]

    go.folder = folder
    return go


@pytest.fixture(scope="module")
def box(run, simulated):
    """A box with driver and Docker, and a port that is published on all of its addresses."""
    report = run(BASE)
    assert report.failure is None, report.failure
    box = simulated(BOX)
    box.do("sh", "-c", IMAGE)
    write(box, f"/etc/systemd/system/{UNIT}.service", STAND_IN)
    box.do("systemctl", "daemon-reload")
    box.do("systemctl", "enable", "--now", UNIT)
    yield box
    box.do("systemctl", "disable", "--now", UNIT)
    box.do("rm", "-f", f"/etc/systemd/system/{UNIT}.service", "/etc/rc.local")
    box.do("systemctl", "daemon-reload")
    report = run(UNDO)
    assert report.failure is None, report.failure


def write(host, path, text, mode="644"):
    host.do("sh", "-c", 'printf %s "$1" > "$2" && chmod "$3" "$2"', "sh", text, path, mode)


def card(box):
    fields = "persistence_mode,power.limit,clocks.current.graphics"
    return box.do("nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader").strip()


def receipt(box):
    kept = json.loads(box.do("cat", "/run/boxwright/gpu-tuning.json"))
    return next(iter(kept["cards"].values()))


def told(report):
    return report.failure["message"] if report.failure else ""


def test_limits_are_set_and_the_line_of_rc_local_is_taken_over(run, box):
    write(box, "/etc/rc.local", RC_LOCAL, "755")
    report = run(WORK, **DECLARED)
    assert report.failure is None, report.failure
    assert card(box).startswith("Enabled, 450.00 W")
    assert receipt(box)["clocks_mhz"] == [0, 1905]
    lines = box.do("cat", "/etc/rc.local").splitlines()
    assert lines[1] == f": # taken over by {TUNING}.service: nvidia-smi -i 0 -lgc 0,1800"
    assert lines[2] == "nvidia-smi -lmc 9000", "what is not declared stays"
    plan = report.results["plan"][0]["ansible_facts"]["box_plan"]
    assert [f"{one['id']}" for one in plan["advice"] if one["id"].startswith("tuned")] == ["tuned-elsewhere"]
    assert any("/etc/rc.local:2" in change["text"] for change in plan["changes"])


def test_again_nothing_changes(run, box):
    report = run(WORK, **DECLARED)
    assert (report.failure, report.changed) == (None, 0)


def test_a_reload_of_the_driver_brings_the_limits_back(box):
    before = box.do("cat", "/run/boxwright/gpu-tuning.json")
    box.do("systemctl", "stop", "nvidia-persistenced")
    box.do("modprobe", "-r", "nvidia_uvm", "nvidia_drm", "nvidia_modeset", "nvidia", check=False)
    box.do("modprobe", "nvidia")
    box.do("systemctl", "start", "nvidia-persistenced")
    until = time.monotonic() + 30
    # The daemon's start pulls the unit in, and does not wait for it.
    while box.do("systemctl", "is-active", TUNING, check=False).strip() != "active":
        assert time.monotonic() < until, box.do("systemctl", "status", TUNING, check=False)
        time.sleep(0.5)
    assert card(box).startswith("Enabled, 450.00 W")
    after = box.do("cat", "/run/boxwright/gpu-tuning.json")
    assert json.loads(after)["driver_load"] != json.loads(before)["driver_load"]


def test_what_somebody_changed_is_found_and_mended(run, box):
    box.do("nvidia-smi", "-pl", "500")
    report = run(WORK, **DECLARED)
    assert report.failure is None, report.failure
    changes = report.results["plan"][0]["ansible_facts"]["box_plan"]["changes"]
    of_cards = [change["text"] for change in changes if change["role"] == "gpu_tuning"]
    assert of_cards == ["power limit 500 W -> 450 W"]
    assert card(box).startswith("Enabled, 450.00 W")


def test_a_lock_that_does_not_hold_shows_under_load(run, box):
    box.do("lab-gpu", "fault", "clocks-ignored")
    box.do("lab-gpu", "load", "--busy")
    try:
        report = run(WORK, **DECLARED)
    finally:
        box.do("lab-gpu", "clear", "clocks-ignored")
    assert "locked at 1905 MHz" in told(report)
    report = run(WORK, **DECLARED)
    box.do("lab-gpu", "load")
    assert report.failure is None, report.failure


def test_a_lock_that_the_card_does_not_know_is_told_or_refused_where_it_is_required(run, box):
    lower = {**DECLARED, "gpu_tuning_cards": {"0": {"max_clock_mhz": 1800}}}
    box.do("lab-gpu", "fault", "clocks-unsupported")
    try:
        report = run(WORK[:2], **lower, gpu_tuning_required=True)
        assert "does not support: clocks" in told(report)
        report = run(WORK[:2], **lower)
        assert report.failure is None, report.failure
        assert card(box).startswith("Enabled, 450.00 W"), "what it does support holds"
        assert "clocks_mhz" not in receipt(box)
    finally:
        box.do("lab-gpu", "clear", "clocks-unsupported")
    report = run(WORK[:2], **DECLARED)
    assert report.failure is None, report.failure
    assert receipt(box)["clocks_mhz"] == [0, 1905]
    assert run(WORK[:2], **DECLARED).changed == 0


def test_a_value_that_the_card_does_not_take_changes_nothing(run, box):
    before = (box.fingerprint(), card(box))
    report = run(WORK, **{**DECLARED, "gpu_tuning_cards": {"0": {"power_limit_w": 150}}})
    assert report.failure["kind"] == "refused"
    assert "400 to 600 W" in told(report)
    assert "host_vars/lab1.yml:" in told(report)
    assert (box.fingerprint(), card(box)) == before


def test_what_is_dropped_goes_back_to_the_cards_own(run, box):
    report = run(WORK)
    assert report.failure is None, report.failure
    assert card(box).startswith("Enabled, 575.00 W")
    assert "clocks_mhz" not in receipt(box)


def test_uninstall_gives_rc_local_back(run, box):
    report = run(UNDO)
    assert report.failure is None, report.failure
    assert box.do("cat", "/etc/rc.local") == RC_LOCAL
    assert box.do("sh", "-c", "ls /etc | grep -c rc.local").strip() == "1", "no copy of it is left"
    box.do("rm", "/etc/rc.local")


@pytest.fixture(scope="module")
def other(simulated):
    return simulated(OTHER)


def address(host):
    hosts = json.loads(Path(".lab/state.json").read_text())["hosts"]
    return hosts[host.name]["address"]


def reaches(source, target, port=PORT):
    """Whether a host connects and gets an answer, within two seconds."""
    code = (
        "import socket, sys; s = socket.create_connection((sys.argv[1], int(sys.argv[2])), 2); "
        "s.settimeout(5); s.sendall(b'GET / HTTP/1.0\\r\\n\\r\\n'); print(s.recv(12).decode())"
    )
    return "HTTP/1.0 200" in source.do("python3", "-c", code, target, str(port), check=False)


def served(box):
    """Wait until the stand-in answers on the box itself."""
    until = time.monotonic() + 60
    while not reaches(box, "127.0.0.1"):
        assert time.monotonic() < until, "the stand-in does not answer on the box itself"
        time.sleep(0.5)


def ssh(*words):
    return ["ssh", "-F", str(Path(".lab/ssh_config").absolute()), *words, BOX]


def test_an_undeclared_source_is_kept_out_and_ssh_goes_on(run, box, other):
    served(box)
    assert reaches(other, address(box)), "nothing is declared yet"
    talking = subprocess.Popen(
        [*ssh("-S", "none"), "cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    talking.stdin.write("before\n")
    talking.stdin.flush()
    assert talking.stdout.readline() == "before\n"
    report = run(WORK[::2], box_allow_from=["192.0.2.0/24", "2001:db8::/32"])
    assert report.failure is None, report.failure
    assert not reaches(other, address(box))
    served(box)
    said, _ = talking.communicate("after\n", timeout=20)
    assert said == "after\n", "the SSH connection in use went on"
    again = subprocess.run([*ssh("-S", "none"), "true"], timeout=30, check=False)
    assert again.returncode == 0, "and a new one is let in"
    rules = box.do("iptables", "-S")
    assert "-P INPUT ACCEPT" in rules
    assert not [rule for rule in rules.splitlines() if "22" in rule.split()]


def test_ipv6_is_kept_out_where_docker_has_no_rules_for_it(box, other):
    for host in (box, other):
        host.do("sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=0", "net.ipv6.conf.eth0.disable_ipv6=0")
    time.sleep(3)  # an address is the host's own once nobody answers to it
    line = box.do("ip", "-6", "-o", "address", "show", "dev", "eth0", "scope", "link")
    inner = line.split()[3].partition("/")[0]
    assert not reaches(other, f"{inner}%eth0")
    box.do("ip6tables", "-I", "BOXWRIGHT-FROM", "-s", "fe80::/10", "-j", "RETURN")
    assert reaches(other, f"{inner}%eth0"), "it was these rules that kept it out"


def test_rules_that_somebody_changed_are_found_and_mended(run, box, other):
    box.do("iptables", "-D", "DOCKER-USER", "-j", "BOXWRIGHT-ACCESS")
    assert reaches(other, address(box))
    report = run(WORK[::2], box_allow_from=["192.0.2.0/24", "2001:db8::/32"])
    assert report.failure is None, report.failure
    changes = report.results["plan"][0]["ansible_facts"]["box_plan"]["changes"]
    subjects = [one["text"] for one in changes if one["subject"] == "rules of the published ports"]
    assert "traffic of chain DOCKER-USER passes by the rules" in subjects[0]
    assert "IPv6 rules were changed by somebody else" in subjects[0]
    assert not reaches(other, address(box))
    report = run(WORK[::2], box_allow_from=["192.0.2.0/24", "2001:db8::/32"])
    assert report.changed == 0


def test_a_declared_source_passes_also_after_docker_and_the_box_start_anew(run, box, other):
    report = run(WORK[::2], box_allow_from=[address(other)])
    assert report.failure is None, report.failure
    assert reaches(other, address(box))
    box.do("systemctl", "restart", "docker")
    served(box)
    assert reaches(other, address(box))
    assert not from_here(box)
    box.restart()
    served(box)
    assert reaches(other, address(box))
    assert not from_here(box)
    assert box.do("systemctl", "is-active", ACCESS).strip() == "active"


def from_here(box):
    """Whether this machine, which is not declared, gets through."""
    words = ["curl", "-s", "-m", "2", "-o", "/dev/null", f"http://{address(box)}:{PORT}/"]
    return subprocess.run(words, check=False).returncode == 0


def test_no_engine_starts_without_the_rules(box):
    box.do("mv", "/etc/boxwright/port-access.json", "/etc/boxwright/port-access.kept")
    box.do("sh", "-c", "echo torn > /etc/boxwright/port-access.json")
    box.do("systemctl", "stop", UNIT, ACCESS)
    box.do("systemctl", "start", UNIT, check=False)
    assert box.do("systemctl", "is-active", UNIT, check=False).strip() == "inactive"
    box.do("mv", "/etc/boxwright/port-access.kept", "/etc/boxwright/port-access.json")
    box.do("systemctl", "start", UNIT)
    served(box)


def test_a_network_that_is_none_is_refused_with_its_line(run, verb):
    run_file = run.folder / "host_vars" / f"{BOX}.yml"
    declared = yaml.safe_load(run_file.read_text())
    hostile = ["10.0.0.7/8", "0.0.0.0/0 -j ACCEPT", "300.1.1.1"]
    run_file.write_text(yaml.safe_dump({**declared, "box_allow_from": hostile}))
    ran = verb("validate", "--inventory", "inventory/lab", "--inventory", run.folder)
    assert ran.status == 2
    for place, text in enumerate(hostile):
        assert f"box_allow_from[{place}]" in ran.output, text
    assert "host_vars/lab1.yml:" in ran.output
    assert "10.0.0.0/8" in ran.output


def test_without_the_declaration_everybody_reaches_it_again(run, box, other):
    report = run(WORK[::2])
    assert report.failure is None, report.failure
    assert reaches(other, address(box))
    assert from_here(box)
    assert "BOXWRIGHT" not in box.do("iptables", "-S") + box.do("ip6tables", "-S")
    assert box.do("systemctl", "is-active", UNIT).strip() == "active", "its engine was not stopped for it"
    assert run(WORK[::2]).changed == 0
