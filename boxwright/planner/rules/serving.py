"""Rules about what a deployment serves: text, embeddings or a ranking."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from boxwright.catalog.purpose import RERANKING, TEXT
from boxwright.engines.vllm_names import spelling
from boxwright.planner.case import Case
from boxwright.planner.rules.registry import Note, advice, gate, note
from boxwright.planner.rules.words import listed, shown
from boxwright.planner.yarn import parsed

POOLING = "https://docs.vllm.ai/en/latest/models/pooling_models.html"
#: Options that are about text which is written, of both engines.
_OF_TEXT = frozenset(
    (
        *("enable-auto-tool-choice", "tool-call-parser", "tool-parser-plugin", "reasoning-parser"),
        *("reasoning-parser-plugin", "reasoning-config", "structured-outputs-config", "generation-config"),
        *("override-generation-config", "default-chat-template-kwargs", "logits-processors", "max-logprobs"),
        *("response-role", "speculative-algorithm", "speculative-config"),
    )
)


@gate("serves-something-else", source=POOLING)
def something_else(case: Case) -> Note | None:
    """A model is made for one thing: text, vectors or scores, and nothing else comes out of it sensibly.

    What is only certain from a repository's files is said by `serves` where they do not tell.
    """
    if case.model.problem != "serves":
        return None
    wanted, name = case.deployment.serves, shown(case.model.name)
    if wanted is None:
        return note(
            f"{name} says not what it serves: {case.model.detail}",
            "serves: embeddings",
            "serves: reranking",
            at="serves",
        )
    return note(
        f"serves {wanted} is declared, and {name} cannot: {case.model.detail}",
        *(("leave serves out",) if case.deployment.serves else ()),
        f"a model that serves {wanted}",
        at="serves",
    )


@gate("only-for-text", source=POOLING)
def only_for_text(case: Case) -> Iterator[Note]:
    """Drafts, parsers of tool calls and thoughts, and answers to hold against a pattern belong to text.

    An engine that serves vectors or scores writes no token: it refuses such options, or ignores them without
    a word.
    """
    serves, declared = case.settings.serves, case.deployment
    if serves == TEXT:
        return
    said = f"it serves {serves}, and writes no text"
    if declared.speculative.method != "none":
        yield note(f"speculative is declared, but {said}", "leave speculative out", at="speculative")
    for key in ("gate_prompt", "gate_expect"):
        if getattr(declared, key) is not None:
            yield note(
                f"{key} is declared, but {said}: its vectors or scores are examined instead",
                f"leave {key} out",
                at=key,
            )
    if declared.quantize is not None:
        yield note(
            f"quantize is declared, but {said}: what quantizes here goes by the text that a model writes",
            "leave quantize out",
            at="quantize",
        )
    for name, value in declared.extra_args.items():
        if spelling(str(name).partition(".")[0]) in _OF_TEXT and value not in (None, False):
            yield note(f"{name} is declared, but {said}", f"leave {name} out", at=f"extra_args.{name}")


@gate("encoder-keeps-nothing", source=POOLING)
def keeps_nothing(case: Case) -> Iterator[Note]:
    """In an encoder every token sees all others: a text is read in one step, and nothing of it is kept.

    There is no KV cache whose format or size could be chosen, no prefix to keep, and no class of such models
    that is split into pipeline stages.
    """
    declared = case.deployment
    if not case.settings.encoder:
        return
    asked = {
        "kv_cache": declared.kv_cache != "auto",
        "kv_cache_memory_bytes": declared.kv_cache_memory_bytes is not None,
        "prefix_caching": declared.prefix_caching is True,
        "pipeline_parallel": declared.pipeline_parallel > 1,
    }
    for key in (key for key, found in asked.items() if found):
        what = "is not split into stages" if key == "pipeline_parallel" else "keeps no cache"
        yield note(
            f"{key} is declared, but {shown(case.model.name)} is an encoder, which {what}",
            f"leave {key} out",
            *(
                ("gpu_memory_utilization: … for its share of the card",)
                if key == "kv_cache_memory_bytes"
                else ()
            ),
            at=key,
        )


@gate("step-shorter-than-text", source=POOLING)
def step_shorter_than_text(case: Case) -> Note | None:
    """An encoder reads a text in one step, so a step must have room for the longest that is let in.

    The engine ends with "max_num_batched_tokens is smaller than max_model_len".
    """
    step, context = case.deployment.max_batched_tokens, case.settings.context
    if not case.settings.encoder or step is None or context is None or step >= context:
        return None
    return note(
        f"a step of {step:,} tokens has no room for a text of {context:,}, and an encoder reads it in one",
        f"max_batched_tokens: {context}",
        f"context: {step}",
        at="max_batched_tokens",
    )


@gate("ranking-without-scores", source=POOLING)
def without_scores(case: Case) -> Note | None:
    """A model that writes text ranks only where something in it gives a score.

    Some were trained to say yes or no (Qwen3-Reranker): vLLM makes a classifier of them once hf-overrides
    names the class and the two words. Their models of the catalog bring that.
    """
    settings, entry = case.settings, case.model.entry
    if settings.serves != RERANKING or settings.convert is None or (entry and entry.overrides):
        return None
    if _names_classifier(case.deployment.extra_args):
        return None
    known = [one.id for one in case.host.catalog.models.values() if one.serves == RERANKING]
    architecture = case.architecture.name if case.architecture else ""
    return note(
        f"{shown(case.model.name)} is a {architecture}, which gives no score to rank by",
        f"one of the catalog: {listed(known)}",
        "a checkpoint that is a …ForSequenceClassification with one label",
        "extra_args: {hf-overrides: {architectures: […ForSequenceClassification], "
        'classifier_from_token: ["no", "yes"], is_original_qwen3_reranker: true}}, for a Qwen3-Reranker',
        at="serves",
    )


@advice("ranker-has-a-form", source="https://huggingface.co/Qwen/Qwen3-Reranker-0.6B")
def has_a_form(case: Case) -> Note | None:
    """Qwen3-Reranker was trained on an instruction, a query and a document in a form of its own.

    vLLM joins query and document plainly unless a template is named; it ranks such pairs too, less well.
    """
    given = {spelling(name) for name in case.deployment.extra_args}
    if case.settings.serves != RERANKING or case.settings.convert is None or "chat-template" in given:
        return None
    return note(
        f"{shown(case.model.name)} ranks best what is written in the form of its card, and plain "
        "requests are not",
        "have clients write query and documents as the card says",
        "extra_args: {chat-template: …}, a template that the image has",
        at="model",
    )


def _names_classifier(options: Mapping[str, Any]) -> bool:
    """Whether the options make the engine take the model for a classifier."""
    for name, value in options.items():
        option, _, key = str(name).partition(".")
        if spelling(option) != "hf-overrides":
            continue
        given = {key: value} if key else parsed(value)
        if isinstance(given, Mapping) and {"architectures", "classifier_from_token"} & set(given):
            return True
    return False
