"""Weights on simulated hosts: one copy leaves the hub for three boxes, and whatever breaks is mended."""

import json
import threading
import time
from pathlib import Path

import pytest
import yaml

from boxwright.cli.ansible_run import play
from boxwright.lab.store.servers.control import Fault, Settings, write

pytestmark = pytest.mark.lab

ROOT = Path(__file__).resolve().parents[2]
HOSTS = ["lab1", "lab2", "lab3"]
LOG, CONTROL = ROOT / ".lab/depot/log/hub.jsonl", ROOT / ".lab/depot/control/hub.json"
STORE = "/var/lib/boxwright/models"
#: Bytes a second of the line to the hub that all boxes share, where they are held against each other.
LINE = 14_000_000
#: What may be on the line when a fetch is killed: sent by the hub, read by nobody.
IN_FLIGHT = 16_000_000


@pytest.fixture(scope="module", autouse=True)
def boxes(verb, simulated):
    """Three simulated hosts without weights."""
    ran = verb("lab.up", "--hosts", 3)
    assert ran.status == 0, ran.output
    made = [simulated(name) for name in HOSTS]
    for box in made:
        box.do("rm", "-rf", STORE)
    yield made
    CONTROL.unlink(missing_ok=True)


@pytest.fixture
def bring(tmp_path):
    """Run the part of provision that brings weights: bring(*hosts, **variables) -> reports by host."""

    def run(*hosts, **variables):
        (tmp_path / "hosts.yml").write_text(
            yaml.safe_dump({"serving": {"hosts": dict.fromkeys(HOSTS), "vars": variables}})
        )
        inventories = [ROOT / "inventory/lab", tmp_path]
        return play("../tests/faults/weights.yml", hosts, inventories, quiet=True).hosts

    return run


def tell(*faults):
    write(CONTROL, Settings(tuple(faults)))


def sent(since=0):
    """Bytes of weights that left the hub, without the look at their header."""
    lines = [json.loads(line) for line in LOG.read_text().splitlines()[since:]]
    return sum(
        line["bytes"]
        for line in lines
        if line["method"] == "GET" and line["path"].endswith(".safetensors") and line["bytes"] != 262144
    )


def logged():
    return len(LOG.read_text().splitlines()) if LOG.exists() else 0


def weights(box):
    """Size and SHA-256 of the weights in a box's store."""
    (path,) = box.do("find", STORE, "-name", "*.safetensors", "-not", "-path", "*/.staging/*").split()
    return int(box.do("stat", "-c", "%s", path)), box.do("sha256sum", path).split()[0], path


def test_three_boxes_and_one_copy_from_the_hub(boxes, bring):
    since = logged()
    reports = bring(*HOSTS, model_weights_peers=HOSTS)
    assert [reports[name].failure for name in HOSTS] == [None] * 3
    found = [weights(box)[:2] for box in boxes]
    assert len(set(found)) == 1
    assert sent(since) == found[0][0]
    for box in boxes:
        assert ":8790 " not in box.do("ss", "-Hltn"), "nobody serves any more"


def test_one_copy_for_all_is_there_sooner_than_one_for_each(boxes, bring):
    """On a line that is the bottleneck, as a home has one: the same boxes and play, each way once."""
    size = weights(boxes[0])[0]
    took, left = {}, {}
    tell(Fault("line", "*/model.safetensors", bytes_per_s=LINE))
    for way, variables in {"each": {}, "one": {"model_weights_peers": HOSTS}}.items():
        for box in boxes:
            box.do("rm", "-rf", STORE)
        since, began = logged(), time.monotonic()
        reports = bring(*HOSTS, **variables)
        took[way], left[way] = time.monotonic() - began, sent(since)
        assert [reports[name].failure for name in HOSTS] == [None] * 3
    tell()
    print(json.dumps({"seconds": took, "bytes": left, "line_bytes_per_s": LINE}))
    assert left == {"each": 3 * size, "one": size}
    assert took["one"] < took["each"]
    # What the line does not carry twice more; the way from box to box and the play take what is theirs.
    assert took["each"] - took["one"] > size / LINE


def test_a_box_that_comes_later_asks_the_others(boxes, bring):
    boxes[2].do("rm", "-rf", STORE)
    since = logged()
    report = bring("lab3", model_weights_peers=HOSTS)["lab3"]
    assert report.failure is None
    assert sent(since) == 0
    assert weights(boxes[2])[1] == weights(boxes[0])[1]


