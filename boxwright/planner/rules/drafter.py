"""Rules about draft models: that there is one, of the right kind, made for the model."""

from __future__ import annotations

from boxwright.catalog import reading
from boxwright.planner.case import Case
from boxwright.planner.rules.registry import Note, advice, gate, note
from boxwright.planner.rules.words import listed, shown

RECIPES = "https://github.com/vllm-project/recipes/blob/main/models/Qwen/Qwen3.8-27B.yaml"
DFLASH = "https://github.com/vllm-project/vllm/blob/v0.32.0/vllm/model_executor/models/qwen3_dflash.py"


@gate("drafter-unknown", source=RECIPES)
def drafter_unknown(case: Case) -> Note | None:
    """DFlash2 drafts with a second model that was trained for one target; the catalog knows some of them."""
    drafting, declared = case.settings.draft_method, case.deployment.speculative.model
    if (
        drafting not in case.host.catalog.draft_classes
        or case.draft_model
        or case.model.problem == "unknown-model"
    ):
        return None
    if declared is not None:
        known = sorted(one.id for one in case.host.catalog.drafters if one.method == drafting)
        return note(
            f"the catalog has no drafter named {shown(declared.name)}; it has {listed(known)}",
            "speculative: {model: {repo: org/name}} for any draft model of the hub",
            at="speculative.model",
        )
    return note(
        f"the catalog has no DFlash2 drafter for {shown(case.model.name)}",
        "speculative: {method: mtp, tokens: 3} where the model has a draft layer",
        "speculative: {method: ngram, tokens: 4}",
        "speculative: {model: {repo: org/name}} of a drafter that was trained for it",
        at="speculative.method",
    )


@gate("drafter-unusable", source=DFLASH)
def unusable(case: Case) -> Note | None:
    """A draft model is a repository with a config.json of a class that drafts, and safetensors files."""
    source, drafter = case.draft_model, case.drafter
    if source is None:
        return None
    classes = case.host.catalog.draft_classes[case.deployment.speculative.method]
    name = source.architecture.name if source.architecture else ""
    if source.problem in ("config", "weights"):
        why = source.detail
    elif source.architecture and drafter and not drafter.since:
        why = (
            f"its class is {shown(name)}; {case.settings.draft_method} drafts with {listed(sorted(classes))}"
        )
    else:
        return None
    return note(
        f"{shown(source.name)} cannot draft: {why}",
        "declare a repository of a draft model",
        "speculative: {method: none}",
        at="speculative.model",
    )


@gate("drafter-does-not-match", source=DFLASH)
def does_not_match(case: Case) -> Note | None:
    """A draft model shares the embeddings and the output of its target, so width and vocabulary are the same.

    One that was trained for another model of the same shape starts, and hardly any of its drafts is accepted.
    """
    draft = case.draft_model.architecture if case.draft_model else None
    target = case.architecture
    if draft is None or target is None or (draft.hidden, draft.vocab) == (target.hidden, target.vocab):
        return None
    return note(
        f"{shown(case.draft_model.name if case.draft_model else '')} has width {draft.hidden:,} and "
        f"{draft.vocab:,} words, {shown(case.model.name)} has {target.hidden:,} and {target.vocab:,}: it was "
        "made for another model",
        "leave speculative.model out, where the catalog has a drafter for the model",
        "a draft model that was trained for this one",
        at="speculative.model",
    )


@gate("drafter-needs-newer-engine", source="https://github.com/vllm-project/vllm/pull/52816")
def drafter_needs_newer(case: Case) -> Note | None:
    """DFlash2DraftModel is in vLLM since 0.28.0; before, the draft model cannot be loaded."""
    drafter, release = case.drafter, case.image.release
    engine = case.image.engine or "vllm"
    since = drafter.since.get(engine) if drafter else None
    if since is None or release is None or reading.version(release) >= reading.version(since):
        return None
    return note(
        f"{shown(drafter.id if drafter else '')} needs {engine} {since} or newer; the image has {release}",
        f"image: {case.image.with_tag(f'v{since}')} or newer",
        at="speculative.method",
    )


@advice("drafter-with-8-bit-cache", source="https://github.com/syv-ai/qwen38-27b-rtx3090/issues/153")
def with_8_bit_cache(case: Case) -> Note | None:
    """A block-diffusion drafter looks both ways; on Ampere only FLASH_ATTN surely does, with 16 bits.

    FLASH_ATTN reads an 8-bit cache from Hopper on and TRITON_ATTN from Ada on, which leaves FLASHINFER: with
    RTX 3090 people report that it does not start, or that it drafts at 60 % of the speed
    (noonghunna/club-3090). On Ada and Blackwell FLASHINFER does it (vllm-project/vllm#43081).
    """
    settings = case.settings
    capabilities = [card.capability for card in case.cards if card.capability]
    if (
        settings.draft_method != "dflash2"
        or settings.kv_bytes >= 2
        or not capabilities
        or min(capabilities) >= (8, 9)
    ):
        return None
    return note(
        f"DFlash2 with an 8-bit KV cache on {case.cards[0].title} may not start, or drafts at 60 % of "
        "the speed",
        "kv_cache: bf16 (FLASH_ATTN is picked)",
        "speculative: {method: mtp, tokens: 3} with kv_cache: fp8",
        at="kv_cache",
    )


@advice("drafts-beyond-block", source=DFLASH)
def beyond_block(case: Case) -> Note | None:
    """A block-diffusion drafter fills a block of the length that it was trained on, and no more."""
    drafter, tokens = case.drafter, case.settings.draft_tokens
    if drafter is None or not drafter.tokens or tokens <= drafter.tokens:
        return None
    return note(
        f"{tokens} drafts a step: {shown(drafter.id)} was trained to draft {drafter.tokens}",
        f"speculative: {{method: {case.settings.draft_method}, tokens: {drafter.tokens}}}",
        at="speculative.tokens",
    )
