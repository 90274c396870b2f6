"""Ways to a box that are not the plain one, and what is said where they are blocked."""

import json
import os
import pty
import re
import select
import time
from pathlib import Path

import pytest
import yaml
from ansible.parsing.vault import VaultLib, VaultSecret

from boxwright.spec.inventory import load

pytestmark = pytest.mark.lab

ROOT = Path(__file__).resolve().parents[2]
HOST, GATE = "lab2", "lab1"
KEY, TOKEN, PASSWORD = "sk-planted-0123456789abcdef0123456789", "hf_plantedtoken0123456789", "plantedpassword"
PRIVATE = "fd00:b0b::10"
RELEASE = {"trixie": "13", "bookworm": "12"}


@pytest.fixture(scope="module")
def box(verb, simulated, lab_hosts):
    """A bare host, and another one on the way to it."""
    lab_hosts(HOST, GATE, keep=True)
    ran = verb("facts", "--host", HOST, "--host", GATE, "--json")
    assert ran.status == 0, ran.output
    return simulated(HOST)


@pytest.fixture(scope="module")
def gate(box, simulated):
    return simulated(GATE)


@pytest.fixture
def deployment():
    declared = Path("inventory/lab/group_vars/serving.yml").read_text()
    return yaml.safe_load(declared)["box_deployments"][0]


@pytest.fixture
def unchanged(box):
    """The host is as it was when the test is over."""
    before = box.fingerprint()
    yield box
    assert box.fingerprint() == before


@pytest.fixture
def way(tmp_path):
    """An inventory of the host alone, and how ssh reaches it. Returns --inventory words."""

    def build(config="", **variables):
        name = f"way{len(list(tmp_path.iterdir()))}"
        directory = tmp_path / name
        directory.mkdir()
        lab = (ROOT / ".lab" / "ssh_config").read_text()
        (directory / "config").write_text(config + "\n" + lab)
        known = {"ansible_ssh_common_args": f"-F {directory}/config", "ansible_user": "ops", **variables}
        (directory / "hosts.yml").write_text(yaml.safe_dump({"all": {"hosts": {"box9": known}}}))
        return ["--inventory", directory / "hosts.yml"]

    return build


def in_terminal(password, *words):
    """Run a verb in a terminal, answering its one question; its status and what was shown."""
    child, terminal = pty.fork()
    if not child:
        os.chdir(ROOT)
        os.execv(ROOT / "invoke", [str(ROOT / "invoke"), *map(str, words)])
    shown, asked, until = b"", False, time.monotonic() + 300
    while time.monotonic() < until:
        if not select.select([terminal], [], [], 1)[0]:
            continue
        try:
            more = os.read(terminal, 4096)
        except OSError:
            break
        if not more:
            break
        shown += more
        if not asked and b"password on the box: " in shown:
            os.write(terminal, password.encode() + b"\n")
            asked = True
    _, status = os.waitpid(child, 0)
    os.close(terminal)
    return os.waitstatus_to_exitcode(status), shown.decode()


def test_check_tells_everything_changes_nothing_and_shows_no_secret(
    verb, unchanged, over_lab, deployment, request
):
    control = ROOT / ".lab" / "depot" / "control" / "hub.json"
    control.write_text(json.dumps({"users": {TOKEN: "ann"}}))
    request.addfinalizer(control.unlink)
    declared = over_lab(
        HOST,
        box_hub={"endpoint": "http://depot.boxwright.lab:8300", "token": TOKEN},
        box_deployments=[{**deployment, "api_key": KEY}],
        container_runtime_daemon_config={
            "insecure-registries": ["depot.boxwright.lab:5000"],
            "proxies": {
                "http-proxy": f"http://me:{PASSWORD}@192.0.2.9:3128",
                "no-proxy": "depot.boxwright.lab",
            },
        },
    )
    ran = verb("provision", "--host", HOST, "--check", "--verbose", *declared)
    assert ran.status == 0, ran.output
    assert re.search(rf"{HOST}: [1-9][0-9]* changes would be made; nothing was done", ran.output)
    for role in ("nvidia_driver", "container_runtime", "gpu_tuning", "model_weights", "engine"):
        assert re.search(rf"{role} +[1-9][0-9]* changed", ran.output), role
    for told in (
        "+URIs: http://depot.boxwright.lab/compute/cuda/repos/",
        "+install nvidia-driver-cuda 580.",
        "+write /etc/modprobe.d/boxwright-nvidia.conf",
        "+Pin-Priority: 990",
        '+    "insecure-registries": [',
        "+install docker",
        "6 files (271.2 MB) would be fetched",
        "smollm2: API key",
    ):
        assert told in ran.output, told
    for secret in (KEY, TOKEN, PASSWORD):
        assert secret not in ran.output


