"""Logs that are named to the doctor: packed, in other encodings, out of pipes; and what is none."""

import bz2
import gzip
import io
import json
import lzma
import os
import sys
import threading
from types import SimpleNamespace

import pytest

from boxwright.cli import doctoring, log_file
from boxwright.doctor import decoding
from boxwright.errors import EXIT_BAD_INPUT, EXIT_FAILED, UserError

FATAL = (
    "INFO 11-29 10:00:00 [x.py:1] grüße\n"
    "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization`\n"
)
FORMS = {
    "gzip": gzip.compress(FATAL.encode()),
    "gzip, two of them": gzip.compress(FATAL.encode()[:60]) + gzip.compress(FATAL.encode()[60:]),
    "gzip, cut off": gzip.compress(FATAL.encode() + os.urandom(4000).hex().encode())[:-1000],
    "gzip of UTF-16": gzip.compress(FATAL.encode("utf-16")),
    "bzip2": bz2.compress(FATAL.encode()),
    "xz": lzma.compress(FATAL.encode()),
    "UTF-16 with a mark": FATAL.encode("utf-16"),
    "UTF-16LE without": FATAL.encode("utf-16-le"),
    "UTF-16BE without": FATAL.encode("utf-16-be"),
    "UTF-32 with a mark": FATAL.encode("utf-32"),
    "UTF-32LE without": FATAL.encode("utf-32-le"),
    "UTF-32BE without": FATAL.encode("utf-32-be"),
    "zeros of a crash": b"\0" * 5000 + FATAL.encode() + b"\0" * 70,
    "latin-1": FATAL.encode("latin-1"),
}


def run(capsys, path, **options):
    try:
        doctoring.doctor((), (), log=str(path), **options)
    except SystemExit as error:
        return error.code, capsys.readouterr().out
    return 0, capsys.readouterr().out


@pytest.mark.parametrize("data", FORMS.values(), ids=FORMS)
def test_a_log_is_read_however_it_was_kept(capsys, tmp_path, data):
    path = tmp_path / "engine.log"
    path.write_bytes(data)
    status, out = run(capsys, path)
    assert (status, "no-memory-for-kv-cache" in out) == (EXIT_FAILED, True), out


@pytest.mark.parametrize("data", FORMS.values(), ids=FORMS)
def test_a_log_on_standard_input_too(capsys, monkeypatch, data):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(data)))
    status, out = run(capsys, "-", as_json=True)
    assert (status, json.loads(out)["causes"][0]["id"]) == (EXIT_FAILED, "no-memory-for-kv-cache")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "it is empty"),
        (b" \n\r\n\t\n", "it is empty"),
        (b"\xef\xbb\xbf", "it is empty"),
        (gzip.compress(b""), "it is empty"),
        (b"\0" * 4096, "nothing but zeros"),
        (bytes(range(256)) * 300, "it is no text"),
        (b"\x7fELF\x02\x01\x01" + bytes(range(1, 200)) * 50, "it is no text"),
        (b'{"__metadata__":{"format":"pt"}}' + bytes(range(256)) * 3000, "it is no text"),
        (gzip.compress(bytes(range(256)) * 300), "it is no text"),
        (b"\x1f\x8b" + b"\xff" * 400, "too damaged to be unpacked"),
        (b"LPKSHHRH" + bytes(400), "it is a journal of systemd"),
        (b"\x28\xb5\x2f\xfd" + bytes(range(200)), "it is packed with zstd"),
        (b"PK\x03\x04" + bytes(range(200)), "it is a zip archive"),
    ],
)
def test_what_is_no_log_is_said_to_be_none(tmp_path, data, said):
    path = tmp_path / "engine.log"
    path.write_bytes(data)
    with pytest.raises(UserError) as error:
        doctoring.doctor((), (), log=str(path))
    assert (error.value.status, error.value.where) == (EXIT_BAD_INPUT, str(path))
    assert said in error.value.why
    assert error.value.ways_out


def test_nothing_on_standard_input_is_said(monkeypatch):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"")))
    with pytest.raises(UserError, match="it is empty") as error:
        doctoring.doctor((), (), log="-")
    assert error.value.where == "standard input"


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("/does/not/exist", "No such file or directory"),
        ("/", "it is a directory"),
        ("", "it is a directory"),
        ("/dev/null", "neither a file nor a pipe"),
        ("a\0b", "null"),
        ("x" * 5000, "File name too long"),
    ],
)
def test_what_cannot_be_read_is_told_with_the_reason(word, said):
    with pytest.raises(UserError, match="cannot be read") as error:
        doctoring.doctor((), (), log=word)
    assert error.value.status == EXIT_BAD_INPUT
    assert said in error.value.why
    assert "None" not in str(error.value)


def test_a_pipe_is_read_to_its_end(capsys, tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)

    def write():
        with path.open("wb") as stream:
            for line in FATAL.splitlines(keepends=True):
                stream.write(line.encode())
                stream.flush()

    writer = threading.Thread(target=write)
    writer.start()
    status, out = run(capsys, path)
    writer.join()
    assert (status, "no-memory-for-kv-cache" in out) == (EXIT_FAILED, True)


def test_a_pipe_that_nobody_writes_into_holds_up_nobody(monkeypatch, tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    monkeypatch.setattr(log_file, "PIPE_WAIT_S", 0.05)
    with pytest.raises(UserError, match="nothing wrote into it"):
        doctoring.doctor((), (), log=str(path))


@pytest.mark.parametrize("form", ["file", "pipe"])
def test_of_a_long_log_the_end_is_read(capsys, monkeypatch, tmp_path, form):
    monkeypatch.setattr(log_file, "LARGEST", 4096)
    monkeypatch.setattr(log_file, "_CHUNK", 1000)
    data = ("ValueError: old and unknown\n" * 5000 + FATAL).encode("utf-16-le")
    if form == "file":
        (tmp_path / "log").write_bytes(data)
    else:
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(data)))
    assert len(log_file.read(str(tmp_path / "log") if form == "file" else "-")) <= 4100
    if form == "pipe":
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(data)))
    assert "no-memory-for-kv-cache" in run(capsys, tmp_path / "log" if form == "file" else "-")[1]


def test_what_is_unpacked_is_bounded(monkeypatch):
    monkeypatch.setattr(decoding, "LARGEST", 4096)
    monkeypatch.setattr(decoding, "_CHUNK", 512)
    text = decoding.text_of(gzip.compress(b"begin\n" + b"0123456789\n" * 4_000 + b"end\n"))
    assert len(text) <= 4096
    assert text.endswith(b"end\n")
