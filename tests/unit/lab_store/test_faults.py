"""Faults that a running server shows when its control file says so."""

from __future__ import annotations

import contextlib
import http.client
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from boxwright.lab.store.servers.control import Access, Control, ControlError, Fault, Settings, write
from boxwright.lab.store.servers.files import RequestLog, serve
from boxwright.lab.store.servers.www import FileHandler

DEB = "/debs/a.deb"


def test_a_body_is_cut_so_often_and_then_whole(www):
    www.tell(Settings((Fault("drop", "*.deb", times=2, after_bytes=4),)))
    for _ in range(2):
        with pytest.raises(http.client.IncompleteRead) as cut:
            www.ask(DEB)
        assert cut.value.partial == b"0123"
    assert www.ask(DEB).body == b"0123456789"
    assert [each["fault"] for each in www.requests(3)] == ["drop", "drop", None]


def test_a_short_body_does_not_use_up_a_cut(www):
    www.tell(Settings((Fault("drop", times=1, after_bytes=4),)))
    assert www.ask(DEB, Range="bytes=0-2").body == b"012"
    with pytest.raises(http.client.IncompleteRead):
        www.ask(DEB)


def test_a_byte_is_turned_wherever_the_range_begins(www):
    www.tell(Settings((Fault("corrupt", "*.deb", offset=5),)))
    turned = bytes([ord("5") ^ 0xFF])
    assert www.ask(DEB).body == b"01234" + turned + b"6789"
    assert www.ask(DEB, Range="bytes=4-6").body == b"4" + turned + b"6"
    assert www.ask(DEB, Range="bytes=6-").body == b"6789"


def test_a_status_with_the_time_to_wait(www):
    www.tell(Settings((Fault("status", "/debs/*", times=1, status=429, retry_after_s=3),)))
    answer = www.ask(DEB)
    assert (answer.status, answer.headers["Retry-After"]) == (429, "3")
    assert answer.headers["RateLimit"] == '"resolvers";r=0;t=3'
    assert www.ask(DEB).status == 200


def test_a_rate(www):
    www.tell(Settings((Fault("rate", bytes_per_s=50),)))
    began = time.monotonic()
    www.ask(DEB)
    assert time.monotonic() - began > 0.15


def test_a_line_is_shared_by_all_that_is_sent(www):
    www.tell(Settings((Fault("line", bytes_per_s=50),)))
    began = time.monotonic()
    with ThreadPoolExecutor(4) as pool:
        assert {answer.body for answer in pool.map(lambda _: www.ask(DEB), range(4))} == {b"0123456789"}
    assert time.monotonic() - began > 4 * 10 / 50 - 0.05


def test_down_means_that_nothing_listens(tmp_path):
    (tmp_path / "f").write_text("there")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    handler = type("Www", (FileHandler,), {"mounts": {"": tmp_path}})
    control = tmp_path / "control.json"
    arguments = (("127.0.0.1", port), handler, Control(control), RequestLog(tmp_path / "log"))
    threading.Thread(target=serve, args=arguments, daemon=True).start()

    def reached() -> bool:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return True
        return False

    def wait_for(state: bool) -> bool:
        return any(reached() is state or time.sleep(0.1) for _ in range(50))

    assert wait_for(True)
    kept = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    kept.request("GET", "/f")
    assert kept.getresponse().read() == b"there"
    write(control, Settings((Fault("down"),)))
    assert wait_for(False)
    kept.request("GET", "/f")  # a connection that was open is no way in either
    with pytest.raises((http.client.RemoteDisconnected, ConnectionError)):
        kept.getresponse()
    write(control, Settings())
    assert wait_for(True)


def test_the_file_may_come_change_and_go(www):
    www.tell(Settings((Fault("status", status=503),)))
    assert www.ask(DEB).status == 503
    www.control.unlink()
    assert www.ask(DEB).status == 200


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "not JSON"),
        ("[]", "not a JSON object"),
        ('{"faults": [{"kind": "fire"}]}', "kind must be one of drop, rate"),
        ('{"faults": [{"kind": "drop"}]}', "after_bytes is missing"),
        ('{"faults": [{"kind": "down", "when": 1}]}', "no field 'when'"),
        ('{"repositories": {"a/b": {"access": "secret"}}}', "access must be one of public"),
    ],
)
def test_a_control_file_that_cannot_be_understood_is_told_by_every_answer(www, text, told):
    with pytest.raises(ControlError, match=told):
        Settings.from_json(text)
    www.control.write_text(text)
    answer = www.ask(DEB)
    assert answer.status == 500
    assert told in answer.json["error"]
    assert str(www.control) in answer.json["error"]


def test_settings_survive_the_file(tmp_path):
    settings = Settings(
        (Fault("hang", seconds=1.5), Fault("drop", "*x", 2, after_bytes=7)),
        {"t": "ann"},
        {"a/b": Access("gated", ("ann",))},
    )
    write(tmp_path / "control.json", settings)
    assert Control(tmp_path / "control.json").settings() == settings
