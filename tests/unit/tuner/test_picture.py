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
    assert "failed" in texts
    assert any("box1, qwen: throughput, tokens a second, at 8 at once" in one for one in texts)


def test_nothing_measured_is_still_a_picture():
    ElementTree.fromstring(svg(GOAL, [BARS[2]], "box1", "qwen"))
