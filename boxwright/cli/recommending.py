"""The verb recommend: what a box could serve, best first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from boxwright import catalog, planner
from boxwright.catalog import choices as catalog_choices
from boxwright.cli import lab, recorded
from boxwright.cli.console import say, show_json, table, wrapped
from boxwright.cli.planning import read_facts
from boxwright.cli.ssh_trouble import by_host, tell_missed
from boxwright.cli.targets import targets
from boxwright.cli.validating import refuse_problems, refuse_value
from boxwright.cli.words import whole
from boxwright.errors import EXIT_FAILED, EXIT_REFUSED, UserError
from boxwright.facts import HostFacts
from boxwright.planner import candidates
from boxwright.planner.candidates import Wish
from boxwright.planner.choice import PERHAPS, RULE, Choice, Miss, choice_json, whys
from boxwright.planner.recommend import Recommendation, recommend
from boxwright.spec.validate import judged_box

#: Rows that are shown, and of one model; `--all-choices` shows all, `--model` all of that model.
MOST_ROWS, MOST_OF_A_MODEL = 12, 2
MOST_TOKENS, MOST_SEQUENCES = 10_000_000, 4096


def wish(context: str, concurrency: str, image: str) -> Wish:
    """What was asked for on the command line. Raises UserError for what is no number, and no image."""
    if image:
        refuse_value("--image", image, "box_deployments[].image")
    return Wish.of(
        catalog_choices.load(),
        whole("--context", context, MOST_TOKENS) if context else None,
        whole("--concurrency", concurrency, MOST_SEQUENCES) if concurrency else None,
        image or None,
    )


def refuse_model(model: str) -> None:
    """Raises UserError where no model that could be compared has a name that begins so."""
    candidates.models(catalog.load(), catalog_choices.load(), model)


def show(
    hosts: Sequence[str],
    inventories: Sequence[str],
    *,
    every: bool = False,
    offline: bool = False,
    facts_file: str | None = None,
    model: str = "",
    wanted: Wish,
    everything: bool = False,
    as_json: bool = False,
) -> None:
    """Compare the choices for each host; exit status 3: nothing works on one, 1: one cannot be asked."""
    refuse_model(model)
    inventory, names, paths = targets(hosts, inventories, every=every)
    refuse_problems(inventory, names)
    known: dict[str, HostFacts] = {}
    missed: dict[str, UserError] = {}
    if facts_file is not None:
        known = recorded.facts_of(facts_file, names)
    elif not offline:
        lab.ensure_simulated(inventory, names, as_json=as_json)
        known, missed = read_facts(names, inventory, paths)
    loaded = catalog.load()
    found: dict[str, Recommendation] = {}
    for name in names:
        if name not in missed:
            box = judged_box(name, inventory.variables(name))
            facts = known.get(name) or planner.offline_facts(box, loaded)
            found[name] = recommend(box, facts, loaded, wanted, model)
    alone = len(names) == 1 and not every
    if as_json:
        values = {name: recommendation_json(name, one) for name, one in found.items()}
        show_json(by_host(values, missed, alone=alone))
    else:
        for name, one in found.items():
            draw(name, one, everything=everything, of_a_model=MOST_ROWS if model else MOST_OF_A_MODEL)
        tell_missed(missed, alone=alone)
    if missed:
        raise SystemExit(EXIT_FAILED)
    if not all(one.choices for one in found.values()):
        raise SystemExit(EXIT_REFUSED)


def recommendation_json(host: str, found: Recommendation) -> dict[str, Any]:
    """All choices, best first, as programs read them."""
    return {
        "host": host,
        "wish": wish_json(found.wish),
        "rule": list(RULE),
        "choices": [
            choice_json(choice, why)
            for choice, why in zip(found.choices, whys(found.choices, found.wish), strict=True)
        ],
        "dropped": dict(found.dropped),
        "nearest": miss_json(found.nearest) if found.nearest else None,
    }


def wish_json(wanted: Wish) -> dict[str, int]:
    """What was wanted."""
    return {
        "context": wanted.context,
        "concurrency": wanted.concurrency,
        "sequence_tokens": wanted.sequence,
    }


def miss_json(miss: Miss) -> dict[str, Any]:
    """The nearest miss."""
    return {
        "model": str(miss.deployment.model),
        "missing_bytes_per_gpu": miss.missing,
        "gates": [{"id": gate.id, "message": gate.message, "fix": list(gate.fix)} for gate in miss.gates],
    }


def draw(name: str, found: Recommendation, *, everything: bool, of_a_model: int) -> None:
    """Print the table with what it goes by, or why nothing works."""
    if not found.choices:
        draw_nothing(name, found)
        return
    shown = found.choices if everything else found.shown(MOST_ROWS, of_a_model)
    wanted = found.wish
    say(
        f"{name}: wanted are {wanted.context:,} tokens for one sequence, and {wanted.concurrency} sequences "
        f"of {wanted.sequence:,} at once"
    )
    say()
    table(
        ["model", "KV", "drafts", "cards", "fits", "context", "at once", "tokens/s", "why"],
        [_row(choice, why) for choice, why in zip(shown, whys(shown, wanted), strict=True)],
        right=(3, 5, 6, 7),
    )
    say()
    say(
        wrapped(
            f"Order: {', then '.join(RULE)}. tokens/s: decoding one sequence of {wanted.context:,} tokens, "
            "or of the model's context where that is shorter. A size counts by its class, and "
            f"{catalog_choices.load().fast_enough:g} tokens/s at the low end are fast enough. why: what "
            "puts a row before the next."
        )
    )
    more = len(found.choices) - len(shown)
    words = [f"{more} more work (--all-choices)"] if more else []
    words += [f"{count} refused by {gate}" for gate, count in sorted(found.dropped.items())]
    if words:
        say(wrapped("; ".join(words) + "."))


def _row(choice: Choice, why: str) -> list[str]:
    drafts, case = choice.deployment.speculative, choice.case
    return [
        str(choice.deployment.model),
        choice.deployment.kv_cache,
        "none" if drafts.method == "none" else f"{drafts.method} {drafts.tokens}",
        str(len(case.cards)),
        choice.fits,
        f"{choice.context:,}" if choice.context else "?",
        "?" if choice.fits == PERHAPS else str(choice.sequences),
        f"{choice.decode.low:.0f}–{choice.decode.high:.0f}" if choice.decode else "?",  # noqa: RUF001
        why,
    ]


def draw_nothing(name: str, found: Recommendation) -> None:
    """Print the nearest miss and its ways out."""
    say(f"{name}: nothing of the catalog works on it")
    if found.nearest:
        say()
        say(f"  nearest: {found.nearest.deployment.model}")
        for gate in found.nearest.gates:
            say(wrapped(f"{gate.id}: {gate.message}", 4))
            for way in gate.fix:
                say(wrapped(f"- {way}", 6))
    words = [f"{count} refused by {gate}" for gate, count in sorted(found.dropped.items())]
    if words:
        say()
        say(wrapped("; ".join(words) + "."))
