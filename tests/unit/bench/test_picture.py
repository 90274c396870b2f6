"""The picture of a run: well-formed, its dots where the figures are, nothing of a name taken for markup."""

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from boxwright.bench.picture import svg
from boxwright.bench.run import read

KEPT = json.loads((Path(__file__).parent / "recorded" / "kept.json").read_text())
SVG = "{http://www.w3.org/2000/svg}"


def drawn(**changes):
    return ElementTree.fromstring(svg(read({**KEPT, **changes})))


def points(rates):
    return [
        {
            "concurrency": at,
            "context": None,
            "repeats": [{"engine": {"output_throughput": rate}} for rate in rates],
        }
        for at, rates in rates.items()
    ]


def test_four_charts_with_a_dot_a_point():
    root = drawn()
    charts = root.findall(f"{SVG}g")
    assert [len(chart.findall(f"{SVG}circle")) for chart in charts] == [1, 1, 1, 1]
    assert all(chart.find(f"{SVG}polyline") is not None for chart in charts)


def test_dots_stand_as_high_as_the_figures():
    """Twice the rate is twice the way from the axis; the spread reaches from the least to the most."""
    root = drawn(points=points({1: [50, 50, 50], 2: [90, 100, 110]}))
    first = root.find(f"{SVG}g")
    low, high = (float(dot.get("cy")) for dot in first.findall(f"{SVG}circle"))
    grid = [float(line.get("y1")) for line in first.findall(f"{SVG}line") if line.get("class") == "grid"]
    axis = max(grid)
    assert (axis - high) == pytest.approx(2 * (axis - low), abs=0.3)
    ends = [line for line in first.findall(f"{SVG}line") if line.get("class") == "ends"][1]
    assert axis - float(ends.get("y1")) == pytest.approx(1.8 * (axis - low), abs=0.3)
    assert axis - float(ends.get("y2")) == pytest.approx(2.2 * (axis - low), abs=0.3)
    assert min(grid) <= float(ends.get("y2"))


def test_the_plans_range_is_drawn_where_there_is_one():
    def bars(root):
        return [line for line in root.iter(f"{SVG}line") if line.get("class") == "plan"]

    assert len(bars(drawn())) == 2
    assert bars(drawn(plan={"speed": None})) == []


def test_names_are_text_and_nothing_else():
    root = drawn(image='evil"><script>alert(1)</script>&')
    assert root.find(f"{SVG}script") is None
    assert 'evil"><script>alert(1)</script>&' in root.find(f"{SVG}title").text


def test_a_run_of_nothing_is_still_a_picture():
    root = drawn(points=[])
    assert len([text for text in root.iter(f"{SVG}text") if text.text == "not measured"]) == 4


def test_nothing_is_drawn_outside_the_picture():
    text = svg(read(KEPT))
    assert not re.search(r'(?:x|y|cx|cy)\d?="(?:-|nan|inf)', text)


def test_a_title_is_no_longer_than_the_picture_and_keeps_what_tells_images_apart():
    image = "registry.example.org:5000/mirror/of/vllm/vllm-openai@sha256:" + "0123456789abcdef" * 4
    for given in (image, "x" * 500):
        root = drawn(image=given)
        [shown] = [
            one.text for one in root.iter(f"{SVG}text") if one.get("x") == "16" and one.get("y") == "26"
        ]
        assert len(shown) * 8 <= float(root.get("viewBox").split()[2]) - 16
        assert given in root.find(f"{SVG}title").text
    assert (
        "@sha256:0123456789ab\N{HORIZONTAL ELLIPSIS}" in drawn(image="v@sha256:" + "0123456789ab" * 5)[3].text
    )
