"""What is proposed on a box: the field's sweeps, judged by the plan, and never beyond a limit."""

from pathlib import Path

import pytest

from boxwright import catalog, planner
from boxwright.spec.inventory import load
from boxwright.spec.validate import judged_box
from boxwright.tuner.proposals import KINDS, Subject, data, named, refused, sweeps

RIGS = Path(__file__).resolve().parents[3] / "inventory" / "rigs"
CATALOG = catalog.load()


def subject(host, **changes):
    """A reference rig with changes: `deployment` of its first one, others of the box."""
    variables = dict(load([RIGS]).variables(host))
    first = {**variables["box_deployments"][0], **changes.pop("deployment", {})}
    variables |= {"box_deployments": [{k: v for k, v in first.items() if v is not None}], **changes}
    facts = planner.offline_facts(judged_box(host, variables), CATALOG)
    return Subject(host, first["name"], variables, facts, CATALOG, {}, {})


def proposed(subject, kind):
    (found,) = sweeps(subject, [kind])
    return found


def values(sweep):
    return [next(iter(one.options.values())) for one in sweep.tried]


@pytest.mark.parametrize("host", ["rtx3090x2", "rtx4090x2", "rtx5090", "rtx5090x2"])
def test_every_value_is_one_the_plan_takes_and_none_is_the_declared_one(host):
    about = subject(host)
    found = sweeps(about, list(KINDS))
    assert [one.kind for one in found] == list(KINDS)
    declared = about.plan({})
    for sweep in found:
        assert bool(sweep.values) or sweep.why
        for value in sweep.tried:
            assert set(value.options) == {KINDS[sweep.kind]}
            made = about.plan(value.options)
            assert not made.gates
            assert about.case(made) != about.case(declared)


def test_a_fp8_cache_and_flash_attention_are_not_tried_on_cards_that_cannot():
    found = proposed(subject("rtx4090x2", deployment={"kv_cache": "fp8"}), "backend")
    assert "FLASH_ATTN" not in values(found)
    assert any("FLASH_ATTN" in what for what, _ in refused([found]))


def test_drafts_are_those_that_the_model_has():
    found = proposed(subject("rtx5090"), "drafts")
    assert {"method": "mtp", "tokens": 4} in values(found)
    assert None in values(found)
    small = proposed(
        subject(
            "rtx5090", deployment={"model": "smollm2-135m-instruct", "speculative": None, "context": 4096}
        ),
        "drafts",
    )
    assert all(value is None or value["method"] == "ngram" for value in values(small))


def test_more_sequences_than_fit_are_not_tried_and_it_is_said_why():
    found = proposed(subject("rtx5090", deployment={"concurrency": 32}), "sequences")
    assert values(found) == [64, 16]
    ((what, why),) = refused([found])
    assert what == "concurrency: 128"
    assert why.startswith("more-sequences-than-state-blocks: concurrency 128 is more than")


def test_no_clock_above_the_cards_own_or_the_declared_one_and_the_least_first():
    free = values(proposed(subject("rtx4090x2", gpu_tuning_max_clock_mhz=None), "clock"))
    most = CATALOG.card("rtx4090").clock_graphics_mhz
    assert free == sorted(free)
    assert max(free) < most
    locked = values(proposed(subject("rtx4090x2", gpu_tuning_max_clock_mhz=2100), "clock"))
    assert max(locked) < 2100
    assert all(one % 15 == 0 for one in free + locked)
    own = subject("rtx4090x2", gpu_tuning_cards={"0": {"max_clock_mhz": 1800}})
    assert proposed(own, "clock").why == "gpu_tuning_cards declares max_clock_mhz of single cards"


def test_power_limits_are_within_what_the_cards_take():
    card = CATALOG.card("rtx5090")
    found = values(proposed(subject("rtx5090", gpu_tuning_power_limit_w=None), "power"))
    assert found[0] == card.power_min_w
    assert found == sorted(found)
    assert max(found) < card.power_default_w
    lowest = proposed(subject("rtx5090", gpu_tuning_power_limit_w=int(card.power_min_w)), "power")
    assert lowest.why == f"the cards take no limit below {card.power_min_w:.0f} W"


def test_what_is_no_value_at_all_is_refused_with_the_reason():
    refusal = subject("rtx5090").refusal({"speculative": {"method": "mtp", "tokens": 99}})
    assert refusal == "box_deployments[0].speculative.tokens is too large"


def test_words_for_people():
    assert named({}) == "as declared"
    assert named({"kv_cache": "fp8", "speculative": None}) == "kv_cache: fp8, speculative left out"


def test_the_data_says_what_every_kind_needs():
    assert set(data()) >= set(KINDS)


def test_a_plan_says_how_it_was_declared_unless_it_is_refused():
    """A release keeps it, and is a side of a bisection by it; what is refused may hold a secret."""
    about = subject("rtx5090")
    (told,) = about.plan({}).to_json()["deployments"]
    assert told["declared"]["model"] == about.declared["model"]
    for option, value in (("extra_args.api-key", "hidden-away"), ("env.MY_TOKEN", "hidden-away")):
        (told,) = about.plan({option: value}).to_json()["deployments"]
        assert told["declared"] is None
        assert "hidden-away" not in str(told)
