"""Downloading over several connections: every fault of the line, and what is left of it for the next run."""

import errno
import hashlib
import os
import random
import socket
import subprocess
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from ansible.module_utils import partial_file
from ansible.module_utils.http_ranges import FetchError, Lines, wait_told
from ansible.module_utils.partial_file import PartialFile
from ansible.module_utils.weight_download import DiskError, Download, is_full
from ansible.module_utils.weight_meter import Limits, Meter
from ansible.module_utils.weight_sources import DirectorySource, WebSource

SIZE = 1_000_000
CONTENT = {
    "model.safetensors": random.Random(1).randbytes(SIZE),
    "config.json": b'{"model_type": "llama"}',
    "empty.txt": b"",
}


class Place:
    """A server of files that misbehaves as told. faults: called with each request, True when it answered."""

    def __init__(self):
        self.sent, self.asked, self.faults, self.ranges, self.seen = 0, 0, [], True, []
        place = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                place.asked += 1
                place.seen.append(dict(self.headers))
                if not (place.faults and place.faults.pop(0)(self)):
                    self.answer()

            def answer(self, upto=None, turn=None, declared=None):
                body = CONTENT[self.path.strip("/")]
                total, first = len(body), 0
                if "Range" in self.headers and place.ranges:
                    first, last = map(int, self.headers["Range"].removeprefix("bytes=").split("-"))
                    body = body[first : last + 1]
                place.sent += len(body if upto is None else body[:upto])
                if "Range" in self.headers and place.ranges:
                    self.send_response(206)
                    told = total if declared is None else declared
                    self.send_header("Content-Range", f"bytes {first}-{first + len(body) - 1}/{told}")
                else:
                    self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if turn is not None:
                    body = body[:turn] + bytes([body[turn] ^ 1]) + body[turn + 1 :]
                body = body if upto is None else body[:upto]
                self.wfile.write(body)
                if upto is not None:
                    self.close_connection = True

            def log_message(self, *arguments):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()


@pytest.fixture
def place():
    made = Place()
    yield made
    made.server.shutdown()
    made.server.server_close()


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    """Pieces small enough that a megabyte has many."""
    monkeypatch.setattr(partial_file, "LEAST_PIECE", 65536)
    monkeypatch.setattr(partial_file, "MOST_PIECE", 65536)


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr("ansible.module_utils.weight_download.TRIES", 3)


def files(*names):
    return [
        {"path": name, "size": len(CONTENT[name]), "sha256": hashlib.sha256(CONTENT[name]).hexdigest()}
        for name in names or CONTENT
    ]


@pytest.fixture
def fetch(tmp_path, place):
    """Fetch into a directory: fetch(*names, sources=…, …) -> sums. `fetch.meter`: of the last run."""

    def run(
        *names, sources=None, stall_s=20, lines=None, wanted=None, workers=4, limit=0, told=lambda n: None
    ):
        limits = Limits(workers, stall_s, bytes_per_s=limit)
        run.meter = Meter(limits)
        lines = lines or Lines(timeout=min(10, stall_s), direct=True)
        sources = sources or [WebSource("place", place.url, lines, {}, last=True)]
        try:
            return Download(
                wanted or files(*names), str(tmp_path / "tree"), sources, limits, run.meter, told
            ).run()
        finally:
            for source in sources:
                source.close()

    run.directory = tmp_path / "tree"
    return run


def whole(fetch, *names):
    for name in names or CONTENT:
        assert (fetch.directory / name).read_bytes() == CONTENT[name]
    assert not list(fetch.directory.rglob("*.partial*"))


def test_every_byte_comes_once_over_several_connections(fetch, place):
    assert fetch() == {file["path"]: file["sha256"] for file in files()}
    whole(fetch)
    assert place.sent == sum(map(len, CONTENT.values()))
    assert fetch.meter.came == {"place": place.sent}
    assert len({headers["Range"] for headers in place.seen}) >= 16


def test_what_is_there_is_not_fetched_but_hashed(fetch, place):
    fetch()
    (fetch.directory / "config.json").write_bytes(b'{"model_type": "other"}')
    before = place.sent
    fetch()
    whole(fetch)
    assert place.sent - before == len(CONTENT["config.json"])


def status(code, **headers):
    def answer(handler):
        handler.send_response(code)
        for name, text in headers.items():
            handler.send_header(name.replace("_", "-"), text)
        handler.send_header("Content-Length", "0")
        handler.end_headers()
        return True

    return answer


