"""The bars: each card that differs has its own, every use is seen, and the cells add up."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from boxwright import catalog, planner
from boxwright.cli.capacity import BAR_CELLS, MARKS, alike, bar, draw_memory, span
from boxwright.planner import figures
from boxwright.spec.box import Box, Cards, Deployment, ModelRef, Speculative

CATALOG = catalog.load()
MTP = Speculative("mtp", 3)


def memory(cards=("rtx3090", "rtx3090"), **changes):
    values = {"context": 32768, "kv_cache": "fp8", "speculative": MTP, **changes}
    model = ModelRef(name=values.pop("model", "qwen3.8-27b-int4"))
    deployment = Deployment("q", model, "vllm/vllm-openai:v0.29.0", **values)
    box = Box("box1", gpus=tuple(Cards(card, 1) for card in cards), deployments=(deployment,))
    return figures.memory(planner.plan(box, planner.offline_facts(box, CATALOG), CATALOG).cases[0])


def drawn(said, capsys):
    draw_memory(said, 32768)
    return capsys.readouterr().out


def test_cards_that_are_alike_share_a_bar(capsys):
    text = drawn(memory(), capsys)
    assert "cards 0 and 1, RTX 3090, 24.0 GiB each" in text
    assert text.count("[") == 1
    assert all(len(line) <= 100 for line in text.splitlines())


def test_what_does_not_fit_is_missing_and_leaves_no_cache(capsys):
    text = drawn(memory(cards=("rtx3090",), model="qwen3.8-27b-fp8", speculative=Speculative()), capsys)
    missing = next(line.split() for line in text.splitlines() if "missing" in line)
    assert float(missing[1]) > 0
    assert "left free" not in text
    assert "KV cache: nothing is left for it" in text
    assert not [line for line in text.splitlines() if line.endswith(" ")]


def test_pipeline_stages_have_their_own(capsys):
    said = memory(tensor_parallel=1, pipeline_parallel=2)
    text = drawn(said, capsys)
    assert "card 0, RTX 3090, 24.0 GiB: pipeline stage 1 of 2, 32 layers" in text
    assert "card 1, RTX 3090, 24.0 GiB: pipeline stage 2 of 2, 32 layers" in text
    first, last = said["cards"]
    uses = [{line["name"]: line["bytes"] for line in card["lines"]} for card in (first, last)]
    # embeddings and vision tower on the first stage, head and draft layer on the last
    assert "vision tower" in uses[0]
    assert "vision tower" not in uses[1]
    assert "drafter" in uses[1]
    assert "drafter" not in uses[0]


def test_unequal_cards_have_their_own_and_the_smaller_one_limits(capsys):
    said = memory(cards=("rtx5090", "rtx3090"))
    text = drawn(said, capsys)
    assert "card 0, RTX 5090" in text
    assert "card 1, RTX 3090" in text
    assert said["card_bytes"] == min(card["card_bytes"] for card in said["cards"])


def test_every_line_adds_up_to_the_card():
    for changes in (
        {},
        {"pipeline_parallel": 2, "tensor_parallel": 1},
        {"model": "qwen3-8b", "speculative": None},
    ):
        values = {key: value for key, value in changes.items() if value is not None}
        if "model" in values:
            values["speculative"] = Speculative("none", None)
        for card in memory(**values)["cards"]:
            assert sum(line["bytes"] for line in card["lines"]) == card["card_bytes"]


def test_a_range_of_one_number_is_that_number():
    assert span({"low": 1024, "high": 1024}) == "1,024"
    assert span({"low": 1024, "high": 2048}) == "1,024 to 2,048"
    assert span(None) == "?"


LINES = st.lists(st.integers(1, 1 << 40), min_size=1, max_size=len(MARKS))


@settings(max_examples=50)
@given(LINES)
def test_a_bar_has_all_its_cells_and_every_use(sizes):
    lines = [{"name": name, "bytes": size} for name, size in zip(MARKS, sizes, strict=False)]
    text = bar(lines, sum(sizes))
    assert len(text) == BAR_CELLS
    assert all(MARKS[line["name"]] in text for line in lines)


def test_cards_of_one_kind_and_one_stage_are_alike():
    assert [len(one) for one in alike(memory(cards=("rtx3090",) * 4)["cards"])] == [4]
