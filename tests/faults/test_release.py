"""Ways in which a new release can fail: each leaves the one before it serving."""

import json
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from stand_in import image
from stand_in.box import DEPOT, RUNS, UNIT, up

pytestmark = pytest.mark.lab

HOST = "release1"


@pytest.fixture(scope="module")
def box(verb, simulated, tmp_path_factory):
    """A box on which the engine of the tests serves."""
    with up(HOST, simulated, verb, tmp_path_factory.mktemp) as found:
        yield found


@pytest.fixture(scope="module")
def well(box):
    """The release that serves and must go on doing so."""
    return box.serves()


FAILURES = [
    ("crash", {}, ["ended with exit status 1", "CUDA out of memory"]),
    ("ends", {}, ["ended with exit status 0"]),
    ("garbled", {}, ["asked what this checkpoint has answered before"]),
]


@pytest.mark.parametrize(("way", "variables", "said"), FAILURES, ids=[row[0] for row in FAILURES])
def test_a_release_that_does_not_serve_makes_way_for_the_one_before(box, well, way, variables, said):
    message = box.bring(variables, env={"STAND_IN": way})
    for text in said:
        assert text in message
    assert f"The release before it, {well}, serves again." in message
    assert box.serves() == well
    failed = message.split("release ")[1].split(" ")[0]
    assert failed != well
    kept = json.loads(box.do("cat", f"/var/lib/boxwright/releases/smollm2/{failed}/failure.json"))
    assert said[0] in kept["what"]
    assert box.key not in message


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"image": f"{DEPOT}/{image.NAME}:v0.30.0"}, "the registry has no"),
        ({"image": f"{DEPOT}/{image.NAME}:{image.TAG}@sha256:{'0' * 64}"}, "the registry has no"),
        ({"extra_args": {"max-num-queued-reqs": 8}}, "unrecognized arguments: --max-num-queued-reqs"),
    ],
    ids=["image missing", "digest gone", "option removed"],
)
def test_what_cannot_begin_stops_nothing(box, well, changes, said):
    before = box.do(*RUNS)
    message = box.bring(**changes)
    assert said in message
    assert box.do(*RUNS) == before
    assert box.serves() == well


@pytest.fixture
def edited(box, well):
    """By hand: the unit was edited, the engine started by it, and the unit put back as it was."""

    def edit(was, now):
        box.do("sed", "--in-place", f"s/{was}/{now}/", f"/etc/systemd/system/{UNIT}")
        box.do("systemctl", "daemon-reload")

    edit("--max-num-seqs 4", "--max-num-seqs 3")
    box.do("systemctl", "restart", UNIT)
    edit("--max-num-seqs 3", "--max-num-seqs 4")
    until_it_answers(box)


def until_it_answers(box):
    until = time.monotonic() + 60
    while box.ask()[0] != 200:
        assert time.monotonic() < until
        time.sleep(0.5)


def test_what_runs_otherwise_under_the_same_unit_is_seen_and_mended(box, well, edited, verb):
    ran = verb("verify", "--host", HOST, *box.declare())
    assert ran.status == 1, ran.output
    assert "its container's arguments differ: --max-num-seqs 3 instead of --max-num-seqs 4" in " ".join(
        ran.output.split()
    )
    before = box.do(*RUNS)
    assert box.bring() is None
    assert box.do(*RUNS) != before
    assert "--max-num-seqs 4" in " ".join(
        json.loads(box.do("docker", "inspect", "boxwright-smollm2"))[0]["Config"]["Cmd"]
    )
    assert box.serves() == well


def test_what_was_only_restarted_by_hand_is_left_alone(box, well):
    before = box.do(*RUNS)
    box.do("systemctl", "restart", UNIT)
    until_it_answers(box)
    restarted = box.do(*RUNS)
    assert restarted != before
    assert box.bring() is None
    assert box.do(*RUNS) == restarted
    assert box.serves() == well


def test_a_file_beside_the_unit_that_starts_something_else_stops_nothing(box, well):
    place = f"/etc/systemd/system/{UNIT}.d/override.conf"
    before = box.do(*RUNS)
    text = "[Service]\\nExecStart=\\nExecStart=/usr/bin/docker run other\\n"
    box.do("sh", "-c", f"mkdir -p {place.rpartition('/')[0]} && printf '{text}' >{place}")
    box.do("systemctl", "daemon-reload")
    try:
        message = box.bring(env={"STAND_IN": "crash"})
    finally:
        box.do("rm", "-r", place.rpartition("/")[0])
        box.do("systemctl", "daemon-reload")
    assert f"{place} has systemd start something else than its unit says" in message
    assert box.do(*RUNS) == before
    assert box.serves() == well
