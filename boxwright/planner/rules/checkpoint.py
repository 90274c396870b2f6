"""Rules about what a checkpoint holds: weights in a safe format, no code, a model that can serve."""

from __future__ import annotations

from collections.abc import Sequence

from boxwright.planner.case import Case
from boxwright.planner.model_source import ModelSource
from boxwright.planner.rules.registry import Note, gate, note
from boxwright.planner.rules.words import listed, shown


def _allowed(case: Case, setting: str) -> Sequence[object]:
    value = case.host.box.settings.get(setting)
    return value if isinstance(value, (list, tuple)) else ()


@gate("weights-not-safetensors", source="https://huggingface.co/docs/safetensors")
def not_safetensors(case: Case) -> Note | None:
    """Weights are read in the safetensors format: sizes and names stand in its header, and it runs no code.

    Pickled files (.bin, .pt) run whatever their maker put in; GGUF files are for llama.cpp.
    """
    if case.model.problem != "weights":
        return None
    repo = case.model.repo
    return note(
        f"{shown(case.model.name)} cannot be served: {case.model.detail}",
        "a repository or revision with safetensors files",
        *((f"model_weights_allow_pickle: [{repo}]",) if "pickled" in case.model.detail and repo else ()),
        at="model",
    )


@gate("not-a-chat-model", source="https://docs.vllm.ai/en/latest/models/supported_models.html")
def not_a_chat_model(case: Case) -> Note | None:
    """A model must be for something that is served: text, vectors of texts, or scores that rank them.

    Draft models, encoder-decoders, reward models and classifiers of several labels are for something else.
    """
    if case.model.problem != "task":
        return None
    name = case.model.architecture.name if case.model.architecture else ""
    return note(
        f"{shown(case.model.name)} is {case.model.detail}" + (f" ({shown(name)})" if name else ""),
        "declare a model that writes text (…ForCausalLM or …ForConditionalGeneration), one that makes "
        "vectors (…Model), or one that ranks (…ForSequenceClassification with one label)",
        at="model",
    )


@gate("model-brings-code", source="https://huggingface.co/docs/transformers/custom_models")
def brings_code(case: Case) -> Note | None:
    """A repository may name Python classes of its own (auto_map), which an engine would run with its rights.

    Most such models are known to the engine by now, and a newer repository of them needs no code.
    """
    for source, at in case.sources:
        if (
            source.code
            and source.repo not in _allowed(case, "model_weights_allow_code")
            and not _native(case, source)
        ):
            return note(
                f"{shown(source.name)} brings code of its own ({listed(source.code)}), which would run here",
                "a repository of the model that brings none",
                f"model_weights_allow_code: [{source.repo or source.path}], if you have read it",
                at=at,
            )
    return None


def _native(case: Case, source: ModelSource) -> bool:
    """Whether the engine has the draft model's class itself, so that no code is fetched or run."""
    return source is case.draft_model and case.drafter is not None and bool(case.drafter.since)
