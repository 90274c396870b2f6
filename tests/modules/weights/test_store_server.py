"""A box that gives its weights to others: what is whole, what still comes, and to whom."""

import fcntl
import hashlib
import http.client
import os
import random
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from ansible.module_utils import partial_file, store_manifest, store_server
from ansible.module_utils.http_ranges import Lines
from ansible.module_utils.partial_file import PartialFile
from ansible.module_utils.store_manifest import Manifest, entry_of
from ansible.module_utils.store_server import Offer, StoreServer
from ansible.module_utils.weight_download import Download
from ansible.module_utils.weight_meter import Limits, Meter
from ansible.module_utils.weight_sources import PeerSource, WebSource

KEY, PLACE = "open-sesame", "acme--tiny/" + "1" * 40
CONTENT = random.Random(2).randbytes(400_000)
FILE = {"path": "model.safetensors", "size": len(CONTENT), "sha256": hashlib.sha256(CONTENT).hexdigest()}


@pytest.fixture
def root(tmp_path):
    return tmp_path / "models"


@pytest.fixture
def serve(root, tmp_path):
    """Start a server in this process: serve(**offer) -> its port."""
    servers, note = [], tmp_path / "note"

    def start(**offer):
        note.write_text("")
        server = StoreServer(("127.0.0.1", 0), Offer(str(root), KEY, **{"expected": [], **offer}), str(note))
        thread = threading.Thread(target=server.work, daemon=True)
        thread.start()
        servers.append(thread)
        start.server = server
        return server.server_port

    yield start
    note.unlink(missing_ok=True)
    for thread in servers:
        thread.join(5)
        assert not thread.is_alive()


def keep(root):
    directory = root / PLACE
    directory.mkdir(parents=True)
    (directory / "model.safetensors").write_bytes(CONTENT)
    entry = entry_of(str(directory), "model.safetensors", FILE["sha256"], "sha256")
    store_manifest.save(str(directory), Manifest("hub", "acme/tiny", "1" * 40, [entry]))


