"""Ways in which a new release can fail: each leaves the one before it serving."""

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from stand_in import image
from stand_in.box import DEPOT, RUNS, up

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
        ({"extra_args": {"max-num-queued-reqs": 8}}, "unrecognized arguments: --max-num-queued-reqs"),
    ],
    ids=["image missing", "option removed"],
)
def test_what_cannot_begin_stops_nothing(box, well, changes, said):
    before = box.do(*RUNS)
    message = box.bring(**changes)
    assert said in message
    assert box.do(*RUNS) == before
    assert box.serves() == well
