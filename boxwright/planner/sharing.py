"""How a model can be shared between tensor parallel ranks."""

from __future__ import annotations

from collections.abc import Mapping

from boxwright.catalog.architecture import Architecture
from boxwright.engines.vllm_names import spelling


def divides(architecture: Architecture, ranks: int) -> bool:
    """Whether every rank gets whole heads: query heads, KV heads or copies of them, and those of linear
    attention.
    """
    attention, linear = architecture.attention, architecture.linear
    if attention.heads % ranks:
        return False
    if attention.kv_heads % ranks and ranks % attention.kv_heads:
        return False
    return linear is None or not (linear.key_heads % ranks or linear.value_heads % ranks)


def split_part(
    architecture: Architecture, ranks: int, block: tuple[int, int] | None, options: Mapping[str, object]
) -> tuple[str, int] | None:
    """The part, and its width, whose blocks of weights that have one scale no rank would hold whole.

    block: rows and columns of weights with one scale, None where scales have another form. options: of
    extra_args; with expert parallelism a rank has whole experts.
    """
    if block is None or ranks == 1:
        return None
    whole_experts = any(
        spelling(name) == "enable-expert-parallel" and value is True for name, value in options.items()
    )
    experts, parts = architecture.experts, []
    if experts and not whole_experts:
        parts.append(("an expert", experts.intermediate))
    if experts and experts.shared:
        parts.append(("the shared expert", experts.shared))
    if experts is None or experts.dense_layers:
        parts.append(("the feed-forward part", architecture.intermediate))
    return next(
        ((what, width) for what, width in parts if any(width % (ranks * side) for side in block)), None
    )


def most_ranks(
    architecture: Architecture, cards: int, block: tuple[int, int] | None, options: Mapping[str, object]
) -> int:
    """The most of so many cards that can share the model, heads and blocks of weights whole."""
    return next(
        count
        for count in range(max(1, cards), 0, -1)
        if count == 1
        or (divides(architecture, count) and split_part(architecture, count, block, options) is None)
    )
