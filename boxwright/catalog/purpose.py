"""What a model can serve: text, vectors of texts, or scores by which documents are ranked."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from boxwright.catalog.config_values import known

TEXT, EMBEDDINGS, RERANKING = "text", "embeddings", "reranking"
#: Labels of a classifier whose config.json does not say how many (transformers' default).
_LABELS = 2


@dataclass(frozen=True)
class Purpose:
    """What a model is for.

    what: a model that writes no text, in words; None for one that does. serves: what it serves where nobody
    says, None where that is not certain. can: all that it can be declared to serve.
    """

    what: str | None
    serves: str | None
    can: tuple[str, ...]


_WRITES = Purpose(None, TEXT, (TEXT, EMBEDDINGS, RERANKING))


def purpose(config: Mapping[str, Any], files: Collection[str] = ()) -> Purpose:
    """What the model of a config.json is for. files: paths of its repository."""
    found, pooled = _by_class(config)
    if found.what is not None and not pooled:
        return found
    if any(path in files for path in known()["vector_files"]):
        return Purpose("an embedding model", EMBEDDINGS, (EMBEDDINGS,))
    if found.what is None and any(path in files for path in known()["module_files"]):
        return Purpose(
            "a model of sentence-transformers, which makes vectors or scores", None, (EMBEDDINGS, RERANKING)
        )
    return found


def _by_class(config: Mapping[str, Any]) -> tuple[Purpose, bool]:
    """What the class is for, and whether files beside it may make it an embedding model."""
    if config.get("is_encoder_decoder") is True:
        return Purpose("an encoder-decoder", None, ()), False
    name = class_name(config)
    if name in known()["chat_models"]:
        return _WRITES, True
    rule = next((one for one in known()["no_chat"] if re.search(one["match"], name)), None)
    if rule is None:
        return _WRITES, True
    what, serves = str(rule["what"]), rule.get("serves")
    labels = _labels(config)
    if serves == RERANKING and labels != 1:
        return Purpose(f"{what} of {labels} labels, and only one with one label ranks", None, ()), False
    return Purpose(what, serves, (serves,) if serves else ()), bool(rule.get("pooled"))


def class_name(config: Mapping[str, Any]) -> str:
    """The first class that a config.json names, empty where it names none."""
    names = config.get("architectures")
    return str(names[0]) if isinstance(names, list) and names else ""


def is_encoder(config: Mapping[str, Any], text: Mapping[str, Any]) -> bool:
    """Whether every token sees all others, so that nothing is kept of a sequence.

    text: the language model's part of the config. Classes that write text see only what came before, whatever
    they are called.
    """
    if text.get("is_causal") is False or text.get("use_bidirectional_attention") is True:
        return True
    name = class_name(config)
    writes = re.search(r"For(CausalLM|ConditionalGeneration)$|LMHead", name)
    return not writes and re.search(known()["encoders"], name) is not None


def _labels(config: Mapping[str, Any]) -> int:
    for said in (config.get("num_labels"), config.get("id2label")):
        if isinstance(said, Mapping):
            return len(said)
        if isinstance(said, int) and not isinstance(said, bool):
            return said
    return _LABELS
