"""What a box serves best: every choice of the catalog planned on it, those that cannot work dropped, the rest
ranked.

The rule, one after the other:
  1. what surely holds all that is wanted, then what holds a quarter of the context or more, then what holds
     less, then what may not start;
  2. the larger model, by size class (data/choices.yml);
  3. what is fast enough even at the low end of the expected range (data/choices.yml);
  4. more bits a weight;
  5. faster decoding of one sequence, when the wanted context is full, by the geometric mean of the expected
     range, to two digits;
  6. the longer context.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from boxwright.catalog import Catalog, ModelEntry
from boxwright.catalog import choices as catalog_choices
from boxwright.catalog.choices import Choices
from boxwright.facts.model import HostFacts
from boxwright.planner import HostPlan, candidates, plan
from boxwright.planner.candidates import Wish
from boxwright.planner.cards import of_host
from boxwright.planner.case import Case
from boxwright.planner.choice import LESS, LITTLE, PERHAPS, YES, Choice, Miss
from boxwright.planner.figures import speed_of
from boxwright.spec.box import Box, Deployment

#: Why a choice is dropped when no rule says it: its memory is not known.
UNKNOWN_MEMORY = "card-unknown"
#: The rule that says at how many sequences a cache's blocks end; a choice has as many as stay resident.
TOO_MANY_SEQUENCES = "more-sequences-than-state-blocks"
#: A choice that holds less than this part of the wanted context, or no sequence, is hardly one.
QUARTER = 4
#: Contexts are whole steps: small ones where little fits.
_STEPS = ((16384, 8192), (1024, 1024))


@dataclass(frozen=True)
class Recommendation:
    """choices: best first. dropped: id of a gate -> choices that it refuses. nearest: where nothing works."""

    wish: Wish
    choices: tuple[Choice, ...]
    dropped: Mapping[str, int]
    nearest: Miss | None

    def shown(self, most: int, of_a_model: int) -> tuple[Choice, ...]:
        """The best ones, of each model at most so many."""
        seen: Counter[str] = Counter()
        kept = []
        for choice in self.choices:
            seen[str(choice.deployment.model)] += 1
            if seen[str(choice.deployment.model)] <= of_a_model:
                kept.append(choice)
        return tuple(kept[:most])


def recommend(
    box: Box, facts: HostFacts, catalog: Catalog, wish: Wish | None = None, family: str = ""
) -> Recommendation:
    """The choices for a box, best first. family: only models whose name begins so.

    The box's driver, hub, limits and directories are taken as declared; its deployments are not.
    Raises UserError when no model is named so.
    """
    choices = catalog_choices.load()
    wanted = wish or Wish.of(choices, None, None, None)
    images = (wanted.image,) if wanted.image else choices.images
    entries = candidates.models(catalog, choices, family)
    found: list[Choice] = []
    misses: list[Miss] = []
    dropped: Counter[str] = Counter()
    for deployment in candidates.candidates(box, facts, of_host(facts, catalog), catalog, choices, entries):
        tried = (_try(box, facts, catalog, choices, wanted, replace(deployment, image=one)) for one in images)
        first = next(tried)
        good = (
            first
            if isinstance(first, Choice)
            else next((one for one in tried if isinstance(one, Choice)), None)
        )
        if good is not None:
            found.append(good)
        elif isinstance(first, Miss):
            misses.append(first)
            dropped.update({gate.id for gate in first.gates} or {UNKNOWN_MEMORY})
    nearest = None
    if not found:
        nearest = min(misses, key=lambda miss: (len(miss.gates), miss.missing), default=None)
        nearest = nearest or _without_cards(box, facts, catalog, entries[0])
    return Recommendation(wanted, tuple(sorted(found, key=lambda one: one.rank)), dropped, nearest)


def _without_cards(box: Box, facts: HostFacts, catalog: Catalog, entry: ModelEntry) -> Miss | None:
    """Why there is nothing to compare, in the words of the rules about hosts."""
    deployment = replace(candidates.start(box, facts, entry), image=catalog_choices.load().images[0])
    gates = plan(replace(box, deployments=(deployment,)), facts, catalog).gates
    return Miss(deployment, gates, 0) if gates else None


def _try(
    box: Box, facts: HostFacts, catalog: Catalog, choices: Choices, wish: Wish, deployment: Deployment
) -> Choice | Miss:
    """The deployment with the context and the sequences that surely fit, or why it cannot work."""

    def planned(**settled: Any) -> HostPlan:
        return plan(replace(box, deployments=(replace(deployment, **settled),)), facts, catalog)

    sequences = max(choices.most_sequences, wish.concurrency)
    made = planned(context="auto", concurrency=sequences)
    if {gate.id for gate in made.gates} <= {TOO_MANY_SEQUENCES} and _resident(made, wish) < sequences:
        sequences = max(1, _resident(made, wish))
        made = planned(context="auto", concurrency=sequences)
    context = _sure_context(made.cases[0])
    if context and context != made.cases[0].context:
        made = planned(context=context, concurrency=sequences)
    case = made.cases[0]
    if made.gates or case.ledger is None or case.architecture is None:
        return Miss(case.deployment, made.gates, case.ledger.short if case.ledger else 0)
    told = speed_of(case)
    decode = told.at(wish.context) if told else None
    return Choice(
        deployment=replace(case.deployment, context=context or "auto"),
        plan=made,
        fits=_fits(made, context, wish, choices),
        context=context,
        sequences=_resident(made, wish),
        size_class=choices.size_class(case.architecture),
        decode=decode,
        quick=decode is not None and decode.low >= choices.fast_enough,
    )


def _fits(made: HostPlan, context: int, wish: Wish, choices: Choices) -> str:
    if not context or any(one.id in choices.doubtful for one in made.advice):
        return PERHAPS
    held = _resident(made, wish)
    if context >= wish.context and held >= wish.concurrency:
        return YES
    return LESS if context * QUARTER >= wish.context and held else LITTLE


def _resident(made: HostPlan, wish: Wish) -> int:
    """Sequences of the wish's length that surely stay in the cache at once."""
    ledger = made.cases[0].ledger
    return ledger.layout.resident(ledger.pool.low, wish.sequence) if ledger and ledger.layout else 0


def _sure_context(case: Case) -> int:
    """The longest context that surely fits, in whole steps; 0 when not even the smallest does."""
    if case.ledger is None or case.ledger.layout is None or case.architecture is None:
        return 0
    sure = case.ledger.layout.longest(case.ledger.pool.low, case.architecture.context)
    if sure >= case.architecture.context:
        return case.architecture.context
    return next((sure // step * step for least, step in _STEPS if sure >= least), 0)
