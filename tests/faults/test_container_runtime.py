"""Docker on a host as people leave it: each fault is named, changes nothing, and the next run converges."""

import io
import json
import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
import yaml

from boxwright.lab import realm
from boxwright.lab.store.layers import Layer
from boxwright.lab.store.registry import Registry, manifest

pytestmark = pytest.mark.lab

HOST = "runtime1"
ROOT = Path(__file__).resolve().parents[2]
STATE = ROOT / ".lab"
PRIVATE = "depot.boxwright.lab:5443"
IMAGE = f"{PRIVATE}/lab/nothing:1"
THEIRS = {"log-opts": {"max-size": "7m"}, "labels": ["owner=somebody"]}
ROLES = ("preflight", "nvidia_driver", "container_runtime", "gpu_tuning")
CONFIG, DROP_IN = "/etc/docker/daemon.json", "/etc/systemd/system/docker.service.d/somebody.conf"
LOG = {"host": PRIVATE, "username": realm.USER, "password": realm.PASSWORD}


class Box:
    """The host, and the roles run on it as a playbook of a person's own would."""

    def __init__(self, host, folder):
        self.host, self.folder = host, folder
        self.do = host.do

    def run(self, *roles, tasks="main", words=(), **variables):
        steps = [{"ansible.builtin.include_role": {"name": role}} for role in roles]
        if tasks != "main":
            steps[-1]["ansible.builtin.include_role"]["tasks_from"] = tasks
        return self.play(steps, *words, **variables)

    def play(self, steps, *words, **variables):
        book = self.folder / "play.yml"
        play = {"hosts": HOST, "become": True, "gather_facts": False, "tasks": steps}
        book.write_text(yaml.safe_dump([play]))
        inventory = self.folder / "hosts.yml"
        inventory.write_text(yaml.safe_dump({"lab": {"hosts": {HOST: {"box_deployments": [], **variables}}}}))
        program, lab = Path(sys.executable).with_name("ansible-playbook"), ROOT / "inventory" / "lab"
        done = subprocess.run(
            [program, "-i", lab, "-i", inventory, book, *words],
            cwd=ROOT,
            env={**os.environ, "BOXWRIGHT_ROOT": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
            timeout=900,
            stdin=subprocess.DEVNULL,
        )
        return done.returncode, " ".join((done.stdout + done.stderr).split())

    def converge(self, **variables):
        status, output = self.run("preflight", "container_runtime", **variables)
        assert status == 0, output
        return output

    def refused(self, *said, **variables):
        """A run that fails with these words and leaves everything as it was; its output."""
        before = self.state()
        status, output = self.run("preflight", "container_runtime", **variables)
        assert status != 0, output
        assert "Traceback" not in output
        for text in said:
            assert text in output, output[-4000:]
        assert self.state() == before
        return output

    def state(self):
        """What a run might have changed; the daemon's own start among it."""
        started = self.do("systemctl", "show", "--property", "InvocationID", "docker.service", check=False)
        return {**self.host.fingerprint(), "docker": started}

    def put(self, path, text):
        self.do("mkdir", "-p", str(Path(path).parent))
        subprocess.run(
            ["docker", "exec", "-i", self.host.container, "tee", path],
            input=text.encode(), check=True, capture_output=True, timeout=60,
        )  # fmt: skip

    def config(self):
        return json.loads(self.do("cat", CONFIG))


@pytest.fixture(scope="module")
def box(simulated, lab_hosts, tmp_path_factory):
    """A bare host."""
    lab_hosts(HOST)
    return Box(simulated(HOST), tmp_path_factory.mktemp("runtime"))


@pytest.fixture(scope="module")
def bare(box):
    """What is on the host before any role was run on it, settings of somebody's for Docker among it."""
    box.put(CONFIG, "\ufeff" + json.dumps(THEIRS, indent=2))
    box.do("apt-get", "update", "-q")
    return box.host.state()


@pytest.fixture(scope="module")
def provisioned(box, bare):
    """The host with driver, Docker and limits of its card; a container of somebody's runs."""
    status, output = box.run(*ROLES, gpu_tuning_max_clock_mhz=2100)
    assert status == 0, output
    assert list(box.config())[:2] == list(THEIRS)
    assert {key: box.config()[key] for key in THEIRS} == THEIRS
    box.do(
        "sh", "-c",
        "tar --create --dereference --directory=/ bin/sh bin/sleep lib/x86_64-linux-gnu/libc.so.6 "
        "lib64/ld-linux-x86-64.so.2 | docker import - their:shell",
    )  # fmt: skip
    return box


LISTENER = """\
import os, socket, sys, time
os.makedirs(os.path.dirname(sys.argv[1]), exist_ok=True)
with socket.socket(socket.AF_UNIX) as listener:
    listener.bind(sys.argv[1])
    listener.listen()
    time.sleep(600)
"""


def listening(box, path):
    """A unit of somebody's that listens on a socket."""
    box.put("/run/listener.py", LISTENER)
    box.do("systemd-run", "--quiet", "--unit=somebodys", "/usr/bin/python3", "/run/listener.py", path)
    box.do("sh", "-c", f"until test -S {path}; do sleep 0.1; done")


def test_a_docker_that_is_not_the_packages_own_is_refused(box):
    box.put("/usr/bin/docker", '#!/bin/sh\nexec /usr/bin/podman "$@"\n')
    box.do("chmod", "755", "/usr/bin/docker")
    listening(box, "/run/user/1000/docker.sock")
    try:
        box.refused("docker-is-podman", "podman-docker", "docker-rootless", "dockerd-rootless-setuptool.sh")
        box.do("rm", "/usr/bin/docker")
        for name in ("docker", "dockerd"):
            box.put(f"/snap/bin/{name}", "#!/bin/sh\nexit 1\n")
            box.do("chmod", "755", f"/snap/bin/{name}")
        box.refused("docker-from-snap", "snap remove docker")
    finally:
        box.do("systemctl", "stop", "somebodys")
        box.do("rm", "-rf", "/snap", "/run/user/1000", "/usr/bin/docker")
    box.put("/usr/local/bin/dockerd", "#!/bin/sh\nexit 1\n")
    box.do("chmod", "755", "/usr/local/bin/dockerd")
    listening(box, "/run/docker.sock")
    try:
        box.refused(
            "docker-not-from-packages",
            "/usr/local/bin/dockerd",
            "docker-of-another-unit",
            "somebodys.service",
        )
    finally:
        box.do("systemctl", "stop", "somebodys")
        box.do("rm", "-f", "/usr/local/bin/dockerd", "/run/docker.sock")


def test_settings_that_are_no_json_are_left_alone(provisioned):
    box, whole = provisioned, provisioned.do("cat", CONFIG)
    line = next(number for number, text in enumerate(whole.splitlines(), 1) if '"7m"' in text)
    box.put(CONFIG, whole.replace('"7m"', '"7m",,'))
    try:
        box.refused(
            "docker-settings-unusable", f"{CONFIG}:{line}", "cannot be kept as it is", "dockerd --validate"
        )
    finally:
        box.put(CONFIG, whole)
    assert "changed=0" in box.converge()


def test_a_setting_of_the_units_own_is_named_with_its_line(provisioned):
    box = provisioned
    line = box.do("sh", "-c", "grep ^ExecStart= /usr/lib/systemd/system/docker.service").strip()
    box.put(DROP_IN, f"[Service]\nExecStart=\n{line} --log-level=warn\n")
    box.do("systemctl", "daemon-reload")
    wanted = {"container_runtime_daemon_config": {"log-level": "info"}}
    box.refused("log-level, which --log-level sets too", f"{DROP_IN}:3", "one of the two", **wanted)
    box.do("rm", DROP_IN)
    box.do("systemctl", "daemon-reload")
    box.do("docker", "run", "--detach", "--name", "theirs", "their:shell", "/bin/sleep", "600")
    output = box.converge(**wanted)
    assert "Docker is being restarted; this stops theirs" in output
    assert box.config()["log-level"] == "info"
    box.converge()
    assert "log-level" not in box.config(), "what is declared no more goes back"
    assert box.config()["log-opts"] == THEIRS["log-opts"]


def test_a_data_root_does_not_move_away_from_images(provisioned):
    wanted = {"container_runtime_daemon_config": {"data-root": "/srv/docker"}}
    provisioned.refused("data-root-moves", "lie in /var/lib/docker", "rsync -aHAX", **wanted)


def test_settings_that_somebody_emptied_are_there_again(provisioned):
    box, whole = provisioned, provisioned.do("cat", CONFIG)
    box.put(CONFIG, "")
    box.converge()
    assert box.config()["runtimes"] == json.loads(whole)["runtimes"]
    assert "changed=0" in box.converge()
    box.put(CONFIG, whole)


def test_a_mirror_that_is_declared_serves_and_a_link_to_the_settings_stays_one(provisioned, image):
    box, place = provisioned, "/srv/docker/daemon.json"
    box.do("mkdir", "-p", "/srv/docker")
    box.do("mv", CONFIG, place)
    box.do("ln", "-s", place, CONFIG)
    mirror = "http://depot.boxwright.lab:5000"
    wanted = {"container_runtime_daemon_config": {"registry-mirrors": [mirror]}}
    box.converge(**wanted)
    assert box.do("readlink", CONFIG).strip() == place
    assert json.loads(box.do("cat", place))["registry-mirrors"] == [mirror]
    assert mirror in box.do("docker", "info", "--format", "{{json .RegistryConfig.Mirrors}}")
    # Docker's own registry cannot be reached from the lab: what comes by this name comes from the mirror.
    box.do("docker", "pull", "nothing:1")
    box.do("docker", "image", "rm", "nothing:1")
    assert "changed=0" in box.converge(**wanted)
    box.converge()
    assert "registry-mirrors" not in json.loads(box.do("cat", place))
    assert mirror not in box.do("docker", "info", "--format", "{{json .RegistryConfig.Mirrors}}")
    box.do("mv", place, CONFIG)
    box.do("rm", "-r", "/srv/docker")


@pytest.fixture(scope="module")
def image():
    """An image of one small file in the depot's registry."""
    state = json.loads((STATE / "state.json").read_text())
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        tar.addfile(tarfile.TarInfo("nothing"))
    layer = buffer.getvalue()
    part = Layer.of(lambda: iter([layer]))
    config = json.dumps(
        {
            "architecture": "amd64",
            "os": "linux",
            "config": {},
            "rootfs": {"type": "layers", "diff_ids": [part.digest]},
        }
    ).encode()
    # By the second name Docker looks for an image that is called by no registry's.
    for name in ("lab/nothing", "library/nothing"):
        registry = Registry(f"http://127.0.0.1:{state['ports']['registry']}", name)
        registry.put_layer(part)
        registry.put_bytes(config)
        registry.put_manifest("1", manifest(config, [part]))
    return IMAGE


def test_a_private_registry_with_an_authority_and_a_login(provisioned, image):
    box = provisioned
    authority = (STATE / "depot" / "realm" / realm.AUTHORITY).read_text()
    wrong = {**LOG, "ca": authority, "password": "not-the-password"}
    output = box.refused(
        "does not accept the login of lab", "container_runtime_registries",
        container_runtime_registries=[wrong],
    )  # fmt: skip
    assert "not-the-password" not in output
    box.refused(f"certificate of {PRIVATE} is not trusted", "ca: …", container_runtime_registries=[LOG])
    status, output = box.run(
        "preflight",
        "container_runtime",
        words=["-vvv"],
        container_runtime_registries=[{**LOG, "ca": authority}],
    )
    assert status == 0, output
    assert realm.PASSWORD not in output
    assert "600 root" in box.do("stat", "-c", "%a %U", "/root/.docker/config.json")
    status, output = box.play([{"container_image": {"image": image}}])
    assert status == 0, output
    box.do("docker", "image", "rm", image)
    box.do("docker", "pull", image)
    assert realm.PASSWORD not in box.do(
        "sh", "-c", "cat /proc/[0-9]*/cmdline | tr '\\0' ' '; journalctl --no-pager"
    )
    assert "changed=0" in box.converge(container_runtime_registries=[{**LOG, "ca": authority}])
    box.do("docker", "image", "rm", image)
    box.converge()
    assert (
        box.do(
            "sh", "-c", f"ls /etc/docker/certs.d/{PRIVATE} /etc/boxwright/registry-logins.json", check=False
        )
        == ""
    )
    status, output = box.play([{"container_image": {"image": image}}])
    assert status != 0
    assert "is not trusted here" in output, "the login and the authority are gone"


def knows_cdi(box):
    """Whether the host's Docker does: from 25 on, which Debian 12 does not have."""
    return int(box.do("docker", "version", "--format", "{{.Server.Version}}").split(".")[0]) >= 25


@pytest.fixture
def describing(provisioned):
    """The host, where its containers get cards by their description."""
    if not knows_cdi(provisioned):
        pytest.skip("this Docker is older than CDI: another test shows how its containers get cards")
    return provisioned


def test_a_docker_older_than_cdi_gives_cards_by_its_own_option(provisioned):
    if knows_cdi(provisioned):
        pytest.skip("this Docker knows CDI")
    assert provisioned.do("sh", "-c", "ls /etc/cdi /run/cdi 2>/dev/null | grep boxwright", check=False) == ""
    seen = ("their:shell", "sh", "-c", "test -c /dev/nvidia0 && test -c /dev/nvidiactl && echo there")
    assert provisioned.do("docker", "run", "--rm", "--gpus", "all", *seen).strip() == "there"
    assert provisioned.do("docker", "run", "--rm", *seen, check=False).strip() == ""
    assert "changed=0" in provisioned.converge()


def test_another_description_of_the_cards_is_named(describing):
    box = describing
    box.do("cp", "/etc/cdi/nvidia.yaml", "/etc/cdi/old.yaml")
    box.refused("/etc/cdi/old.yaml describes the cards too", "Remove it")
    box.do("rm", "/etc/cdi/old.yaml")
    assert "changed=0" in box.converge()


def test_without_the_toolkits_service_the_cards_are_described_at_boot_before_docker(describing):
    box = describing
    units = "/etc/systemd/system/nvidia-cdi-refresh"
    box.do("systemctl", "disable", "--now", "nvidia-cdi-refresh.path", "nvidia-cdi-refresh.service")
    box.do("sh", "-c", f"rm -f {units}.path {units}.service /run/cdi/*; systemctl daemon-reload")
    box.converge()
    right = box.do("cat", "/etc/cdi/nvidia.yaml")
    box.put("/etc/cdi/nvidia.yaml", right.replace("580.", "570."))
    box.host.restart()
    box.do("sh", "-c", "until systemctl is-active --quiet docker; do sleep 0.5; done")
    assert box.do("cat", "/etc/cdi/nvidia.yaml") == right
    order = box.do("systemctl", "show", "--value", "--property", "Before", "boxwright-cdi-refresh.service")
    assert "docker.service" in order.split()
    assert "changed=0" in box.converge()


def test_uninstall_brings_back_what_was_there_before(provisioned, bare):
    """Images, containers and volumes stay: they are nobody's to take but their owner's."""
    box = provisioned
    for role in reversed(ROLES[1:]):
        status, output = box.run("preflight", role, tasks="uninstall", gpu_tuning_max_clock_mhz=2100)
        assert status == 0, output
    assert box.config() == THEIRS
    left = box.do(
        "find", "/etc/systemd/system", "/etc/docker", "/etc/cdi", "-name", "*boxwright*", check=False
    )
    assert left == ""
    after = box.host.state()
    # Its settings are theirs again; how they were indented is not.
    bare["files"] = [line for line in bare["files"] if not line.startswith(f"{CONFIG} ")]
    # Which services run just now depends on who is logged in.
    lost = {what: sorted(set(bare[what]) - set(after[what])) for what in bare if what != "services"}
    assert {what: found for what, found in lost.items() if found} == {}
    # Docker's own packages are removed and not purged, for that would take images along.
    data = re.compile(r"(docker|containerd)\S* \S+ rc")
    for what in ("packages", "holds", "asked for by name", "sources", "units", "modules"):
        more = [line for line in after[what] if line not in bare[what] and not data.match(line)]
        assert (what, more) == (what, [])