def ask(port, path=f"{PLACE}/model.safetensors", key=KEY, span="bytes=0-9"):
    headers = {"Authorization": f"Bearer {key}"}
    if span:
        headers["Range"] = span
    request = urllib.request.Request(f"http://127.0.0.1:{port}/{path}", headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.headers.get("X-Boxwright-Later")


def test_what_is_whole_is_given_to_who_has_the_key(root, serve):
    keep(root)
    (root / PLACE / "secret.txt").write_text("not of the revision")
    (root / "acme--tiny" / "notes").mkdir()
    port = serve()
    assert ask(port) == (206, CONTENT[:10])
    assert ask(port, span="bytes=399990-500000") == (206, CONTENT[-10:])
    assert ask(port, key="wrong") == (401, None)
    assert ask(port, key="") == (401, None)
    for path in (
        f"{PLACE}/secret.txt",
        f"{PLACE}/../../../etc/passwd",
        f"{PLACE}/%2e%2e/%2e%2e/%2e%2e/etc/passwd",
        "..--../" + "1" * 40 + "/model.safetensors",
        f"{PLACE}/.boxwright-manifest.json",
        f"{PLACE}/",
        "",
        "acme--tiny/notes/x",
    ):
        assert ask(port, path=path) == (404, None), path
    assert ask(port, span="") == (404, None)
    assert ask(port, span="bytes=400000-400001") == (416, None)
    assert store_server.holdings(str(root)) == [PLACE]


def staged(root):
    return root / ".staging" / PLACE.replace("/", "--") / "tree" / "model.safetensors"


def locked(root):
    lock = root / ".locks" / (PLACE.replace("/", "--") + ".lock")
    lock.parent.mkdir(parents=True)
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    return descriptor


def test_what_comes_is_given_as_far_as_it_is_there(root, serve, monkeypatch):
    monkeypatch.setattr(partial_file, "LEAST_PIECE", 65536)
    monkeypatch.setattr(partial_file, "MOST_PIECE", 65536)
    port = serve()
    assert ask(port) == (404, None), "nobody fetches it"
    lock = locked(root)
    assert ask(port) == (503, "1")
    partial = PartialFile(str(staged(root)), FILE["size"], FILE["sha256"])
    partial.write(0, memoryview(CONTENT[:100]))
    assert ask(port, span="bytes=90-200") == (206, CONTENT[90:100])
    assert ask(port, span="bytes=100-200") == (503, "1")
    os.close(lock)
    assert ask(port, span="bytes=100-200") == (404, None), "the fetch has ended before its end"
    partial.close()


def test_a_fetch_that_was_announced_is_waited_for_a_while(root, serve, monkeypatch):
    port = serve(expected=[PLACE])
    assert ask(port) == (503, "1")
    monkeypatch.setattr(store_server, "GRACE_S", 0.0)
    assert ask(port) == (404, None)


def test_followers_take_while_the_first_fetches(root, serve, tmp_path, monkeypatch):
    """Two boxes: the second gets every byte from the first, beginning before that one is through."""
    monkeypatch.setattr(partial_file, "LEAST_PIECE", 65536)
    monkeypatch.setattr(partial_file, "MOST_PIECE", 65536)
    keep(tmp_path / "origin")
    origin = StoreServer(
        ("127.0.0.1", 0), Offer(str(tmp_path / "origin"), KEY, [], 400_000), str(tmp_path / "n")
    )
    (tmp_path / "n").write_text("")
    threading.Thread(target=origin.work, daemon=True).start()
    url, secret = f"http://127.0.0.1:{origin.server_port}/{PLACE}", {"Authorization": f"Bearer {KEY}"}
    port, lock = serve(expected=[PLACE]), locked(root)
    limits, began, ends = Limits(2, 20), time.monotonic(), {}

    def fetch(name, directory, sources):
        meter = Meter(limits)
        Download([dict(FILE)], str(directory), sources, limits, meter, lambda done: None).run()
        ends[name] = time.monotonic() - began, meter.came

    hub = WebSource("hub", url, Lines(direct=True), secret, last=True)
    box = PeerSource("box1", ["192.0.2.1", "127.0.0.1"][1:], port, KEY, PLACE, Lines(direct=True))
    second = threading.Thread(target=fetch, args=("second", tmp_path / "second", [box, hub]))
    second.start()
    fetch("first", staged(root).parent, [hub])
    second.join(20)
    os.close(lock)
    (tmp_path / "n").unlink()
    assert (tmp_path / "second" / "model.safetensors").read_bytes() == CONTENT
    assert ends["first"][1] == {"hub": len(CONTENT)}
    assert ends["second"][1] == {"box1": len(CONTENT)}
    assert ends["second"][0] < ends["first"][0] + 1.5


def test_a_limit_holds_for_all_receivers_together(root, serve):
    keep(root)
    port, began = serve(bytes_per_s=800_000), time.monotonic()
    threads = [threading.Thread(target=ask, args=(port,), kwargs={"span": "bytes=0-399999"}) for _ in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert time.monotonic() - began >= 0.8


def test_a_server_ends_when_nobody_asks(root, serve):
    serve(idle_s=0.1)
    until = time.monotonic() + 20
    while Path(serve.server.note).exists():
        assert time.monotonic() < until
        time.sleep(0.1)


def test_the_module_starts_and_stops_one(run_module, root, tmp_path):
    keep(root)
    given = {"store": str(root), "key": KEY, "port": 0, "note": str(tmp_path / "note")}
    result = run_module("model_share", **given)
    assert result["holdings"] == [PLACE]
    assert not result["changed"]
    assert ask(result["port"]) == (206, CONTENT[:10])
    assert KEY not in (tmp_path / "note").read_text()
    run_module("model_share", state="stopped", store=str(root), note=str(tmp_path / "note"))
    until = time.monotonic() + 20
    while True:
        try:
            ask(result["port"])
        # It may also end in the midst of an answer, after the headers.
        except (OSError, http.client.HTTPException):
            break
        assert time.monotonic() < until
        time.sleep(0.1)
