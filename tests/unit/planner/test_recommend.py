"""What is recommended on which cards, and in which order."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from boxwright import catalog, planner
from boxwright.catalog import choices as catalog_choices
from boxwright.errors import UserError
from boxwright.facts.model import Filesystem, HostFacts, OperatingSystem
from boxwright.planner import rules
from boxwright.planner.candidates import Wish
from boxwright.planner.choice import FITS, declared, whys
from boxwright.planner.recommend import Recommendation, recommend
from boxwright.spec.box import Box, Cards, Deployment, Driver, ModelRef, box_from_variables

CATALOG = catalog.load()
CHOICES = catalog_choices.load()
DEBIAN = OperatingSystem("debian", "13", "trixie", "x86_64", "6.12")


def box_of(*cards: tuple[str, int], **more: object) -> Box:
    return Box("box1", gpus=tuple(Cards(model, count) for model, count in cards), **more)


def asked(box: Box, **changes: object) -> HostFacts:
    """Facts of a host that was asked and has the declared cards."""
    facts = planner.offline_facts(box, CATALOG)
    return replace(facts, **{"recorded": True, "os": DEBIAN, **changes})


def found(*cards: tuple[str, int], family: str = "", **wish: object) -> Recommendation:
    box = box_of(*cards)
    wanted = Wish.of(CHOICES, wish.get("context"), wish.get("concurrency"), None)  # type: ignore[arg-type]
    return recommend(box, planner.offline_facts(box, CATALOG), CATALOG, wanted, family)


@pytest.mark.parametrize(
    ("cards", "best", "context"),
    [
        (("rtx5090", 1), {"model": "qwen3.8-27b-int4", "kv_cache": "fp8"}, 98304),
        (("rtx5090", 2), {"model": "qwen3.8-27b-fp8", "kv_cache": "fp8", "tensor_parallel": 2}, 262144),
        # Field report 003's own choice: 16-bit drafts slow down with a long cache, 8-bit weights at once.
        (
            ("rtx3090", 2),
            {"model": "qwen3.8-27b-int4", "kv_cache": "fp8", "speculative": {"method": "mtp", "tokens": 3}},
            262144,
        ),
        (("rtx4090", 2), {"model": "qwen3.8-27b-int4", "kv_cache": "fp8", "tensor_parallel": 2}, 262144),
        (("rtx3090", 1), {"model": "qwen3-14b-awq", "kv_cache": "fp8"}, 40960),
        (("a100-80gb", 8), {"model": "qwen3.8-27b"}, 262144),
        (("l4", 1), {"model": "qwen3-14b-awq"}, 40960),
    ],
)
def test_the_best_on_each(cards: tuple[str, int], best: dict[str, object], context: int) -> None:
    """Bounds of the context, not its exact number: that is the ledger's to say."""
    first = found(cards).choices[0]
    assert best.items() <= declared(first.deployment).items()
    assert first.fits == "yes"
    assert first.context >= context


def test_the_report_s_whole_context_wants_four_bits() -> None:
    """facts/seeds.md 003-01: two 3090s hold 262,144 tokens of the INT4 form, not of the FP8 one."""
    first = found(("rtx3090", 2), context=262144).choices[0]
    assert first.deployment.model.name == "qwen3.8-27b-int4"
    assert (first.deployment.context, first.deployment.kv_cache) == (262144, "fp8")


@pytest.mark.parametrize("cards", [("rtx5090", 1), ("rtx3090", 2), ("l4", 1), ("a100-80gb", 8)])
def test_order_is_the_rule(cards: tuple[str, int]) -> None:
    made = found(cards)
    ranks = [choice.rank for choice in made.choices]
    assert ranks == sorted(ranks)
    for choice in made.choices:
        architecture = choice.case.architecture
        assert architecture is not None
        assert choice.decode is not None
        assert choice.rank[:4] == (
            FITS.index(choice.fits),
            -CHOICES.size_class(architecture),
            choice.decode.low < CHOICES.fast_enough,
            -choice.case.model.quantization.bits,
        )
        enough = choice.context >= made.wish.context and choice.sequences >= made.wish.concurrency
        assert (choice.fits == "yes") <= enough


@pytest.mark.parametrize("cards", [("rtx5090", 1), ("rtx3090", 2), ("rtx4090", 1), ("a100-80gb", 4)])
def test_what_is_declared_is_what_was_planned(cards: tuple[str, int]) -> None:
    """The declaration of each choice goes through the decoder to a plan that refuses nothing."""
    made = found(cards)
    box = box_of(cards)
    assert made.choices
    for choice in made.choices:
        again = box_from_variables("box1", {"box_deployments": [declared(choice.deployment)]})
        assert again.deployments == (choice.deployment,)
        assert not planner.plan(
            replace(box, deployments=again.deployments), planner.offline_facts(box, CATALOG), CATALOG
        ).gates
        assert choice.deployment.concurrency <= max(1, choice.sequences)


def test_each_choice_is_distinct() -> None:
    seen = [
        (d.model, d.kv_cache, d.speculative, d.tensor_parallel, d.gpus)
        for d in (choice.deployment for choice in found(("a100-80gb", 4)).choices)
    ]
    assert len(set(seen)) == len(seen)
    assert {place[3] for place in seen} == {None, 2, 4}


