"""YaRN as a deployment declares it: how far a model's positions are stretched."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from boxwright.catalog.config_values import known
from boxwright.engines.vllm_names import spelling
from boxwright.spec.box import Deployment

#: Options in which the stretching of positions may be declared; the second until vLLM 0.11.0.
OPTIONS = ("hf-overrides", "rope-scaling")
#: How deep a mapping is looked into: hf-overrides, text_config, rope_parameters.
_DEEPEST = 4
#: No model is stretched further; what says more is a mistake.
_LARGEST_FACTOR = 1000


@dataclass(frozen=True)
class Yarn:
    """A declared stretch.

    factor: None where none is said. original: tokens before it, None for the model's. inside: it is said of
    the language model's own part of the config (`text_config`).
    """

    factor: float | None = None
    original: int | None = None
    inside: bool = False

    def limit(self, native: int) -> int | None:
        """Tokens of context that it gives, None without a factor."""
        return None if self.factor is None else int((self.original or native) * self.factor)


def declared(deployment: Deployment) -> Yarn | None:
    """The stretch that a deployment's options declare, None for none."""
    for name, value in deployment.extra_args.items():
        option, _, rest = str(name).lstrip("-").partition(".")
        if spelling(option) not in OPTIONS:
            continue
        inner: object = value if rest else parsed(value)
        for part in reversed(rest.split(".") if rest else ()):
            inner = {part: inner}
        found = next(((one, inside) for one, inside in _mappings(inner, _DEEPEST) if _is_yarn(one)), None)
        if found:
            # rope-scaling is the engine's own option: it finds the part itself.
            return _yarn(found[0], inside=found[1] or spelling(option) != OPTIONS[0])
    return None


def parsed(value: object) -> object:
    """An option's value that may be JSON in a string; None for what is none."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return None


def _mappings(
    value: object, depth: int, inside: bool = False
) -> Iterator[tuple[Mapping[object, object], bool]]:
    """The mappings in a value, each with whether it is the language model's part or lies in it."""
    if isinstance(value, Mapping) and depth:
        yield value, inside
        for name, item in value.items():
            yield from _mappings(item, depth - 1, inside or name in known()["text_parts"])


def _is_yarn(value: Mapping[object, object]) -> bool:
    return "yarn" in (value.get("rope_type"), value.get("type"))


def _yarn(value: Mapping[object, object], *, inside: bool) -> Yarn:
    factor, original = value.get("factor"), value.get("original_max_position_embeddings")
    return Yarn(
        float(factor) if isinstance(factor, (int, float)) and 1 <= factor <= _LARGEST_FACTOR else None,
        original if isinstance(original, int) and not isinstance(original, bool) and original > 0 else None,
        inside,
    )