def cut(after):
    return lambda handler: handler.answer(upto=after) or True


def reset(handler):
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    handler.close_connection = True
    handler.connection.close()
    return True


def hang(seconds):
    return lambda handler: time.sleep(seconds)


@pytest.mark.parametrize(
    "faults",
    [
        [cut(1), cut(1000), cut(30_000), cut(0), cut(65_000)],
        [reset, reset],
        [status(503), status(500), status(502)],
        [status(429, Retry_After="0"), status(429, Retry_After="Wed, 21 Oct 2015 07:28:00 GMT")],
        [status(302, Location="/model.safetensors"), status(307, Location="model.safetensors")],
    ],
    ids=["truncated", "reset", "5xx", "429", "redirect"],
)
def test_passing_faults_cost_no_byte_twice(fetch, place, faults):
    place.faults = list(faults)
    fetch("model.safetensors")
    whole(fetch, "model.safetensors")
    assert place.sent == SIZE
    assert not place.faults


def test_429_is_waited_for_as_told(fetch, place):
    place.faults = [status(429, Retry_After="2")]
    began = time.monotonic()
    fetch("config.json", stall_s=1)
    assert time.monotonic() - began >= 2


@pytest.mark.parametrize(
    ("fault", "kind", "wait"),
    [
        (status(401), "unauthorized", None),
        (status(403), "forbidden", None),
        (status(404), "not-found", None),
        (status(416), "wrong-size", None),
        (status(429, Retry_After="7000"), "rate-limited", 7000),
        (status(500), "server", None),
        (status(302, Location="file:///etc/passwd"), "redirected", None),
        (status(302, Location="/model.safetensors"), "redirected", None),
        (reset, "unreachable", None),
        (cut(0), "cut", None),
        (lambda handler: handler.answer(declared=SIZE + 1) or True, "wrong-size", None),
    ],
)
def test_lasting_faults_are_told_and_what_came_is_kept(fetch, place, fault, kind, wait):
    place.faults = [lambda handler: False] * 3 + [fault] * 200
    with pytest.raises(FetchError) as caught:
        fetch("model.safetensors", workers=1)
    assert (caught.value.kind, caught.value.wait) == (kind, wait)
    assert caught.value.path == "model.safetensors"
    assert not (fetch.directory / "model.safetensors").exists()
    kept = partial_file.held(str(fetch.directory / "model.safetensors"))
    assert kept == 3 * 65536
    place.faults, before = [], place.sent
    fetch("model.safetensors")
    whole(fetch, "model.safetensors")
    assert place.sent - before == SIZE - kept


def test_a_stall_ends_in_time_and_resumes(fetch, place):
    place.faults = [lambda handler: False] * 3 + [hang(120)] * 40
    began = time.monotonic()
    with pytest.raises(FetchError) as caught:
        fetch("model.safetensors", stall_s=1, workers=2, lines=Lines(timeout=30, direct=True))
    assert caught.value.kind == "timeout"
    assert time.monotonic() - began < 60
    place.faults = []
    fetch("model.safetensors")
    whole(fetch, "model.safetensors")


def test_one_damaged_answer_is_found_and_mended(fetch, place):
    place.faults = [lambda handler: False, lambda handler: handler.answer(turn=77) or True]
    fetch("model.safetensors")
    whole(fetch, "model.safetensors")
    assert place.sent == 2 * SIZE
    assert fetch.meter.notes == ["model.safetensors came damaged and was fetched again"]


def test_lasting_damage_is_told_and_leaves_nothing_wrong(fetch, place):
    place.faults = [lambda handler: handler.answer(turn=7) or True] * 200
    with pytest.raises(FetchError) as caught:
        fetch("model.safetensors")
    assert caught.value.kind == "wrong-bytes"
    assert "its sha256 is" in caught.value.detail
    assert partial_file.held(str(fetch.directory / "model.safetensors")) == 0


def test_a_server_without_ranges_sends_the_whole_in_one_stream(fetch, place):
    place.ranges = False
    fetch()
    whole(fetch)
    place.faults = [cut(500_000)]
    (fetch.directory / "model.safetensors").unlink()
    fetch()
    whole(fetch)


