"""Further ways in which a new release can fail, those that take longer; the one before it serves again."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "faults"))
from stand_in import image
from stand_in.box import DEPOT, ROOT, RUNS, TRIAL, registry, up

pytestmark = pytest.mark.lab

HOST = "failures1"
DRAFTING = {"speculative": {"method": "ngram", "tokens": 3}}
#: How the new release fails; what else is declared; what is said of it.
FAILURES = [
    ("broken", {}, {}, ["ended with exit status 1", "libcudart"]),
    (
        "hang",
        {"engine_stage_timeouts_s": {"loading": 5}},
        {},
        ["it has been loading for", "without getting on"],
    ),
    ("silent", {}, {}, ["the model is listed, but gave no answer", "EngineCore"]),
    ("other-name", {}, {}, ["it serves another, not smollm2"]),
    ("no-drafts", {}, DRAFTING, ["it drafted 120 tokens and none was accepted"]),
    ("small", {}, {}, ["it holds 64 tokens, and the plan promised"]),
]


@pytest.fixture(scope="module")
def box(verb, simulated, tmp_path_factory):
    with up(HOST, simulated, verb, tmp_path_factory.mktemp) as found:
        yield found


@pytest.fixture(scope="module")
def well(box):
    """The release that serves and must go on doing so."""
    return box.serves()


@pytest.mark.parametrize(("way", "variables", "declared", "said"), FAILURES, ids=[row[0] for row in FAILURES])
def test_a_release_that_does_not_serve_makes_way_for_the_one_before(
    box, well, way, variables, declared, said
):
    message = box.bring(variables, env={"STAND_IN": way}, **declared)
    for text in said:
        assert text in message
    assert f"The release before it, {well}, serves again." in message
    assert box.serves() == well


def test_a_port_that_somebody_has_taken_stops_nothing(box, well):
    before = box.do(*RUNS)
    box.do("systemd-run", "--unit=squatter", "python3", "-m", "http.server", "8001")
    try:
        message = box.bring(port=8001)
    finally:
        box.do("systemctl", "stop", "squatter")
    assert "8001" in message
    assert "squatter" in message or "python3" in message
    assert box.do(*RUNS) == before
    assert box.serves() == well


def test_a_port_that_is_taken_while_the_old_engine_ends_is_given_up(box, well):
    """Docker cannot publish it: the new engine does not begin, and the old one has its own port."""
    squatter = f"until test -e {TRIAL}; do sleep 0.1; done; exec python3 -m http.server 8001"
    box.do("systemd-run", "--unit=squatter", "sh", "-c", squatter)
    try:
        message = box.bring(port=8001)
    finally:
        box.do("systemctl", "stop", "squatter", check=False)
    assert "address already in use" in message or "port is already allocated" in message
    assert f"The release before it, {well}, serves again." in message
    assert box.serves() == well


def test_a_disk_that_is_full_while_an_image_is_pulled_stops_nothing(box, well, tmp_path):
    before = box.do(*RUNS)
    (tmp_path / "empty").mkdir()
    digest = image.push(registry(), tmp_path / "empty", "v0.30.0", padding=64 << 20)
    box.do("mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", "/var/lib/docker/tmp")
    try:
        message = box.bring(image=f"{DEPOT}/{image.NAME}:v0.30.0@{digest}")
    finally:
        box.do("umount", "--lazy", "/var/lib/docker/tmp")
    assert "the disk under Docker's data root is full" in message
    assert box.do(*RUNS) == before
    assert box.serves() == well


@pytest.fixture
def full_store(box):
    """What the releases lie on takes next to nothing more."""
    place = "/var/lib/boxwright/releases/smollm2"
    size = 4096 * (int(box.do("du", "--summarize", "--block-size=4096", place).split()[0]) + 24)
    box.do("cp", "--archive", place, "/root/store")
    box.do("mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", place)
    box.do("cp", "--archive", "/root/store/.", place)
    box.do("dd", "if=/dev/zero", f"of={place}/.filler", "bs=4096", check=False)
    yield
    box.do("umount", "--lazy", place)
    box.do("rm", "--recursive", "/root/store")


def test_a_disk_that_takes_no_release_stops_nothing(box, well, full_store):
    before = box.do(*RUNS)
    message = box.bring(env={"STAND_IN": "crash"})
    assert "no release can be made" in message
    assert "No space left on device" in message
    assert box.do(*RUNS) == before
    assert box.serves() == well


def test_docker_that_is_killed_while_the_new_engine_loads(box, well):
    killer = (
        f"until test -e {TRIAL}; do sleep 0.1; done; sleep 4; systemctl kill --signal=KILL docker.service"
    )
    box.do("systemd-run", "--unit=killer", "sh", "-c", killer)
    message = box.bring(env={"STAND_IN": "hang"})
    assert "while loading" in message
    assert f"The release before it, {well}, serves again." in message
    assert box.serves() == well


def test_a_release_and_its_link_that_were_removed_are_made_again_without_a_restart(box, well):
    before = box.do(*RUNS)
    store = "/var/lib/boxwright/releases/smollm2"
    box.do("rm", "--recursive", f"{store}/{well}")
    assert box.bring() is None
    assert (box.do(*RUNS), box.serves()) == (before, well)
    box.do("ln", "--symbolic", "--force", "--no-dereference", "nowhere", f"{store}/current")
    assert box.bring() is None
    assert (box.do(*RUNS), box.serves()) == (before, well)


def test_two_runs_at_once_end_with_one_of_what_they_declared(box, well, tmp_path):
    """Each waits for the other; what serves in the end is one of the two, and answers."""
    words = box.declare(env={"OTHER": "1"})
    runs = [
        subprocess.Popen(
            [ROOT / "invoke", "provision", "--host", HOST, *map(str, words)],
            cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        for _ in range(2)
    ]  # fmt: skip
    said = [run.communicate(timeout=600)[0] for run in runs]
    assert [run.returncode for run in runs] == [0, 0], said
    new = box.serves()
    assert new != well
    assert box.do("docker", "ps", "--quiet").count("\n") == 1
    assert box.bring() is None
    assert box.serves() == well


def test_a_host_that_is_rebooted_in_the_middle_starts_what_has_answered(box, well):
    words = box.declare(env={"STAND_IN": "hang"})
    run = subprocess.Popen(
        [ROOT / "invoke", "provision", "--host", HOST, *map(str, words)],
        cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        until = time.monotonic() + 300
        while box.release in ("", well):
            assert run.poll() is None, "the run ended before the new release was started"
            assert time.monotonic() < until
            time.sleep(1)
        box.host.restart()
    finally:
        run.kill()
        run.wait(30)
    until = time.monotonic() + 180
    while box.ask()[0] != 200 and time.monotonic() < until:
        time.sleep(1)
    assert box.serves() == well
    assert box.bring() is None
    assert box.serves() == well


def engines(box):
    """What is there of each deployment: containers that run, units, releases, keys."""
    return {
        "containers": sorted(box.do("docker", "ps", "--format", "{{.Names}}").split()),
        "units": sorted(
            box.do("sh", "-c", "cd /etc/systemd/system && ls | grep -E '^boxwright-(smollm2|two)'").split()
        ),
        "releases": sorted(box.do("ls", "/var/lib/boxwright/releases").split()),
    }


def test_two_that_share_a_card_one_renamed_one_dropped(box, well):
    half = {"gpu_memory_utilization": 0.4, "kv_cache_memory_bytes": None}
    weights = box.do("find", "/var/lib/boxwright/models", "-name", "*.safetensors")
    assert box.bring(None, {"name": "two", "port": 8001}, **half) is None
    names = ["boxwright-smollm2", "boxwright-two"]
    assert engines(box) == {
        "containers": names,
        "units": [f"{name}.service" for name in names],
        "releases": ["smollm2", "two"],
    }
    first = box.do(*RUNS)
    assert box.bring(None, {"name": "two-renamed", "port": 8001}, **half) is None
    names = ["boxwright-smollm2", "boxwright-two-renamed"]
    assert engines(box) == {
        "containers": names,
        "units": [f"{name}.service" for name in names],
        "releases": ["smollm2", "two-renamed"],
    }
    assert box.do(*RUNS) == first, "the one beside it went on"
    assert box.bring() is None
    assert engines(box) == {
        "containers": ["boxwright-smollm2"],
        "units": ["boxwright-smollm2.service"],
        "releases": ["smollm2"],
    }
    assert box.do("systemctl", "list-units", "--all", "--plain", "--no-legend", "boxwright-two*") == ""
    assert box.do("find", "/var/lib/boxwright/models", "-name", "*.safetensors") == weights
    assert box.serves() == well
