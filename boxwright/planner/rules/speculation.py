"""Rules about drafting tokens ahead."""

from __future__ import annotations

import re
from collections.abc import Mapping

from boxwright.engines import vllm
from boxwright.engines.settings import newer
from boxwright.engines.vllm_names import notes, spelling
from boxwright.planner.case import Case
from boxwright.planner.rules.registry import Note, advice, gate, note
from boxwright.planner.sharing import divides

#: How the methods are called in options, real and invented.
_METHODS = (
    ("mtp", re.compile(r"mtp|nextn", re.IGNORECASE)),
    ("dflash2", re.compile(r"dflash|flash2", re.IGNORECASE)),
    ("ngram", re.compile(r"ngram", re.IGNORECASE)),
    ("eagle", re.compile(r"eagle", re.IGNORECASE)),
)
#: Options that say how to draft, real and invented.
_DRAFTING = re.compile(r"spec|mtp|dflash|flash2|decode-kernel|attention-backend|draft")
#: Tokens of context from which the verifying kernel of FLASH_ATTN is clearly slower.
LONG_CONTEXT = 16_384
RECIPES = "https://github.com/vllm-project/recipes/blob/main/models/Qwen/Qwen3.8-27B.yaml"


@gate("mtp-without-draft-layer", source="https://github.com/vllm-project/vllm/pull/37667")
def mtp_without_layer(case: Case) -> Note | None:
    """Multi-token prediction drafts with a layer of the checkpoint; some quantized checkpoints lost theirs.

    Such a checkpoint starts, and accepts no draft at all.
    """
    if case.settings.draft_method != "mtp" or case.architecture is None:
        return None
    if case.architecture.mtp_layers and case.model.mtp is not False:
        return None
    name = case.model.name
    why = f"the files of {name} hold no mtp tensors" if case.architecture.mtp_layers else f"{name} has none"
    return note(
        f"speculative method mtp needs a draft layer, and {why}",
        "speculative: {method: none}",
        "a checkpoint that kept its draft layer",
        "speculative: {method: ngram, tokens: 4}",
        at="speculative.method",
    )


@advice("mtp-layer-unknown", source="https://github.com/sgl-project/sglang/issues/35797")
def mtp_unknown(case: Case) -> Note | None:
    """Whether a checkpoint kept its draft layer is read from its tensors' names, once the hub is asked."""
    if (
        case.settings.draft_method != "mtp"
        or case.model.mtp is not None
        or case.architecture is None
        or not case.architecture.mtp_layers
    ):
        return None
    return note(
        f"whether {case.model.name} kept its draft layer is not known",
        "plan on the host, where the hub is asked",
        at="speculative.method",
    )


@gate("drafts-not-counted", source=RECIPES)
def drafts_not_counted(case: Case) -> Note | None:
    """How many tokens are drafted a step must be said: vLLM finds no default in these models."""
    declared = case.deployment.speculative
    if declared.method == "none" or (declared.tokens or 0) > 0:
        return None
    return note(
        f"speculative method {declared.method} is declared without a number of tokens",
        f"speculative: {{method: {declared.method}, tokens: {_usual(case)}}}",
        at="speculative.tokens",
    )


@gate("drafts-across-stages", source="https://github.com/vllm-project/vllm/issues/52069", engine="vllm")
def drafts_across_stages(case: Case) -> Note | None:
    """A draft layer or a draft model is split like the model, and few of their classes can be split so.

    The engine ends with "Pipeline parallelism is not supported for this model", whatever the model itself can
    do.
    """
    settings, architecture = case.settings, case.architecture
    if (
        settings.pipeline_parallel < 2
        or settings.draft_method not in ("mtp", "dflash2")
        or architecture is None
    ):
        return None
    known: Mapping[str, str | None] = notes()["staged_draft_layers"]
    layer = settings.draft_method == "mtp"
    since = known.get(architecture.model_type) if layer else None
    if since and newer(settings.release, since):
        return None
    ranks = settings.tensor_parallel * settings.pipeline_parallel
    return note(
        f"vLLM {settings.release} cannot draft by {settings.draft_method} in {settings.pipeline_parallel} "
        f"pipeline stages",
        *([f"tensor_parallel: {ranks} without pipeline_parallel"] if divides(architecture, ranks) else []),
        "speculative: {method: none}",
        *([f"image: {case.image.with_tag(f'v{since}')} or newer"] if since else []),
        at="pipeline_parallel",
        # Of other draft layers, and of releases that were not read, it is only likely.
        soft=not settings.exact or (layer and architecture.model_type not in known),
    )