def test_a_flipped_bit_is_named_and_only_its_file_comes_again(boxes, bring, verb):
    box = boxes[1]
    size, digest, path = weights(box)
    stamp = box.do("stat", "-c", "%y", path).strip()
    box.do("dd", "if=/dev/zero", f"of={path}", "bs=1", "seek=9000001", "count=64", "conv=notrunc")
    box.do("touch", "-d", stamp, path)
    ran = verb("models", "--host", "lab2", "--deep")
    assert ran.status == 1
    assert "model.safetensors is wrong: other bytes than were verified" in " ".join(ran.output.split())
    since = logged()
    assert bring("lab2")["lab2"].failure is None
    assert sent(since) == size
    assert weights(box)[1] == digest
    assert verb("models", "--host", "lab2", "--deep").status == 0


def when_there(box, megabytes, act):
    """Do something once so much of the weights has come to a box; the thread that waits for it."""

    def wait():
        find = f"find {STORE}/.staging -name model.safetensors.partial -exec du -m {{}} + | cut -f1"
        until = time.monotonic() + 900
        while time.monotonic() < until:
            held = box.do("sh", "-c", find, check=False).split()
            if held and int(held[0]) >= megabytes:
                act()
                return
            time.sleep(0.5)

    waiting = threading.Thread(target=wait)
    waiting.start()
    return waiting


def test_a_killed_fetch_goes_on_within_the_file(boxes, bring):
    box = boxes[0]
    size, digest, _ = weights(box)
    box.do("rm", "-rf", STORE)
    since = logged()
    tell(Fault("rate", "*/model.safetensors", bytes_per_s=2_000_000))
    killer = when_there(box, 60, lambda: box.do("sh", "-c", f"kill -KILL $(cat {STORE}/.locks/*.lock)"))
    assert bring("lab1")["lab1"].failure is not None
    killer.join()
    tell()
    # The hub notices only with its next block that nobody is there any more.
    time.sleep(2)
    assert bring("lab1")["lab1"].failure is None
    assert weights(box)[1] == digest
    assert size <= sent(since) <= size + IN_FLIGHT


def test_a_hub_that_goes_away_is_told_and_what_came_is_kept(boxes, bring):
    box = boxes[2]
    size, digest, _ = weights(box)
    box.do("rm", "-rf", STORE)
    since = logged()
    tell(Fault("rate", "*/model.safetensors", bytes_per_s=2_000_000))
    breaker = when_there(box, 60, lambda: tell(Fault("down")))
    failure = bring("lab3")["lab3"].failure
    breaker.join()
    assert "cannot be reached from this host" in failure["message"]
    assert "what has arrived is kept" in failure["message"]
    tell(Fault("drop", "*/model.safetensors", after_bytes=5_000_000, times=6))
    time.sleep(2)
    assert bring("lab3")["lab3"].failure is None
    assert weights(box)[1] == digest
    assert size <= sent(since) <= size + IN_FLIGHT


@pytest.fixture
def small_disk(boxes, bring):
    """A box whose store is a filesystem of its own, with room for the weights and not much more.

    Gives it with the weights' size and SHA-256.
    """
    box = boxes[0]
    assert bring("lab1")["lab1"].failure is None
    size, digest, _ = weights(box)
    box.do("rm", "-rf", STORE)
    box.do("mkdir", "-p", STORE)
    box.do("mount", "-t", "tmpfs", "-o", f"size={size + 20_000_000},mode=755", "tmpfs", STORE)
    yield box, size, digest
    box.do("umount", STORE)


def test_a_disk_that_fills_up_meanwhile_is_told_and_what_came_is_kept(small_disk, bring):
    box, size, digest = small_disk
    since = logged()
    tell(Fault("rate", "*/model.safetensors", bytes_per_s=2_000_000))
    fill = ["dd", "if=/dev/zero", f"of={STORE}/of-somebody-else", "bs=1M"]
    filler = when_there(box, 60, lambda: box.do(*fill, check=False))
    failure = bring("lab1", model_weights_reserve_gb=0)["lab1"].failure
    filler.join()
    assert "the disk became full while HuggingFaceTB/SmolLM2-135M-Instruct was fetched" in failure["message"]
    tell()
    short = bring("lab1", model_weights_reserve_gb=0)["lab1"].failure
    assert short is not None
    box.do("rm", f"{STORE}/of-somebody-else")
    assert bring("lab1", model_weights_reserve_gb=0)["lab1"].failure is None
    assert weights(box)[1] == digest
    assert size <= sent(since) <= size + IN_FLIGHT
