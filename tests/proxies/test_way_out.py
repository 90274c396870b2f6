"""A box that reaches nothing but a proxy, or its controller: everything comes that way, or is told.

The tests follow one another on one box. Its own firewall lets out what each of them says, and nothing else.
"""

import json
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from boxwright.lab import realm
from boxwright.spec.inventory import load

pytestmark = pytest.mark.lab

ROOT = Path(__file__).resolve().parents[2]
HOST, GATE, PORT = "lab5", "lab6", 3128
NAME, PASSWORD = "lab", "planted-proxy-password"
DEPOT = "depot.boxwright.lab"
#: As Debian has it, but for the log and the login.
TINYPROXY = f"""Port {PORT}
User tinyproxy
Group tinyproxy
Timeout 600
MaxClients 200
LogFile "/var/log/tinyproxy/tinyproxy.log"
LogLevel Connect
BasicAuth {NAME} {PASSWORD}
"""
#: What the depot serves without TLS, and with it (the private registry wants its login, too).
WITH_TLS = (
    (f"http://{DEPOT}:8300", f"https://{DEPOT}:8343"),
    (f"http://{DEPOT}/", f"https://{DEPOT}/"),
    (f"{DEPOT}:5000/", f"{DEPOT}:5443/"),
)


class Box:
    """The box, what is declared of it, and what its firewall lets out."""

    def __init__(self, verb, host, directory):
        self.verb, self.host, self.inventory = verb, host, directory
        (directory / "hosts.yml").write_text(yaml.safe_dump({"lab": {"hosts": {HOST: {}}}}))
        (directory / "host_vars").mkdir()
        self.usual = load([ROOT / "inventory" / "lab"]).variables(HOST)

    def declare(self, *exchanges, **variables):
        """The lab's own declaration with some texts exchanged, and these variables."""
        kept = {name: value for name, value in self.usual.items() if not name.startswith(("ansible", "lab"))}
        text = yaml.safe_dump(kept)
        for was, now in exchanges:
            text = text.replace(was, now)
        declared = {**yaml.safe_load(text), **variables}
        (self.inventory / "host_vars" / f"{HOST}.yml").write_text(yaml.safe_dump(declared))

    def run(self, name, *words):
        own = ["--inventory", ROOT / "inventory" / "lab", "--inventory", self.inventory]
        return self.verb(name, "--host", HOST, *words, *own)

    def let_out(self, *addresses):
        """Nothing new leaves but for these addresses; answers to who came in do."""
        rules = [
            "-F OUTPUT",
            "-A OUTPUT -o lo -j ACCEPT",
            "-A OUTPUT -m conntrack --ctstate ESTABLISHED -j ACCEPT",
        ]
        rules += [f"-A OUTPUT -d {address} -j ACCEPT" for address in addresses]
        for rule in [*rules, "-A OUTPUT -o eth0 -j REJECT"]:
            self.host.do("iptables", *rule.split())

    def reaches(self, address, port):
        code = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 3)"
        done = subprocess.run(
            ["docker", "exec", self.host.container, "python3", "-c", code, address, str(port)],
            capture_output=True,
            check=False,
            timeout=60,
        )
        return done.returncode == 0


@pytest.fixture(scope="module")
def gate(simulated, lab_hosts):
    """Another host with a proxy of Debian's that wants a login."""
    lab_hosts(HOST, GATE)
    gate = simulated(GATE)
    gate.do("apt-get", "update", "-q")
    gate.do("apt-get", "install", "-q", "-y", "--no-install-recommends", "tinyproxy", timeout=300)
    gate.do("sh", "-c", 'printf %s "$1" > /etc/tinyproxy/tinyproxy.conf', "put", TINYPROXY)
    gate.do("systemctl", "restart", "tinyproxy")
    return gate


@pytest.fixture(scope="module")
def box(verb, simulated, gate, tmp_path_factory):
    """A bare host whose only way out is the proxy."""
    box = Box(verb, simulated(HOST), tmp_path_factory.mktemp("way"))
    box.host.do("apt-get", "update", "-q")
    box.host.do("apt-get", "install", "-q", "-y", "--no-install-recommends", "iptables", timeout=300)
    box.host.do("apt-get", "clean")
    box.let_out(address(GATE))
    assert not box.reaches(address_of_depot(), 80)
    assert box.reaches(address(GATE), PORT)
    return box


def state():
    return json.loads((ROOT / ".lab" / "state.json").read_text())


def address(name):
    return state()["hosts"][name]["address"]


def address_of_depot():
    return state()["depot_address"]


def authority():
    return (ROOT / ".lab" / "depot" / "realm" / realm.AUTHORITY).read_text()