def test_shims_that_come_first_on_path_are_passed_by(verb, unchanged, request):
    """As pyenv leaves them: programs named python3 that end with an error."""
    shim = "printf '#!/bin/sh\\necho shim: version not installed >&2\\nexit 127\\n' > $1 && chmod 755 $1"
    places = ["/usr/local/bin/python3", "/usr/local/bin/python", "/home/ops/.local/bin/python3"]
    unchanged.do("mkdir", "-p", "/home/ops/.local/bin")
    request.addfinalizer(lambda: unchanged.do("rm", "-f", *places))
    for place in places:
        unchanged.do("sh", "-c", shim, "plant", place)
    assert "shim" in unchanged.do("sh", "-c", "PATH=/usr/local/bin:$PATH python3 2>&1 || true")
    ran = verb("plan", "--host", HOST, "--json")
    assert ran.status == 0, ran.output
    assert "shim" not in ran.output
    unchanged.do("rm", "-f", *places)


def test_a_host_without_python_gets_it_and_only_to_provision(verb, box, over_lab, deployment):
    kept = ["python3", "python3-venv", "python3-apt"]
    box.do("apt-get", "purge", "-q", "-y", "python3-minimal", timeout=300)
    too_large = [{**deployment, "model": "qwen3.8-27b", "context": 4096}]
    allowed = over_lab(HOST, box_deployments=too_large)
    try:
        said = [verb("plan", "--host", HOST), verb("provision", "--host", HOST, "--check")]
        assert box.do("sh", "-c", "test -e /usr/bin/python3 || echo absent") == "absent\n"
        for ran in said:
            assert ran.status == 1, ran.output
            assert "there is no Python on the box" in ran.output
            assert "apt-get install python3" in ran.output
        # What is declared cannot work, and that is found out only once the host was read.
        ran = verb("provision", "--host", HOST, *allowed)
        assert ran.status == 3, ran.output
        assert "there is no Python yet: apt-get installs python3" in ran.output
        assert "python3 installed" in ran.output
    finally:
        box.do("apt-get", "install", "-q", "-y", "--no-install-recommends", *kept, timeout=300)


def test_a_clock_that_is_years_behind_is_told_before_anything_is_changed(verb, unchanged, request):
    """No container has a clock of its own: the host's Python says what a host's clock would."""
    (site,) = unchanged.do("sh", "-c", "ls /etc/python3.*/sitecustomize.py").split()
    unchanged.do("cp", "-p", site, f"{site}.kept")
    back = ["mv", f"{site}.kept", site]
    request.addfinalizer(lambda: unchanged.do(*back, check=False))
    shift = "import time\n_now = time.time\ntime.time = lambda: _now() - 2800 * 86400\n"
    unchanged.do("sh", "-c", 'printf "%s" "$1" >> "$2"', "plant", shift, site)
    ran = verb("provision", "--host", HOST)
    unchanged.do(*back)
    assert ran.status == 3, ran.output
    assert "clock-is-wrong" in ran.output
    assert re.search(r"the host's clock says 20\d\d-.* UTC, and this machine's 20\d\d-", ran.output)
    assert "timedatectl set-ntp true" in ran.output
    told = verb("explain", "clock-is-wrong")
    assert told.status == 0
    assert "certificate" in told.output


@pytest.fixture(scope="module")
def users(box):
    """A user whom sudo asks for a password, and one who may not use it."""
    for name, rule in (("asked", "asked ALL=(ALL) ALL"), ("barred", "")):
        # As a test that was stopped left it.
        box.do("userdel", "--force", "--remove", name, check=False)
        box.do("useradd", "--create-home", "--shell", "/bin/bash", name)
        box.do("sh", "-c", 'echo "$1:$2" | chpasswd', "set", name, PASSWORD)
        box.do("sh", "-c", 'cp -r /home/ops/.ssh "/home/$1/" && chown -R "$1:" "/home/$1/.ssh"', "key", name)
        if rule:
            box.do("sh", "-c", 'echo "$2" > "/etc/sudoers.d/$1"', "rule", name, rule)
    yield
    box.do("rm", "-f", "/etc/sudoers.d/asked")
    for name in ("asked", "barred"):
        # A connection that is kept open is the user's.
        box.do("pkill", "-KILL", "-u", name, check=False)
        box.do("userdel", "--force", "--remove", name)


def address(name):
    listed = (ROOT / ".lab" / "ssh_config").read_text()
    return re.search(rf"Host {name}\n +HostName (\S+)", listed)[1]


def test_sudo_that_wants_a_password_says_how_to_give_it(verb, users, way):
    ran = verb("facts", "--host", "box9", *way(ansible_host=HOST, ansible_user="asked"))
    assert ran.status == 1, ran.output
    assert "sudo asks for a password there" in ran.output
    assert "--ask-become-pass" in ran.output
    provisioned = verb("provision", "--host", "box9", *way(ansible_host=HOST, ansible_user="asked"))
    assert provisioned.status == 1, provisioned.output
    assert "--ask-become-pass" in provisioned.output


