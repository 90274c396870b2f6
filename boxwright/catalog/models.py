"""The catalog's models and drafters, with what is known of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from boxwright.catalog import reading
from boxwright.catalog.architecture import Architecture, Attention, Experts, LinearAttention
from boxwright.catalog.purpose import TEXT


@dataclass(frozen=True)
class Weights:
    """A checkpoint's numbers.

    format: bf16, fp32 (of which engines keep half), fp8, awq, compressed-tensors, gptq, nvfp4. bits: of a
    weight of the body. bytes: of the files, None where never published; about: a published round number.
    streamed: bytes that one decoding step reads.
    """

    format: str
    bits: int
    bytes: int | None = None
    about: int | None = None
    group_size: int | None = None
    streamed: int | None = None


@dataclass(frozen=True)
class Drafter:
    """A second model that drafts for others.

    tokens: that it was trained to draft a step, 0 where unknown. attention, sliding: as of an Architecture.
    """

    id: str
    repo: str
    targets: tuple[str, ...]
    method: str
    bytes: int
    tokens: int
    attention: Attention
    since: Mapping[str, str]
    sliding: Attention | None = None


@dataclass(frozen=True)
class ModelEntry:
    """A model of the catalog.

    since: engine -> first release that knows its architecture. tool_parsers: (first release, name), newest
    first. mtp: whether the checkpoint has its draft layer, None where unknown, with mtp_bytes. gate_*: what a
    new release is asked, and what its answer must match. of: the entry whose weights it was made of. serves:
    text, embeddings or reranking; overrides: of its config.json, without which an engine would not serve it
    so.
    """

    id: str
    repo: str
    title: str
    architecture: Architecture
    weights: Weights
    since: Mapping[str, str]
    tool_parsers: tuple[tuple[str, str], ...]
    reasoning_parser: str | None
    mtp: bool | None
    mtp_bytes: int
    vision_bytes: int
    gate_prompt: str
    gate_expect: str | None
    unconfirmed: bool = False
    of: str | None = None
    serves: str = TEXT
    overrides: Mapping[str, Any] = field(default_factory=dict)

    def tool_parser(self, release: str) -> str | None:
        """The parser of tool calls in a release of the engine, None where there is none."""
        at = reading.version(release)
        return next((name for since, name in self.tool_parsers if reading.version(since) <= at), None)


def load() -> tuple[tuple[ModelEntry, ...], tuple[Drafter, ...]]:
    """All models and drafters."""
    files = [reading.yaml_file(name) for name in reading.names("models", ".yml")]
    models = tuple(_model(entry) for file in files for entry in file["models"])
    drafters = tuple(_drafter(entry) for file in files for entry in file.get("drafters", ()))
    return models, drafters


def draft_classes() -> Mapping[str, Mapping[str, Mapping[str, str]]]:
    """Method -> class of its draft models -> engine -> first release that has it."""
    classes: Mapping[str, Mapping[str, Mapping[str, str]]] = reading.yaml_file("drafting.yml")["methods"]
    return classes


def _model(entry: Mapping[str, Any]) -> ModelEntry:
    weights, mtp, gate = entry["weights"], entry["mtp"], entry["gate"]
    return ModelEntry(
        id=entry["id"],
        repo=entry["repo"],
        title=entry["title"],
        architecture=_architecture(entry["architecture"]),
        weights=Weights(
            weights["format"],
            weights["bits"],
            weights["bytes"],
            weights.get("bytes_about"),
            weights.get("group_size"),
            weights.get("streamed"),
        ),
        since=entry["since"],
        tool_parsers=tuple((one["since"], one["name"]) for one in entry["parsers"]["tool"]),
        reasoning_parser=entry["parsers"]["reasoning"],
        mtp={"none": False, "unknown": None}.get(mtp, True) if isinstance(mtp, str) else True,
        mtp_bytes=mtp["bytes"] if isinstance(mtp, Mapping) else 0,
        vision_bytes=entry.get("vision_bytes", 0),
        gate_prompt=gate["prompt"],
        gate_expect=gate["expect"],
        unconfirmed=bool(entry.get("repo_unconfirmed")),
        of=entry.get("of"),
        serves=entry.get("serves", TEXT),
        overrides=entry.get("overrides", {}),
    )


def _architecture(entry: Mapping[str, Any]) -> Architecture:
    parts = ("attention", "sliding", "linear", "experts")
    plain = {key: value for key, value in entry.items() if key not in parts}
    return Architecture(
        **plain,
        attention=Attention(**entry["attention"]),
        sliding=Attention(**entry["sliding"]) if entry.get("sliding") else None,
        linear=LinearAttention(**entry["linear"]) if entry.get("linear") else None,
        experts=Experts(**entry["experts"]) if entry.get("experts") else None,
    )


def _drafter(entry: Mapping[str, Any]) -> Drafter:
    return Drafter(
        id=entry["id"],
        repo=entry["repo"],
        targets=tuple(entry["for"]),
        method=entry["method"],
        bytes=entry["bytes"],
        tokens=entry["tokens"],
        attention=Attention(**entry["attention"]),
        since=draft_classes()[entry["method"]][entry["class"]],
    )
