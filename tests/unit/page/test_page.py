"""The page of a box: whole, by itself, and nothing of a box taken for markup."""

import importlib.util
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from boxwright.doctor.diagnosis import Report
from boxwright.doctor.glance import glance
from boxwright.page.ledger import ledger
from boxwright.page.markup import Markup, join, tag
from boxwright.page.page import page

spec = importlib.util.spec_from_file_location("boxes", Path(__file__).with_name("boxes.py"))
boxes = importlib.util.module_from_spec(spec)
spec.loader.exec_module(boxes)

#: Elements of HTML that are never closed.
VOID = {"meta", "br"}


class Reader(HTMLParser):
    """Elements, their attributes, and the text between; fails on an element that is not closed in order."""

    def __init__(self):
        super().__init__()
        self.open, self.elements, self.texts = [], [], []

    def handle_starttag(self, element, attributes):
        self.elements.append((element, dict(attributes)))
        if element not in VOID:
            self.open.append(element)

    def handle_startendtag(self, element, attributes):
        self.elements.append((element, dict(attributes)))

    def handle_endtag(self, element):
        assert self.open.pop() == element

    def handle_data(self, text):
        if self.open and self.open[-1] != "style":
            self.texts.append(text)


def read(text):
    reader = Reader()
    reader.feed(text)
    reader.close()
    assert reader.open == []
    return reader


def words(seen):
    return " ".join(" ".join(read(page(seen)).texts).split())


def test_it_shows_the_whole_box():
    said = words(boxes.box())
    for part in ("box1", "needs attention", "qwen", "RTX 5090", "cuda-out-of-memory", "KV cache", "10.0 GiB",
                 "Tokens a second, all sequences", "rollback", "does-not-fit",
                 "412,000 tokens in fp8"):  # fmt: skip
        assert part in said, part


def test_it_needs_nothing_from_elsewhere_and_runs_nothing():
    found = read(page(boxes.box()))
    assert not {"script", "link", "img", "iframe", "object", "base", "form"} & {
        name for name, _ in found.elements
    }
    for _, attributes in found.elements:
        assert not {"src", "href", "srcset", "action", "style"} & set(attributes)
        assert not [name for name in attributes if name.startswith("on")]
    style = page(boxes.box()).split("<style>")[1].split("</style>")[0]
    assert not re.search(r"url\(|@import|http", style)
    assert ("meta", {"name": "viewport", "content": "width=device-width, initial-scale=1"}) in found.elements


HOSTILE = "<script>alert(1)</script>\"'><b onx=1>&amp;\u202eevil\x1b[2J"


def hostile(value):
    """The value with each of its texts a hostile one."""
    if isinstance(value, dict):
        return {key: hostile(one) for key, one in value.items()}
    if isinstance(value, list):
        return [hostile(one) for one in value]
    return HOSTILE if isinstance(value, str) else value


def test_nothing_of_a_box_is_taken_for_markup():
    raw = json.loads(json.dumps(boxes.glances.RAW))
    raw["cards"]["rows"][0]["name"] = HOSTILE
    raw["deployments"][0].update(
        name=HOSTILE, release=HOSTILE, plan={"image": HOSTILE}, model_directory=f"/m/{HOSTILE}/{HOSTILE}/x"
    )
    [first, *_] = [one for one in boxes.runs() if one.failure]
    failure = replace(first.failure, role=HOSTILE, message=HOSTILE)
    seen = boxes.box(
        name=HOSTILE, made=HOSTILE, version=HOSTILE, glance=glance(raw), plan=hostile(boxes.PLAN),
        benches=[replace(boxes.bench(), deployment=HOSTILE, release=HOSTILE, image=HOSTILE, made=HOSTILE)],
        runs=[replace(first, verb=HOSTILE, by=HOSTILE, options=(HOSTILE,), failure=failure)],
    )  # fmt: skip
    text = page(seen)
    assert "<script" not in text
    assert "<b onx" not in text
    assert "\u202e" not in text
    assert "\x1b" not in text
    plain = {name for name, _ in read(page(boxes.box())).elements}
    assert {name for name, _ in read(text).elements} <= plain
    assert "<script>alert(1)</script>" in " ".join(read(text).texts)


@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        ({"report": Report()}, "serving"),
        ({"report": Report(), "plan": None, "benches": [], "runs": []}, "serving"),
        ({}, "needs attention"),
        ({"glance": glance({}), "report": Report()}, "needs attention"),
    ],
)
def test_what_is_not_there_leaves_no_gap(change, verdict):
    text = page(boxes.box(**change))
    said = words(boxes.box(**change))
    assert verdict in said
    assert "None" not in said
    assert not re.search(r"<section><h2>[^<]*</h2></section>", text)


def test_the_ledger_is_as_wide_as_its_uses():
    card = boxes.PLAN["deployments"][0]["memory"]["cards"][0]
    shapes = [attributes for name, attributes in read(ledger(card)).elements if name == "rect"]
    assert len(shapes) == len(boxes.LINES)
    whole = sum(line["bytes"] for line in boxes.LINES)
    for shape, line in zip(shapes, boxes.LINES, strict=True):
        assert float(shape["width"]) == pytest.approx(
            max(1, 1000 * line["bytes"] / max(whole, card["card_bytes"]) - 3), abs=0.1
        )
    short = [*boxes.LINES, {"name": "left free", "bytes": -3 * boxes.GIB, "why": ""}]
    text = ledger({**card, "lines": short})
    assert "missing" in text
    assert "3.0 GiB" in text


def test_markup():
    assert tag("p", "a<b", class_='x"y', aria_hidden=None) == '<p class="x&quot;y">a&lt;b</p>'
    assert join([Markup("<i></i>"), None, 3]) == "<i></i>3"
    assert tag("rect", x=1) == '<rect x="1"/>'
