"""Rules about making an integer checkpoint on the host, and about naming a quantization."""

from __future__ import annotations

from functools import cache

from boxwright.catalog import reading
from boxwright.catalog.architecture import Architecture
from boxwright.planner.case import Case
from boxwright.planner.rules.registry import Note, advice, gate, note

AUTOAWQ = "https://github.com/casper-hansen/AutoAWQ/blob/main/awq/models/auto.py"


@cache
def _readable() -> frozenset[str]:
    return frozenset(reading.yaml_file("quantizers.yml")["autoawq"]["model_types"])


def _ready_forms(case: Case) -> list[str]:
    """4-bit forms of the same geometry that the catalog has."""
    architecture = case.architecture
    return [
        f"model: {one.id} (a ready checkpoint), without quantize"
        for one in case.host.catalog.models.values()
        if one.architecture == architecture and one.weights.bits == 4
    ][:2]


@gate("autoawq-cannot-read-model", source=AUTOAWQ)
def cannot_read(case: Case) -> Note | None:
    """AutoAWQ 0.2.9 is its last release; it knows no architecture that came after, such as the Qwen3.5
    hybrids.

    It ends in "TypeError: qwen3_5 isn't supported yet." after an hour of loading.
    """
    wanted, architecture = case.deployment.quantize, case.architecture
    if (
        wanted is None
        or architecture is None
        or not architecture.model_type
        or architecture.model_type in _readable()
    ):
        return None
    return note(
        f"AutoAWQ cannot quantize {case.model.name}: it does not know {architecture.model_type}",
        *_ready_forms(case),
        "a checkpoint made with llm-compressor's AWQ",
        at="quantize.method",
    )


@gate("already-quantized", source="https://docs.vllm.ai/en/latest/features/quantization/auto_awq.html")
def already_quantized(case: Case) -> Note | None:
    """Quantizing starts from 16-bit weights; what a checkpoint has lost already cannot be had back."""
    method = case.model.quantization.method
    if case.deployment.quantize is None or method is None:
        return None
    return note(
        f"{case.model.name} is quantized already ({method})",
        "leave quantize out",
        "declare the 16-bit model",
        at="quantize",
    )


@gate("group-size-does-not-divide", source=AUTOAWQ)
def group_size(case: Case) -> Note | None:
    """Groups of weights that share a scale divide a matrix's rows: the width is a multiple of the group."""
    wanted, architecture = case.deployment.quantize, case.architecture
    if wanted is None or architecture is None or wanted.group_size < 1:
        return None
    odd = [width for width in _widths(architecture) if width % wanted.group_size]
    if not odd:
        return None
    fitting = [size for size in (128, 64, 32) if not any(width % size for width in _widths(architecture))]
    ways = [f"quantize: {{group_size: {size}}}" for size in fitting[:1]]
    return note(
        f"group_size {wanted.group_size} does not divide the width {odd[0]} of {case.model.name}",
        *(ways or ["a ready checkpoint"]),
        at="quantize.group_size",
    )


def _widths(architecture: Architecture) -> tuple[int, ...]:
    attention, experts = architecture.attention, architecture.experts
    return (
        architecture.hidden,
        experts.intermediate if experts else architecture.intermediate,
        attention.heads * attention.head_dim,
    )


@advice("autoawq-is-retired", source="https://github.com/casper-hansen/AutoAWQ")
def retired(case: Case) -> Note | None:
    """AutoAWQ is "officially deprecated and will no longer be maintained" since May 2025; its last release
    works with Torch 2.6.0 and Transformers 4.51.3, which Boxwright installs apart. A ready checkpoint beats
    it.
    """
    wanted = case.deployment.quantize
    if wanted is None or wanted.method != "autoawq":
        return None
    ready = _ready_forms(case)
    return note(
        "AutoAWQ is not maintained any more"
        + ("; a 4-bit checkpoint of this model is published already" if ready else ""),
        *(ready or ["a checkpoint made with llm-compressor, where one is published"]),
        at="quantize",
    )


@gate(
    "quantization-against-checkpoint",
    source="https://docs.vllm.ai/en/latest/features/quantization/index.html",
)
def against_checkpoint(case: Case) -> Note | None:
    """The engine reads the quantization from the checkpoint; naming another one is fatal, naming it is
    needless.
    """
    named = next(
        (
            value
            for name, value in case.deployment.extra_args.items()
            if str(name).lstrip("-").replace("_", "-") in ("quantization", "q")
        ),
        None,
    )
    method = case.model.quantization.method if case.deployment.quantize is None else "awq"
    if not isinstance(named, str) or case.architecture is None:
        return None
    if method is None:
        if named in ("fp8", "bitsandbytes", "torchao", "humming"):
            return None
        return note(
            f"quantization {named} is named, and {case.model.name} is not quantized",
            "leave it out",
            at="extra_args.quantization",
        )
    same = (
        named == method
        or named.split("_")[0] == method.split("-")[0]
        or {named, method} <= {"inc", "auto-round"}
    )
    return note(
        f"quantization {named} is named; {case.model.name} says {method} itself",
        "leave it out",
        at="extra_args.quantization",
        soft=same,
    )