def test_a_full_disk_is_told_and_resumes(fetch, place, monkeypatch):
    real, room = os.pwrite, [300_000]

    def pwrite(descriptor, data, offset):
        if len(data) > 1000:
            if room[0] <= 0:
                raise OSError(errno.ENOSPC, "No space left on device")
            data = data[: room[0]]
            room[0] -= len(data)
        return real(descriptor, data, offset)

    monkeypatch.setattr(os, "pwrite", pwrite)
    with pytest.raises(DiskError) as caught:
        fetch("model.safetensors")
    assert is_full(caught.value)
    room[0] = 10**9
    assert partial_file.held(str(fetch.directory / "model.safetensors")) >= 299_000
    fetch("model.safetensors")
    whole(fetch, "model.safetensors")


def closed_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@pytest.mark.parametrize(
    ("url", "proxy", "kind"),
    [
        ("http://no-such-host.invalid", "", "dns"),
        ("http://127.0.0.1:{closed}", "", "unreachable"),
        ("https://127.0.0.1:{port}", "", "no-tls"),
        ("http://hub.example", "http://127.0.0.1:{closed}", "unreachable"),
        ("https://hub.example", "http://127.0.0.1:{port}", "proxy"),
        ("http://hub.example", "http://user:secret@127.0.0.1:{refusing}", "proxy"),
    ],
)
def test_a_line_that_leads_nowhere(fetch, place, url, proxy, kind):
    place.faults = [status(407)] * 50
    numbers = {
        "closed": closed_port(),
        "port": place.server.server_port,
        "refusing": place.server.server_port,
    }
    lines = Lines(proxy.format(**numbers), timeout=5, direct=not proxy)
    source = WebSource("place", url.format(**numbers), lines, {}, last=True)
    with pytest.raises(FetchError) as caught:
        fetch("config.json", sources=[source])
    assert caught.value.kind == kind
    assert "secret" not in str(caught.value)


def test_a_proxy_is_used_with_its_password(fetch, place):
    lines = Lines(place.url.replace("//", "//user:secret@"), timeout=5)
    place.faults = [lambda handler: setattr(handler, "path", handler.path.removeprefix("http://hub.example"))]
    fetch("config.json", sources=[WebSource("hub", "http://hub.example", lines, {}, last=True)])
    assert place.seen[0]["Host"] == "hub.example"
    assert place.seen[0]["Proxy-Authorization"] == "Basic dXNlcjpzZWNyZXQ="