def through(password=PASSWORD, port=PORT):
    """The declaration that leads through the proxy, over TLS with an authority of one's own."""
    login = {"host": f"{DEPOT}:5443", "username": realm.USER, "password": realm.PASSWORD}
    return {
        "box_proxy": f"http://{NAME}:{password}@{address(GATE)}:{port}",
        "box_ca": authority(),
        "container_runtime_registries": [login],
    }


@pytest.mark.parametrize(
    ("over", "said"),
    [
        ({"password": "not-the-password"}, "wants another name and password than it was given"),
        ({"port": 3199}, "cannot be used: Connection refused"),
    ],
    ids=("another password", "nothing there"),
)
def test_a_proxy_that_does_not_work_is_named_and_nothing_is_changed(box, over, said):
    box.declare(*WITH_TLS, **through(**over))
    before = box.host.fingerprint()
    ran = box.run("provision")
    output = " ".join(ran.output.split())
    assert ran.status == 3, ran.output
    assert f"the proxy {address(GATE)}:{over.get('port', PORT)}" in output
    assert said in output
    assert over.get("password", PASSWORD) not in ran.output
    assert box.host.fingerprint() == before


def test_everything_comes_through_the_proxy_and_an_authority_is_declared_once(box, gate):
    box.declare(*WITH_TLS, **through())
    planned = box.run("plan", "--json")
    assert planned.status == 0, planned.output
    assert any("trusted authorities none -> sha256:" in one["text"] for one in planned.json["changes"])
    ran = box.run("provision", "--verbose")
    assert ran.status == 0, ran.output
    assert "Paris" in re.search(r"answered +(.+)", ran.output)[1]
    log = gate.do("cat", "/var/log/tinyproxy/tinyproxy.log")
    for asked in (
        "deb.debian.org",
        f"CONNECT {DEPOT}:443 ",
        f"CONNECT {DEPOT}:8343 ",
        f"CONNECT {DEPOT}:5443 ",
    ):
        assert asked in log, asked
    seen = box.host.do(
        "sh",
        "-c",
        "systemctl show docker.service; cat /proc/[0-9]*/cmdline | tr '\\0' ' '; journalctl --no-pager",
    )
    assert PASSWORD not in ran.output + seen


def test_again_nothing_changes(box):
    ran = box.run("provision", "--full", "--json")
    assert ran.status == 0, ran.output
    assert ran.json["hosts"][HOST]["changed"] == 0, ran.json["hosts"][HOST]["changes"]


def test_a_box_that_reaches_nothing_gets_everything_from_its_controller(box, gate):
    """Its image and weights are gone, its driver another; of the lab this machine knows addresses only."""
    box.let_out()
    assert not box.reaches(address(GATE), PORT)
    box.host.do("systemctl", "stop", "boxwright-smollm2")
    box.host.do(
        "sh", "-c", "docker image rm --force $(docker image ls --quiet); rm -rf /var/lib/boxwright/models/*"
    )
    asked = gate.do("cat", "/var/log/tinyproxy/tinyproxy.log")
    exchange = (DEPOT, address_of_depot())
    box.declare(exchange, box_proxy="controller", nvidia_driver_branch="595")
    ran = box.run("provision")
    assert ran.status == 0, ran.output
    assert "Paris" in re.search(r"answered +(.+)", ran.output)[1]
    driver = box.host.do("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader")
    assert driver.startswith("595.")
    assert gate.do("cat", "/var/log/tinyproxy/tinyproxy.log") == asked
    assert not box.reaches("127.0.0.1", 3129), "the tunnel has ended with the run"
    kept = box.host.do("find", "/usr/local/share/ca-certificates", "-name", "boxwright-*")
    assert kept == "", "what is declared no more is trusted no more"


def test_the_way_through_the_controller_is_no_change_by_itself(box):
    ran = box.run("provision", "--full", "--json")
    assert ran.status == 0, ran.output
    assert ran.json["hosts"][HOST]["changed"] == 0, ran.json["hosts"][HOST]["changes"]


def test_a_box_that_carries_no_tunnel_is_told_before_anything_is_changed(box):
    rule = "/etc/ssh/sshd_config.d/00-no-tunnels.conf"
    box.host.do("sh", "-c", f"echo 'AllowTcpForwarding no' > {rule}; systemctl reload ssh")
    before = box.host.fingerprint()
    try:
        ran = box.run("provision")
        assert box.host.fingerprint() == before
    finally:
        box.host.do("sh", "-c", f"rm {rule}; systemctl reload ssh")
    assert ran.status == 1, ran.output
    assert "AllowTcpForwarding" in ran.output
    assert HOST in ran.output
