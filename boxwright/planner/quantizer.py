"""Which quantizer makes a deployment's integer checkpoint, or which published one takes its place.

`auto` takes the catalog's INT4 checkpoint of the model, else the first quantizer that knows the architecture.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from boxwright.catalog import Catalog, ModelEntry, reading
from boxwright.catalog.architecture import Architecture
from boxwright.planner.cards import PlannedCard
from boxwright.spec.box import Deployment, ModelRef

AUTO = "auto"
#: Formats of the catalog whose weights are integers with a scale a group.
INTEGER = frozenset({"awq", "gptq", "compressed-tensors", "auto-round"})
#: What a checkpoint that each of them made says of itself.
FORMATS = {"autoawq": "awq", "llmcompressor": "compressed-tensors"}
#: The role's variable for the room of a quantizer's environment (torch and what it brings), and its usual GB.
ENVIRONMENT = ("model_quantize_environment_gb", 9)
#: Bytes of main memory that the tools take beside the model.
TOOLS = 2_000_000_000
#: States of a token, as wide as the model, that a layer's calibration keeps at a time, as the role has it.
STATES = 6
#: Blocks of calibration text and tokens of each, where the role's variables do not say them.
CALIBRATION = {"model_quantize_calibration_blocks": 128, "model_quantize_calibration_tokens": 512}
#: Forward passes of a token through a layer: 20 tries of a scale for each of its parts, and some to go on.
PASSES = 28
#: Share of a card's 16-bit peak that is reached; operations a second of one processor core.
REACHED, CORE = (0.2, 0.5), (15e9, 60e9)


#: At best and at worst.
Seconds = tuple[float, float]


@dataclass(frozen=True)
class Needs:
    """What making a checkpoint takes. memory, disk: bytes. card, processor: None where unknown."""

    memory: int
    disk: int
    card: Seconds | None
    processor: Seconds | None


@cache
def _known() -> Mapping[str, frozenset[str]]:
    table = reading.yaml_file("quantizers.yml")
    return {method: frozenset(one["model_types"]) for method, one in table.items()}


@cache
def titles() -> Mapping[str, str]:
    """Method -> the quantizer's name, as its makers write it."""
    return {method: str(one["title"]) for method, one in reading.yaml_file("quantizers.yml").items()}


def reads(method: str, architecture: Architecture) -> bool:
    """Whether a quantizer knows an architecture."""
    return architecture.model_type in _known().get(method, frozenset())


def published(deployment: Deployment, catalog: Catalog) -> ModelEntry | None:
    """The catalog's INT4 checkpoint that `auto` takes; None where there is none, or a method is named.

    A revision that is named means just this checkpoint, so nothing takes its place.
    """
    wanted, model = deployment.quantize, deployment.model
    if wanted is None or wanted.method != AUTO or model.revision:
        return None
    own = next(
        (
            one
            for one in catalog.models.values()
            if one.id == model.name or (model.repo and one.repo == model.repo)
        ),
        None,
    )
    ready = (
        one
        for one in catalog.models.values()
        if own and one.of == own.id and one.weights.bits == wanted.bits and one.weights.format in INTEGER
    )
    return next(ready, None)


def model_of(deployment: Deployment, catalog: Catalog) -> ModelRef:
    """The model that is fetched for a deployment: the declared one, or the published one in its place."""
    ready = published(deployment, catalog)
    return ModelRef(name=ready.id) if ready else deployment.model


def with_published(deployment: Deployment, catalog: Catalog) -> Deployment:
    """The deployment with the published checkpoint in place of what would be made, where there is one."""
    if published(deployment, catalog) is None:
        return deployment
    return replace(deployment, model=model_of(deployment, catalog), quantize=None)


def with_method(deployment: Deployment, architecture: Architecture | None) -> Deployment:
    """The deployment with the quantizer that `auto` means; the last of them where none is known."""
    wanted = deployment.quantize
    if wanted is None or wanted.method != AUTO:
        return deployment
    methods = list(_known())
    able = (method for method in methods if architecture and reads(method, architecture))
    return replace(deployment, quantize=replace(wanted, method=next(able, methods[-1])))


def needs(
    architecture: Architecture,
    source_bytes: int,
    result_bytes: int,
    settings: Mapping[str, object],
    cards: Sequence[PlannedCard],
    cpus: int,
) -> Needs:
    """What quantizing takes. settings: the role's variables, as far as they are declared."""
    tokens = math.prod(_declared(settings, name, usual) for name, usual in CALIBRATION.items())
    wide = max(architecture.intermediate, architecture.experts.intermediate if architecture.experts else 0)
    kept = 2 * tokens * (STATES * architecture.hidden + wide)
    work = 2.0 * PASSES * architecture.body_parameters * tokens
    peak = max((card.kind.tflops * 1e12 for card in cards if card.kind and card.kind.tflops), default=0.0)
    return Needs(
        source_bytes + kept + TOOLS,
        result_bytes + _declared(settings, *ENVIRONMENT) * 1_000_000_000,
        (work / (peak * REACHED[1]), work / (peak * REACHED[0])) if peak else None,
        (work / (cpus * CORE[1]), work / (cpus * CORE[0])) if cpus else None,
    )


def _declared(settings: Mapping[str, object], name: str, usual: int) -> int:
    """A number of the role's variables, the usual one where none is declared."""
    declared = settings.get(name)
    return declared if isinstance(declared, int) and declared > 0 else usual
