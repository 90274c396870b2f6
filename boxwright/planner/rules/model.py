"""Rules about the model: that it is known, that the release knows it, that its context is not exceeded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches

from boxwright.catalog import reading
from boxwright.catalog.architecture import Architecture
from boxwright.engines.vllm_names import notes
from boxwright.planner import yarn
from boxwright.planner.case import Case
from boxwright.planner.rules.registry import Note, advice, gate, note
from boxwright.planner.rules.words import ENGINES, listed, shown

#: Models of the catalog that a message names.
MOST_NAMED = 10


@gate("unknown-model", source="boxwright/catalog/data/models")
def unknown_model(case: Case) -> Note | None:
    """A model is named by its name in the catalog, by a repository of the hub or by a directory on the host.

    A name that the catalog does not have is most often a misspelt one.
    """
    if case.model.problem != "unknown-model":
        return None
    known = sorted(case.host.catalog.models)
    like = get_close_matches(case.model.name.lower(), known, 1, 0.6)
    ways = (f"model: {like[0]}",) if like else ()
    nearest = sorted(get_close_matches(case.model.name.lower(), known, MOST_NAMED, 0.0))
    return note(
        f"the catalog has no model named {shown(case.model.name)}; of its {len(known)} models the nearest "
        f"are {listed(nearest)}",
        *ways,
        "model: {repo: org/name} for any model of the hub",
        at="model",
    )


@gate("model-directory", source="https://docs.vllm.ai/en/latest/models/supported_models.html")
def model_directory(case: Case) -> Iterator[Note]:
    """A model by path is a directory on the host with config.json and safetensors files."""
    for source, at in case.sources:
        if source.problem == "path":
            yield note(
                f"{shown(source.path)} cannot be used as a model: {source.detail}",
                "put config.json, tokenizer and safetensors files there",
                "model: {repo: org/name}",
                at=at,
            )


@gate("model-config", source="https://huggingface.co/docs/transformers/main_classes/configuration")
def model_config(case: Case) -> Note | None:
    """Memory, speed and the engine's options follow from the geometry in config.json; without it there is no
    plan.
    """
    if case.model.problem != "config":
        return None
    return note(
        f"the geometry of {shown(case.model.name)} is not known: {case.model.detail}",
        "declare a repository with a config.json of a language model",
        at="model",
    )


@gate("engine-older-than-model", source="https://docs.vllm.ai/en/latest/models/supported_models.html")
def engine_older_than_model(case: Case) -> Note | None:
    """A release of the engine knows the architectures that existed when it was made; a newer one fails at
    loading.

    Field report 000 named vLLM 0.9 for Qwen3.8, whose architecture is in vLLM since 0.17.1. Of a model
    outside the catalog the class that its config.json names is looked up.
    """
    release, engine = case.image.release, case.image.engine or "vllm"
    if case.model.entry and engine in ENGINES and engine not in case.model.entry.since:
        return note(
            f"{ENGINES[engine]} has no class for {case.model.entry.title}",
            *(f"engine: {one}" for one in case.model.entry.since),
            at="engine",
        )
    since = _since(case, engine)
    if since is None or release is None or reading.version(release) >= reading.version(since):
        return None
    entry, architecture = case.model.entry, case.architecture
    what = entry.title if entry else f"{case.model.name} ({architecture.name if architecture else ''})"
    return note(
        f"{what} needs {ENGINES.get(engine, engine)} {since} or newer; the image has {release}",
        f"image: {case.image.with_tag(f'v{since}')} or newer",
        at="image",
    )


def _since(case: Case, engine: str) -> str | None:
    """The first release of an engine that knows the model's architecture, None where that is not known."""
    entry, architecture = case.model.entry, case.architecture
    if entry:
        return entry.since.get(engine)
    if architecture is None or engine != "vllm":
        return None
    classes: Mapping[str, str] = notes()["architectures"]
    return classes.get(architecture.name)


@gate("context-beyond-model", source="https://docs.vllm.ai/en/latest/configuration/engine_args.html")
def context_beyond_model(case: Case) -> Note | None:
    """A model answers sensibly up to the context it was trained for; vLLM refuses more.

    YaRN stretches the positions: more context, somewhat worse answers at every length. A model with eyes has
    its positions below text_config: what hf-overrides says beside it changes nothing.
    """
    architecture, context = case.architecture, case.settings.context
    if architecture is None or context is None or context <= architecture.context:
        return None
    stretch = yarn.declared(case.deployment)
    if stretch and architecture.vision and not stretch.inside:
        return note(
            f"context {context:,} is more than the {architecture.context:,} tokens that {case.model.name} "
            f"has: YaRN is declared beside text_config, where it changes nothing",
            _stretched(architecture, context),
            f"context: {architecture.context}",
            at="extra_args",
        )
    if stretch is not None or architecture.scaled:
        limit = stretch.limit(architecture.context) if stretch else None
        # A stretch without a factor, or one in the checkpoint's own config, is for the engine to judge.
        if stretch is None or limit is None or context <= limit:
            return None
        return note(
            f"context {context:,} is more than the {limit:,} tokens that YaRN's factor {stretch.factor:g} "
            f"gives",
            f"context: {limit}",
            f"factor: {-(-context // (stretch.original or architecture.context))} in hf-overrides",
            at="context",
        )
    return note(
        f"context {context:,} is more than the {architecture.context:,} tokens that {case.model.name} has",
        f"context: {architecture.context}",
        f"stretch it with YaRN: {_stretched(architecture, context)}",
        at="context",
    )


def _stretched(architecture: Architecture, context: int) -> str:
    """The declaration that stretches a model to a context."""
    rope = (
        f"{{rope_parameters: {{rope_type: yarn, factor: {-(-context // architecture.context)}, "
        f"original_max_position_embeddings: {architecture.context}}}}}"
    )
    inner = f"{{text_config: {rope}}}" if architecture.vision else rope
    return f"extra_args: {{hf-overrides: {inner}}}"


@advice("yarn-below-native-context", source="https://github.com/vllm-project/recipes")
def yarn_below_native(case: Case) -> Note | None:
    """Stretched positions cost quality at every length; below the native context they buy nothing."""
    architecture, context = case.architecture, case.settings.context
    if architecture is None or context is None or context > architecture.context:
        return None
    if yarn.declared(case.deployment) is None:
        return None
    return note(
        f"YaRN is declared, but {context:,} tokens are within the native {architecture.context:,}",
        "leave rope scaling out",
        at="extra_args",
    )


@advice("model-size-estimated", source="boxwright/planner/model_source.py")
def size_estimated(case: Case) -> Note | None:
    """Exact sizes come from the files' headers on the hub; without it the catalog's figure stands in."""
    model = case.model
    if model.exact or model.weight_bytes is None or model.problem or model.path:
        return None
    weights = model.entry.weights if model.entry else None
    if weights and weights.bytes:
        return None
    return note(
        f"the size of {model.name} was never published; {model.weight_bytes / 1e9:.1f} GB is an estimate",
        "plan on the host, where the hub is asked",
        at="model",
    )