def test_what_is_dropped_is_counted_by_gate() -> None:
    made = found(("rtx5090", 1))
    assert made.dropped["weights-do-not-fit"] > 0
    assert set(made.dropped) <= set(rules.stories())
    assert made.nearest is None


def test_shown_keeps_the_best_of_each_model() -> None:
    made = found(("rtx3090", 2))
    shown = made.shown(12, 2)
    assert shown[0] is made.choices[0]
    assert len(shown) == 12
    names = [choice.deployment.model.name for choice in shown]
    assert max(names.count(name) for name in names) == 2
    assert made.shown(1000, 1000) == made.choices


def test_why_names_the_first_criterion_that_differs() -> None:
    """Said again here, from what the choices are: form, and what the one has over the next."""
    made = found(("rtx3090", 2))
    words = whys(made.choices, made.wish)
    for choice, after, word in zip(made.choices, made.choices[1:], words, strict=False):
        form, _, reason = word.partition(", ")
        assert form.endswith(f" {choice.case.model.quantization.bits}-bit")
        if choice.fits != "yes":
            assert reason in ("short context", "few sequences", "may not start")
        elif after.fits != "yes":
            assert reason == "holds more"
        elif choice.size_class != after.size_class:
            assert (reason, choice.size_class > after.size_class) == ("larger", True)
        elif choice.quick != after.quick:
            assert (reason, choice.quick) == ("fast enough", True)
        elif choice.bits != after.bits:
            assert (reason, choice.bits > after.bits) == ("more bits", True)
        else:
            assert reason in ("faster", "longer")
    reasons = {word.partition(", ")[2] for word in words}
    assert reasons >= {"holds more", "larger", "more bits", "faster"}


def test_family_narrows_and_an_unknown_one_names_the_known() -> None:
    names = {choice.deployment.model.name for choice in found(("rtx5090", 2), family="qwen3.8-27b").choices}
    assert names >= {"qwen3.8-27b-fp8", "qwen3.8-27b-int4"}
    assert all(name and name.startswith("qwen3.8-27b") for name in names)
    with pytest.raises(UserError, match="begins with") as error:
        found(("rtx5090", 2), family="qwen3.9")
    assert error.value.status == 2
    assert any("qwen3" in way for way in error.value.ways_out)


def test_a_model_to_try_things_with_is_compared_only_when_asked_for() -> None:
    assert "smollm2-135m-instruct" not in {str(one.deployment.model) for one in found(("l4", 1)).choices}
    assert found(("l4", 1), family="smollm2").choices


def test_an_older_driver_that_stays_takes_the_image_for_it() -> None:
    box = box_of(("rtx4090", 1), driver=Driver(branch="570", manage=False))
    facts = asked(box)
    assert facts.driver.branch == 570
    first = recommend(box, facts, CATALOG).choices[0]
    assert first.deployment.image.endswith("-cu129")


def test_a_deployment_that_is_there_keeps_name_and_port() -> None:
    """Its own container listens on the port: that must not count as taken by somebody else."""
    here = Deployment("mine", ModelRef("qwen3-8b"), "vllm/vllm-openai:v0.29.0", port=8123)
    box = box_of(("rtx5090", 1), deployments=(here,))
    first = recommend(box, planner.offline_facts(box, CATALOG), CATALOG).choices[0].deployment
    assert (first.name, first.port) == ("mine", 8123)


def test_cards_of_two_kinds_are_not_mixed() -> None:
    made = found(("rtx5090", 1), ("rtx3090", 2))
    for choice in made.choices:
        assert len({card.title for card in choice.case.cards}) == 1
        assert choice.deployment.gpus == tuple(card.index for card in choice.case.cards)
    assert {choice.deployment.gpus for choice in made.choices} == {(0,), (1,), (1, 2)}


def test_nothing_fits_names_the_nearest_miss_and_its_way_out() -> None:
    made = found(("rtx5090", 1), family="qwen3.8-27b-fp8")
    assert made.choices == ()
    assert made.nearest is not None
    assert made.nearest.missing > 0
    (gate,) = made.nearest.gates
    assert gate.id == "weights-do-not-fit"
    assert "model: qwen3.8-27b-int4" in gate.fix


def test_no_card_is_the_reason_where_there_is_none() -> None:
    box = box_of()
    made = recommend(box, asked(box, cards=()), CATALOG)
    assert made.choices == ()
    assert made.nearest is not None
    assert [gate.id for gate in made.nearest.gates] == ["no-card"]


def test_a_small_disk_leaves_the_smaller_models() -> None:
    box = box_of(("rtx5090", 1))
    place = Filesystem("/", "/", "sda1", 80_000_000_000, 56_000_000_000)
    made = recommend(box, asked(box, filesystems=(place,)), CATALOG)
    assert made.dropped["disk-too-small"] > 0
    assert made.choices
    assert all((choice.case.model.download_bytes or 0) < 13e9 for choice in made.choices)


def test_the_whole_catalog_on_eight_cards_is_quick() -> None:
    """The budget is two seconds on an idle machine; a busy one may take several times as long."""
    started = time.process_time()
    assert found(("a100-80gb", 8)).choices
    assert time.process_time() - started < 15