def _usual(case: Case) -> int:
    if case.drafter:
        return case.drafter.tokens
    return 3 if case.settings.draft_method == "mtp" else 4


@gate(
    "two-draft-methods",
    source="https://github.com/vllm-project/vllm/blob/v0.29.0/vllm/config/speculative.py",
)
def two_methods(case: Case) -> Note | None:
    """An engine drafts by one method: MTP and DFlash2 both propose the next tokens, and one proposal is
    verified.

    DFlash2 is a draft model, no kernel that could serve beside MTP; field report 000 adds their speeds.
    """
    named = {case.settings.draft_method} - {"none"}
    at = "speculative.method"
    for name, value in case.deployment.extra_args.items():
        if not _DRAFTING.search(spelling(name)) or value is False or value is None:
            continue
        for method, pattern in _METHODS:
            if pattern.search(f"{name} {value}"):
                named.add(method)
                at = f"extra_args.{name}"
    if len(named) < 2:
        return None
    return note(
        f"drafting by {' and '.join(sorted(named))} is declared; an engine drafts by one method",
        "speculative: {method: mtp, tokens: 3}" if "mtp" in named else "speculative: {method: …} alone",
        *(("speculative: {method: dflash2, tokens: 7}",) if "dflash2" in named else ()),
        at=at,
    )


@advice(
    "flash-attn-slows-drafts",
    source="https://github.com/alesha-pro/qwen38-27b-bench-4x3090",
    engine="vllm",
)
def flash_attn_slows(case: Case) -> Note | None:
    """Before Hopper FLASH_ATTN does not split the cache among processors when it verifies drafted tokens.

    Two RTX 3090 with MTP and a 16-bit cache fell from 62 tokens a second at 8,000 tokens of context to 8 at
    254,000; with an 8-bit cache (FLASHINFER) they kept 64. It is the kernel: reading 16 bits instead of 8
    costs 0.14 ms a step.
    """
    settings, context = case.settings, case.context
    backend = vllm.backend(case.deployment, case.command.env)
    capabilities = [card.capability for card in case.cards if card.capability]
    chosen = backend is None and settings.kv_bytes == 2
    if (
        settings.draft_method != "mtp"
        or not (chosen or (backend or "").startswith("FLASH_ATTN"))
        or settings.kv_bytes != 2
        or not capabilities
        or max(capabilities) >= (9, 0)
        or (context is not None and context < LONG_CONTEXT)
    ):
        return None
    return note(
        "a 16-bit KV cache is read by FLASH_ATTN, which verifies drafts slowly when the context is long: "
        "8 instead "
        "of 64 tokens/s at 254,000 tokens on two RTX 3090",
        "kv_cache: fp8 (FLASHINFER is picked)",
        "speculative: {method: none} for long contexts",
        at="kv_cache",
    )


@advice("many-drafts", source="https://github.com/vllm-project/vllm/issues/37035", engine="vllm")
def many_drafts(case: Case) -> Note | None:
    """Five or more drafts a step crash hybrids with cached prefixes (illegal memory access)."""
    if case.settings.draft_method != "mtp" or case.settings.draft_tokens < 5:
        return None
    return note(
        f"{case.settings.draft_tokens} drafts a step: more than 4 have crashed hybrid models, and the later "
        "ones are rarely accepted",
        "speculative: {method: mtp, tokens: 3}",
        at="speculative.tokens",
    )