def test_the_password_is_asked_for_in_the_terminal(users, way, suite):
    inventory = way(ansible_host=HOST, ansible_user="asked")
    status, shown = in_terminal(PASSWORD, "facts", "--host", "box9", "--ask-become-pass", *inventory)
    assert status == 0, shown
    assert f"debian {RELEASE[suite]}" in shown
    assert PASSWORD not in shown
    status, shown = in_terminal("wrong", "facts", "--host", "box9", "--ask-become-pass", *inventory)
    assert status == 1, shown
    assert "not the one that sudo wants" in shown


def test_the_password_comes_from_a_vault(verb, users, way, tmp_path, monkeypatch):
    (tmp_path / "vault").write_text("the vault's own\n")
    vault = VaultLib([("default", VaultSecret(b"the vault's own"))])
    inventory = way(ansible_host=HOST, ansible_user="asked")
    variables = inventory[1].parent / "host_vars" / "box9.yml"
    variables.parent.mkdir()
    hidden = vault.encrypt(PASSWORD).decode().rstrip().replace("\n", "\n  ")
    variables.write_text(f"ansible_become_password: !vault |\n  {hidden}\n")
    monkeypatch.setenv("ANSIBLE_VAULT_PASSWORD_FILE", str(tmp_path / "vault"))
    ran = verb("facts", "--host", "box9", *inventory)
    assert ran.status == 0, ran.output
    assert PASSWORD not in ran.output


def test_a_user_who_may_not_use_sudo(users, way):
    inventory = way(ansible_host=HOST, ansible_user="barred")
    status, shown = in_terminal(PASSWORD, "facts", "--host", "box9", "--ask-become-pass", *inventory)
    assert status == 1, shown
    assert "the user may not use sudo there" in shown
    assert "usermod -aG sudo" in shown


@pytest.fixture(scope="module")
def private(box, gate):
    """The host has an address that only the gate reaches, and it is an IPv6 one."""
    for host, own in ((box, PRIVATE), (gate, f"{PRIVATE}1")):
        host.do("sh", "-c", "echo 0 > /proc/sys/net/ipv6/conf/eth0/disable_ipv6")
        host.do("ip", "-6", "address", "replace", f"{own}/64", "dev", "eth0", "nodad")


def behind(jump, address=PRIVATE):
    """The lines of a configuration that go through a jump host; the host's key is not the question here."""
    key = ROOT / ".lab" / "id_ed25519"
    return (
        f"Host {address}\n ProxyJump {jump}\n HostKeyAlias {HOST}\n UserKnownHostsFile /dev/null\n"
        f" StrictHostKeyChecking no\n IdentityFile {key}\n"
    )


def test_an_ipv6_host_behind_a_jump_host(verb, private, way, tmp_path):
    inventory = way(behind(GATE), ansible_host=PRIVATE)
    ran = verb("facts", "--host", "box9", "--json", *inventory)
    assert ran.status == 0, ran.output
    assert PRIVATE in ran.json["addresses"], ran.json["addresses"]
    # Without the way through the gate nothing answers: no connection that is still open is taken for it.
    blocked = verb("facts", "--host", "box9", *way("", ansible_host=PRIVATE))
    assert blocked.status == 1, blocked.output
    assert "the box does not answer" in blocked.output


def test_init_by_an_ipv6_address_and_a_configuration_of_its_own(verb, private, way, tmp_path):
    config = way(behind(GATE))[1].parent / "config"
    own = tmp_path / "own"
    own.mkdir()
    (own / "group_vars").mkdir()
    lab = load([ROOT / "inventory" / "lab"]).variables(HOST)
    kept = {key: value for key, value in lab.items() if key.startswith(("box_hub", "container_runtime"))}
    (own / "group_vars" / "all.yml").write_text(yaml.safe_dump(kept))
    served = ["--model", "smollm2", "--image", "depot.boxwright.lab:5000/vllm/vllm-openai:v0.32.0"]
    words = ["--host", f"ops@[{PRIVATE}]:22", "--ssh-config", config, "--name", "far", "--inventory", own]
    ran = verb("init", *words, *served, "--json")
    assert ran.status == 0, ran.output
    assert ran.json["address"]["ansible_host"] == PRIVATE
    # The file that was written reaches it as well.
    assert verb("facts", "--host", "far", "--inventory", own).status == 0


def test_the_jump_host_is_named_where_it_is_what_fails(verb, private, way):
    """What ssh says of it differs by its release: a port that is closed, or a connection that ended."""
    closed = verb("facts", "--host", "box9", *way(behind(f"ops@{address(GATE)}:2"), ansible_host=PRIVATE))
    assert closed.status == 1, closed.output
    assert re.search(rf"the jump host (ops@)?\[?{re.escape(address(GATE))}", closed.output), closed.output
    nowhere = f"{PRIVATE}99"
    lost = verb("facts", "--host", "box9", *way(behind(GATE, nowhere), ansible_host=nowhere))
    assert lost.status == 1, lost.output
    assert f"the jump host {GATE}" in lost.output
    assert "reaches its port 22" in lost.output
