"""Parameters that are mappings: what is of another shape is told with its place, and with no value."""

import pytest
from ansible.module_utils import shapes
from ansible.module_utils.shapes import DIGITS, TEXT, Choice, Fields, ListOf, MapOf, maybe

from boxwright.ansible.modules import gpu_limits

CARDS = gpu_limits.SHAPES["cards"]
PATHS = dict.fromkeys(("config", "receipts", "script"), "/nonexistent")
BOX = Choice("kind", {"hub": Fields({"repo": TEXT}, {"size": DIGITS}), "path": Fields({})})


@pytest.mark.parametrize(
    ("value", "shape", "said"),
    [
        ([], CARDS, "x is a list, and must be a mapping"),
        ({"0": {"power_limit_w": "450"}}, CARDS, "x.0.power_limit_w is a text, and must be a number"),
        ({"0": {"power_limit_w": float("nan")}}, CARDS, "x.0.power_limit_w is no number (nan), and must be"),
        (
            {"0": {"max_clock_mhz": True}},
            CARDS,
            "x.0.max_clock_mhz is true or false, and must be a whole number",
        ),
        ({"0": {"max_clock_mhz": [1900]}}, CARDS, "x.0.max_clock_mhz is a list"),
        ({"0": {"max_clock_mhz": {"a": 1}}}, CARDS, "x.0.max_clock_mhz is a mapping"),
        ({"0": [1900]}, CARDS, "x.0 is a list, and must be a mapping"),
        ({"0": {"max_clock": 1}}, CARDS, "x.0.max_clock: it has max_clock_mhz, memory_clock_mhz"),
        ({"\ud800": 5}, CARDS, "x.\\ud800 is a whole number"),
        ({"a": None}, MapOf(TEXT), "x.a is nothing, and must be a text"),
        ({"a": 1}, ListOf(TEXT), "x is a mapping, and must be a list"),
        ([["a"]], ListOf(TEXT), "x[0] is a list, and must be a text"),
        ({}, BOX, "x.kind must be hub or path"),
        ({"kind": []}, BOX, "x.kind must be hub or path"),
        ({"kind": "hub"}, BOX, "x has no repo"),
        ({"kind": "hub", "repo": "a", "size": "1x"}, BOX, "x.size is a text, and must be a whole number"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(value, shape, said):
    (told,) = shapes.mistakes(value, shape, "x")
    assert told.startswith(said)


@pytest.mark.parametrize(
    ("value", "shape"),
    [
        (None, CARDS),
        ({}, CARDS),
        ({"0": None, "1": {}, "GPU-x": {"power_limit_w": 450.5, "max_clock_mhz": None}}, CARDS),
        ({"kind": "hub", "repo": "a", "size": "12", "more": [1]}, BOX),
        ({"kind": "path"}, BOX),
        (None, maybe(ListOf(TEXT))),
        ({}, maybe(Fields({"url": TEXT}))),
    ],
)
def test_what_fits_is_taken(value, shape):
    assert list(shapes.mistakes(value, shape, "x")) == []


@pytest.mark.parametrize("cards", [{"0": [1]}, {"0": {"power_limit_w": "450"}}, {"0": 5}, {"0": {"x": 1}}])
def test_odd_limits_of_cards_are_refused_before_anything(run_module, cards):
    result = run_module("gpu_limits", cards=cards, unit="x.service", **PATHS)
    assert result["failed"] is True
    assert result["msg"].startswith("cards.0")
    assert result["msg"].endswith("Nothing was changed")


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        (
            "host_facts",
            {"digests": {"image:1": ["sha256:0"]}},
            "digests.image:1 is a list, and must be a text",
        ),
        ("host_facts", {"declared": {"gpu_tuning": "a1"}}, "declared.gpu_tuning is a text, and must be a"),
        (
            "box_status",
            {"declared": {"gpu_tuning": {"code": 1}}},
            "declared.gpu_tuning.code is a whole number",
        ),
        ("port_access", {"deployments": [{"name": "q", "bind": "::"}]}, "deployments[0] has no port"),
        (
            "port_access",
            {"deployments": [{"name": "q", "bind": "::", "port": "80a"}]},
            "deployments[0].port is a text, and must be a whole number",
        ),
        (
            "port_access",
            {"deployments": [{"name": ["q"], "bind": "::", "port": 80}]},
            "deployments[0].name is a list, and must be a text",
        ),
    ],
)
def test_what_reads_a_host_or_guards_its_ports_takes_no_odd_mappings(run_module, name, given, said):
    own = dict(PATHS, unit="x.service", allow_from=["192.0.2.0/24"]) if name == "port_access" else {}
    result = run_module(name, **own, **given)
    assert result["failed"] is True
    assert result["msg"].startswith(said)