def test_a_certificate_of_nobody(fetch, tmp_path):
    import ssl

    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    made = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-subj",
        "/CN=localhost",
        "-days",
        "1",
    ]
    subprocess.run([*made, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    place = Place()
    place.server.socket = context.wrap_socket(place.server.socket, server_side=True)
    source = WebSource(
        "place", place.url.replace("http:", "https:"), Lines(direct=True), {"Authorization": "x"}, last=True
    )
    with pytest.raises(FetchError) as caught:
        fetch("config.json", sources=[source])
    assert caught.value.kind == "tls"
    assert place.asked == 0
    place.server.shutdown()


def test_a_secret_stays_with_its_origin(fetch, place):
    other = Place()
    place.faults = [status(302, Location=other.url + "/config.json")]
    secret = {"Authorization": "Bearer hf_x"}
    source = WebSource("place", place.url, Lines(direct=True), secret, last=True)
    fetch("config.json", sources=[source])
    assert place.seen[0]["Authorization"] == "Bearer hf_x"
    assert "Authorization" not in other.seen[0]
    other.server.shutdown()


def test_a_limit_is_kept(fetch, place):
    workers, limit, began = 4, 1_000_000, time.monotonic()
    fetch("model.safetensors", workers=workers, limit=limit)
    # The last piece of each connection may be there before its share of the time is over.
    assert time.monotonic() - began >= (SIZE - workers * partial_file.MOST_PIECE) / limit


# Several sources


def test_other_places_come_before_the_last_resort(fetch, place, tmp_path):
    box = Place()
    sources = [
        WebSource("box2", box.url, Lines(direct=True), {}),
        WebSource("hub", place.url, Lines(direct=True), {}, last=True),
    ]
    fetch(sources=sources)
    whole(fetch)
    assert (place.sent, box.sent) == (0, sum(map(len, CONTENT.values())))
    box.server.shutdown()


@pytest.mark.parametrize("fault", [status(404), reset, status(500), lambda h: h.answer(turn=5) or True])
def test_a_box_that_fails_is_left_and_told(fetch, place, fault):
    box = Place()
    box.faults = [lambda handler: False] * 3 + [fault] * 500
    sources = [
        WebSource("box2", box.url, Lines(direct=True), {}),
        WebSource("hub", place.url, Lines(direct=True), {}, last=True),
    ]
    fetch("model.safetensors", sources=sources)
    whole(fetch, "model.safetensors")
    assert 0 < place.sent <= SIZE
    assert any(note.startswith("box2 ") for note in fetch.meter.notes)
    box.server.shutdown()


def test_bytes_that_come_later_are_waited_for(fetch, place):
    box = Place()
    box.faults = [status(503, X_Boxwright_Later="1")] * 20
    sources = [
        WebSource("box2", box.url, Lines(direct=True), {}),
        WebSource("hub", place.url, Lines(direct=True), {}, last=True),
    ]
    fetch("model.safetensors", sources=sources, stall_s=2)
    assert place.sent == 0
    box.server.shutdown()


def test_a_directory(fetch, tmp_path):
    for name, content in CONTENT.items():
        (tmp_path / name).write_bytes(content)
    fetch(sources=[DirectorySource(str(tmp_path), last=True)])
    whole(fetch)
    (tmp_path / "config.json").write_bytes(b"{}")
    (fetch.directory / "config.json").unlink()
    with pytest.raises(FetchError) as caught:
        fetch(sources=[DirectorySource(str(tmp_path), last=True)])
    assert caught.value.kind == "wrong-size"


@pytest.mark.parametrize(
    ("put", "words"),
    [
        (lambda path: path.symlink_to("nowhere"), "No such file or directory"),
        (lambda path: path.symlink_to(path.name), "Too many levels of symbolic links"),
        (lambda path: os.mkfifo(path), "is no file"),
        (lambda path: path.mkdir(), "Is a directory"),
        (lambda path: path.symlink_to("/dev/zero"), "is no file"),
    ],
    ids=["to nothing", "to itself", "pipe", "folder", "device"],
)
def test_what_a_directory_must_not_have_is_taken_from_the_hub(fetch, place, tmp_path, put, words):
    mirror = tmp_path / "mirror"
    mirror.mkdir()
    (mirror / "blob").write_bytes(CONTENT["config.json"])
    (mirror / "config.json").symlink_to("blob")
    put(mirror / "model.safetensors")
    sources = [
        DirectorySource(str(mirror)),
        WebSource("hub", place.url, Lines(direct=True), {}, last=True),
    ]
    fetch("config.json", "model.safetensors", sources=sources)
    whole(fetch, "config.json", "model.safetensors")
    assert place.sent == SIZE
    assert any(words in note for note in fetch.meter.notes), fetch.meter.notes


# The file on its way


def test_only_flushed_bytes_outlive_a_boot(tmp_path, monkeypatch):
    path = str(tmp_path / "x")
    partial = PartialFile(path, 200_000, "")
    partial.write(1, memoryview(b"a" * 1000))
    partial.settle()
    partial.write(1, memoryview(b"b" * 1000))
    partial.close()
    assert partial_file.held(path) == 2000
    monkeypatch.setattr(partial_file, "_boot", lambda: "another")
    assert partial_file.held(path) == 1000
    again = PartialFile(path, 200_000, "")
    assert again.left(1).first == 65536 + 1000
    again.close()


def test_another_identity_or_a_spoilt_map_begins_anew(tmp_path):
    path = str(tmp_path / "x")
    for spoil in (
        lambda: None,
        lambda: Path(path + ".partial.map").write_bytes(b"nonsense"),
        lambda: Path(path + ".partial").write_bytes(b"short"),
        lambda: os.truncate(path + ".partial.map", 520),
    ):
        first = PartialFile(path, 200_000, "one")
        first.write(0, memoryview(b"a" * 1000))
        first.close()
        spoil()
        again = PartialFile(path, 200_000, "one" if spoil() else "two")
        assert again.written == 0
        again.close()


def test_what_a_box_may_hand_on(tmp_path):
    path = str(tmp_path / "x")
    partial = PartialFile(path, 200_000, "")
    partial.write(0, memoryview(b"a" * 65536))
    partial.write(1, memoryview(b"a" * 10))
    partial.write(2, memoryview(b"a" * 10))
    assert partial_file.available(path, 0) == (200_000, 65546)
    assert partial_file.available(path, 65540) == (200_000, 6)
    assert partial_file.available(path, 70_000) == (200_000, 0)
    assert partial_file.available(path, 131_072) == (200_000, 10)
    partial.close()
    with pytest.raises(FileNotFoundError):
        partial_file.available(path + "y", 0)


@pytest.mark.parametrize(("text", "wait"), [("12", 12), ("", None), ("soon", None), ("-1", None)])
def test_retry_after(text, wait):
    assert wait_told(text) == wait
