"""The picture of what was tried."""

import xml.etree.ElementTree as ElementTree

from boxwright.bench.noise import Spread
from boxwright.bench.run import Place
from boxwright.tuner.picture import Bar, svg
from boxwright.tuner.trial import Goal

GOAL = Goal("throughput", "output", Place(8, None))
BARS = [
    Bar("as declared", "base", Spread(10, 9, 11, 3)),
    Bar('kv_cache: "<fp8>" & more' + " of it" * 20, "best", Spread(30, 20, 40, 3)),
    Bar("concurrency: 64", "bar", None, "failed"),
]


def test_a_bar_for_each_to_scale_with_its_ends_and_what_was_not_measured_in_words():
    root = ElementTree.fromstring(svg(GOAL, BARS, "box1", "qwen"))
    space = "{http://www.w3.org/2000/svg}"
    bars = [one for one in root.iter(f"{space}rect") if one.get("class") in ("base", "best", "bar")]
    widths = [float(one.get("width")) for one in bars]
    assert round(widths[1] / widths[0], 1) == 3.0
    right = max(float(one.get("x2")) for one in root.iter(f"{space}line"))
    assert right <= float(root.get("viewBox").split()[2])
    texts = ["".join(one.itertext()) for one in root.iter(f"{space}text")]
    assert "failedfailed" in texts  # in words, and whole where it is pointed at
    assert "box1, qwen: throughput, tokens a second, 8 at once" in texts


def test_no_text_is_longer_than_its_place_and_all_of_it_is_told():
    """At 12 px a letter is seldom wider than 6.5; a title's, bold at 14 px, than 8.2."""
    space, long = "{http://www.w3.org/2000/svg}", "a long reason " * 20
    bars = [*BARS, Bar("x" * 300, "bar", None, long)]
    root = ElementTree.fromstring(svg(GOAL, bars, "a-box-with-a-long-name." * 5, "qwen" * 20))
    wide = float(root.get("viewBox").split()[2])
    for one in root.iter(f"{space}text"):
        size = len(one.text) * (8.2 if one.get("class") == "title" else 6.5)
        left = float(one.get("x")) - (size if one.get("text-anchor") == "end" else 0)
        assert left >= 0, one.text
        assert left + size <= wide, one.text
    assert long in [one.text for one in root.iter(f"{space}title")]


def test_nothing_measured_is_still_a_picture():
    ElementTree.fromstring(svg(GOAL, [BARS[2]], "box1", "qwen"))
