"""Rules about making an integer checkpoint on the host, and about naming a quantization."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from boxwright.catalog.architecture import Architecture
from boxwright.planner import quantizer
from boxwright.planner.case import Case, Host
from boxwright.planner.rules.registry import Note, advice, gate, host_gate, note
from boxwright.planner.rules.words import effort

AUTOAWQ = "https://github.com/casper-hansen/AutoAWQ/blob/main/awq/models/auto.py"
LLM_COMPRESSOR = "https://github.com/vllm-project/llm-compressor/blob/main/src/llmcompressor/modifiers/transform/awq/mappings.py"


def _ready_forms(case: Case) -> list[str]:
    """4-bit forms of the same geometry that the catalog has."""
    architecture = case.architecture
    return [
        f"model: {one.id} (a ready checkpoint), without quantize"
        for one in case.host.catalog.models.values()
        if one.architecture == architecture and one.weights.bits == 4
    ][:2]


def _unreadable(case: Case, method: str) -> str | None:
    """The architecture that a method is to quantize and does not know; None where all is well."""
    wanted, architecture = case.deployment.quantize, case.architecture
    if wanted is None or wanted.method != method or architecture is None or not architecture.model_type:
        return None
    return None if quantizer.reads(method, architecture) else architecture.model_type


@gate("autoawq-cannot-read-model", source=AUTOAWQ)
def autoawq_cannot_read(case: Case) -> Note | None:
    """AutoAWQ 0.2.9 is its last release; it knows no architecture that came after, such as the Qwen3.5
    hybrids.

    It ends in "TypeError: qwen3_5 isn't supported yet." after an hour of loading.
    """
    kind = _unreadable(case, "autoawq")
    if kind is None or case.architecture is None:
        return None
    other = (
        ["quantize: {method: llmcompressor}"] if quantizer.reads("llmcompressor", case.architecture) else []
    )
    return note(
        f"AutoAWQ cannot quantize {case.model.name}: it does not know {kind}",
        *other,
        *(_ready_forms(case) or ([] if other else ["a checkpoint of it that is published"])),
        at="quantize.method",
    )


@gate("llmcompressor-cannot-read-model", source=LLM_COMPRESSOR)
def llmcompressor_cannot_read(case: Case) -> Note | None:
    """llm-compressor's AWQ has to know which layers of an architecture follow each other. Those with experts
    are left out here: the tensors of a result have other names there than an engine looks for.
    """
    kind = _unreadable(case, "llmcompressor")
    if kind is None or case.architecture is None:
        return None
    other = ["quantize: {method: autoawq}"] if quantizer.reads("autoawq", case.architecture) else []
    return note(
        f"llm-compressor cannot quantize {case.model.name} here: {kind} is none of the architectures that "
        "were tried with it",
        *other,
        *(_ready_forms(case) or ([] if other else ["a checkpoint of it that is published"])),
        at="quantize.method",
    )


@advice("quantizer-chosen", source="https://docs.vllm.ai/en/latest/features/quantization/index.html")
def chosen(case: Case) -> Note | None:
    """`quantize: {method: auto}` takes an INT4 checkpoint of the same model that the catalog has; only where
    there is none, one is made: with AutoAWQ where it knows the architecture, otherwise with llm-compressor.
    """
    asked, wanted = case.declared.quantize, case.deployment.quantize
    if asked is None or asked.method != quantizer.AUTO or case.architecture is None:
        return None
    if wanted is None:
        return note(
            f"quantize takes {case.model.name} ({case.model.repo}), which is published in INT4, and makes "
            "nothing",
            *(f"to make one all the same: quantize: {{method: {method}}}" for method in _able(case)[:1]),
            at="quantize",
        )
    title = quantizer.titles()[wanted.method]
    why = (
        f"AutoAWQ does not know {case.architecture.model_type}"
        if wanted.method == "llmcompressor"
        else f"it knows {case.architecture.model_type}"
    )
    return note(
        f"quantize takes {title} for {case.model.name}: {why}, and the catalog has no INT4 checkpoint of it",
        *(f"to name it: quantize: {{method: {method}}}" for method in [wanted.method]),
        at="quantize",
    )


def _able(case: Case) -> list[str]:
    architecture = case.architecture
    return [method for method in quantizer.titles() if architecture and quantizer.reads(method, architecture)]


@advice("quantizing-takes", source="boxwright/planner/quantizer.py")
def takes(case: Case) -> Note | None:
    """Quantizing reads the whole 16-bit model, tries twenty scales for each part of each layer, and writes
    the result: minutes to hours on a card, days on a processor for a model of 27 thousand million weights.

    It is done before anything that serves is stopped.
    """
    wanted, needs = case.deployment.quantize, case.quantizing
    if wanted is None or needs is None:
        return None
    title = quantizer.titles().get(wanted.method, wanted.method)
    return note(
        f"quantizing {case.model.name} with {title} takes {effort(needs)}",
        "less calibration text is faster: model_quantize_calibration_blocks",
        at="quantize",
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


@gate("quantize-needs-repository", source="boxwright/planner/model_source.py")
def needs_repository(case: Case) -> Note | None:
    """What is made lies in the store beside the revision that it was made of, and is found again by it; a
    directory that a person keeps has neither.
    """
    if case.deployment.quantize is None or case.model.path is None:
        return None
    return note(
        f"{case.model.path} is a directory of the box, and only a repository's model is quantized there",
        "model: {repo: organization/name}, from box_hub or from a directory of model_weights_mirrors",
        "leave quantize out, and serve the directory as it is",
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
    attention, experts, linear = architecture.attention, architecture.experts, architecture.linear
    return (
        architecture.hidden,
        experts.intermediate if experts else architecture.intermediate,
        attention.heads * attention.head_dim,
        *([linear.value_heads * linear.value_head_dim] if linear else []),
    )


@host_gate("two-calibrations-of-one-checkpoint", source="boxwright/planner/model_source.py")
def two_calibrations(host: Host, cases: Sequence[Case]) -> Iterator[Note]:
    """A checkpoint is one directory of the store by its source, method and sizes: deployments that share it
    share the text that it was calibrated with.
    """
    first: dict[tuple[object, ...], Case] = {}
    for case in cases:
        wanted, model = case.deployment.quantize, case.model
        if wanted is None:
            continue
        before = first.setdefault(
            (model.repo, model.path, model.revision, replace(wanted, calibration=None)), case
        )
        if before.deployment.quantize != wanted:
            yield note(
                f"{before.deployment.name} and {case.deployment.name} make the same checkpoint of "
                f"{model.name} with two calibration texts",
                "one quantize.calibration for both",
                "another group_size for one of them",
                at=f"{case.path}.quantize.calibration",
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
        *(ready or ["quantize: {method: llmcompressor}, where it knows the model"]),
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
    wanted = case.deployment.quantize
    method = quantizer.FORMATS.get(wanted.method) if wanted else case.model.quantization.method
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
