"""One choice of a recommendation: what it is, how it ranks, and what to declare for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any

from boxwright.catalog.choices import effective_parameters
from boxwright.planner import Finding, HostPlan
from boxwright.planner.candidates import Wish
from boxwright.planner.case import Case
from boxwright.planner.decode import Range
from boxwright.planner.figures import speed_of
from boxwright.spec.box import Deployment, ModelRef

#: The criteria of Choice.rank in order, and in a word.
RULE = {
    "holds what is wanted": "holds more",
    "larger model": "larger",
    "fast enough": "fast enough",
    "more bits a weight": "more bits",
    "faster": "faster",
    "longer context": "longer",
}
FITS = YES, LESS, LITTLE, PERHAPS = ("yes", "less", "little", "perhaps")


@dataclass(frozen=True)
class Choice:
    """A deployment that works on the box.

    deployment: as it would be declared. fits: yes; less or little of what was wanted; perhaps: it may not
    start. context: tokens that one sequence surely has. sequences: of the wish's length that surely stay
    in the cache at once. decode: with the wanted context, or its own if that is shorter, full.
    quick: even the low end of the range is fast enough.
    """

    deployment: Deployment
    plan: HostPlan
    fits: str
    context: int
    sequences: int
    size_class: int
    decode: Range | None
    quick: bool

    @property
    def case(self) -> Case:
        """What the plan knows of it."""
        return self.plan.cases[0]

    @property
    def bits(self) -> int:
        """Bits of a weight."""
        return self.case.model.quantization.bits

    @property
    def rank(self) -> tuple[float, ...]:
        """Smaller is better: the rule, criterion by criterion."""
        expected = float(f"{sqrt(self.decode.low * self.decode.high):.1e}") if self.decode else 0.0
        slow = not self.quick
        return (FITS.index(self.fits), -self.size_class, slow, -self.bits, -expected, -self.context)


@dataclass(frozen=True)
class Miss:
    """A choice that cannot work. missing: bytes a card that it lacks, 0 where memory is not why."""

    deployment: Deployment
    gates: tuple[Finding, ...]
    missing: int


def whys(shown: Sequence[Choice], wish: Wish) -> list[str]:
    """Of each choice: what it is, and what puts it before the next one or keeps it from the first place."""
    words = []
    for number, choice in enumerate(shown):
        after = shown[number + 1] if number + 1 < len(shown) else None
        words.append(f"{_form(choice)}, {_reason(choice, after, wish)}")
    return words


def _form(choice: Choice) -> str:
    architecture = choice.case.architecture
    size = effective_parameters(architecture) / 1e9 if architecture else 0
    return f"{size:.0f}B {choice.bits}-bit" if size >= 1 else f"{size:.1f}B {choice.bits}-bit"


def _reason(choice: Choice, after: Choice | None, wish: Wish) -> str:
    if choice.fits == PERHAPS:
        return "may not start"
    if choice.fits != YES:
        return "short context" if choice.context < wish.context else "few sequences"
    if after is None:
        return "fits"
    differing = (place for place, one in enumerate(choice.rank) if one != after.rank[place])
    return list(RULE.values())[next(differing, len(RULE) - 1)]


def choice_json(choice: Choice, why: str) -> dict[str, Any]:
    """A choice as programs read it; `deployment` is what to declare."""
    prefill = speed_of(choice.case)
    return {
        "model": str(choice.deployment.model),
        "kv_cache": choice.deployment.kv_cache,
        "speculative": {
            "method": choice.deployment.speculative.method,
            "tokens": choice.deployment.speculative.tokens,
        },
        "tensor_parallel": choice.case.settings.tensor_parallel,
        "gpus": list(choice.case.indices),
        "image": choice.deployment.image,
        "fits": choice.fits,
        "context": choice.context or None,
        "sequences": choice.sequences,
        "decode_tokens_per_s": _span(choice.decode),
        "prefill_tokens_per_s": _span(prefill.prefill if prefill else None),
        "advice": [found.id for found in choice.plan.advice],
        "why": why,
        "deployment": declared(choice.deployment),
    }


def _span(value: Range | None) -> dict[str, float] | None:
    return {"low": round(value.low, 1), "high": round(value.high, 1)} if value else None


def declared(deployment: Deployment) -> dict[str, Any]:
    """A choice's deployment as an inventory says it; what is the default is left out."""
    default = Deployment("", ModelRef(), "")
    values: dict[str, Any] = {"name": deployment.name, "model": str(deployment.model)}
    values["image"] = deployment.image
    for name in ("gpus", "tensor_parallel"):
        value = getattr(deployment, name)
        if value is not None:
            values[name] = list(value) if isinstance(value, tuple) else value
    values |= {"context": deployment.context, "concurrency": deployment.concurrency}
    if deployment.kv_cache != default.kv_cache:
        values["kv_cache"] = deployment.kv_cache
    if deployment.speculative.method != "none":
        values["speculative"] = {
            "method": deployment.speculative.method,
            "tokens": deployment.speculative.tokens,
        }
    for name in ("port", "bind"):
        if getattr(deployment, name) != getattr(default, name):
            values[name] = getattr(deployment, name)
    return values
