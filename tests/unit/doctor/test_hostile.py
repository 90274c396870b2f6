"""Logs that mean harm, or are only huge: no exception, and time in proportion to their length."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boxwright.doctor import Log, diagnose, signatures
from boxwright.doctor.template import Template
from boxwright.facts.parsers.log_lines import parse
from boxwright.facts.parsers.masking import mask

PIECES = sorted({text.anchor for one in signatures() for text in one.texts})
TALK = st.one_of(
    st.text(max_size=60),
    st.sampled_from(PIECES),
    st.sampled_from(["\n", "\r", "\r\n", "\x1b[0m", "{", "}", "ValueError: x\n", "(EngineCore pid=1) ERROR ",
                     "Traceback (most recent call last):\n", "The above exception was the direct cause"]),
)  # fmt: skip


@settings(max_examples=150)
@given(st.lists(TALK, max_size=40).map("".join))
def test_any_text_is_diagnosed(text):
    found = diagnose([Log("log", text.encode("utf-8", "surrogatepass"))])
    assert found.verdict in ("fatal", "slows", "fine")
    found.to_json()


@settings(max_examples=100)
@given(st.binary(max_size=400))
def test_any_bytes_are_diagnosed(data):
    diagnose([Log("log", data)])


@settings(max_examples=100)
@given(st.lists(st.text(max_size=20), min_size=1, max_size=6).map("".join))
def test_prefixes_and_masks_take_any_line(text):
    parse(text)
    mask(text, [text[:8]])


def seconds(data):
    best = float("inf")
    for _ in range(2):
        began = time.process_time()
        diagnose([Log("log", data)])
        best = min(best, time.process_time() - began)
    return best


@pytest.mark.parametrize(
    "piece",
    [
        b"max_num_seqs (",
        b"NVRM: Xid (PCI:0000:01:00): 999, ",
        b"NVRM: Xid (PCI:0000:01:00): 999, \n",
        b"Traceback (most recent call last):\n x\nValueError: a\nDuring handling of the above exception\n",
        b"CUDA out of memory. Tried to allocate \n",
        b"(EngineCore pid=1) ERROR 11-29 10:00:00 [",
        b"a" * 97 + b"\n",
        b"\r",
        b"api_key=",
        b"vLLM API server version 0.1.2\n",
    ],
)
def test_twice_the_log_takes_no_more_than_about_twice_the_time(piece):
    small, large = piece * (400_000 // len(piece)), piece * (1_600_000 // len(piece))
    # Four times the length: quadratic would be sixteen times, and the bound leaves room for a busy machine.
    assert seconds(large) < 10 * seconds(small) + 0.5


def test_a_template_tries_a_bounded_number_of_places():
    template = Template("aaaaaaaa{x:int}b")
    line = "a" * 200_000
    began = time.process_time()
    assert template.find(line + "aaaaaaaa") is None
    assert time.process_time() - began < 10


@pytest.mark.parametrize(
    ("template", "line", "values"),
    [
        ("some text {a:int} of {b:number} GiB", "some text 5 of 1.5 GiB", {"a": "5", "b": "1.5"}),
        ("some text {a:int} of {b:number} GiB", "some text x of 1.5 GiB", None),
        ("text {a} end it", "text with everything end it and more", {"a": "with everything"}),
        ("length is {n:number}", "length is 24576. Try", {"n": "24576"}),
        ("length is {n:word}", "length is 24576. Try", {"n": "24576."}),
        ("length is {n}", "length is all the rest", {"n": "all the rest"}),
        ("core proc(s): {{{}}}", "core proc(s): {}", {}),
        ("Xid ({card:word}): 79,", "Xid (a b): 79, Xid (PCI:1): 79,", {"card": "PCI:1"}),
    ],
)
def test_templates(template, line, values):
    assert Template(template).find(line) == values
