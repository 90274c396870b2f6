"""What is known of a model that a deployment means: of its store, hub, directory, catalog."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from boxwright.catalog import Catalog, ModelEntry
from boxwright.catalog.architecture import Architecture
from boxwright.catalog.config_values import UnreadableConfig
from boxwright.catalog.model_config import code_classes, from_config
from boxwright.catalog.purpose import EMBEDDINGS, TEXT, purpose
from boxwright.catalog.quantization import Quantization, of_config
from boxwright.facts.model import File, HostFacts, ModelFiles
from boxwright.planner import model_files
from boxwright.spec.box import Box, Deployment, Quantize

_COMMIT = re.compile(r"[0-9a-f]{40}")
#: How a config.json names numbers of 32 bits, which engines load as 16.
_WIDE = ("float32", "torch.float32")


@dataclass(frozen=True)
class ModelSource:
    """A model as far as it is known.

    problem: why it cannot be used, with detail: `unknown-model`, `hub`, `path`, `config` (unreadable),
    `weights` (in no usable format), `task` (it serves nothing that there is), `serves` (not what is
    declared). serves: text, embeddings or reranking. weight_bytes: of the files that the engine loads, None
    where unknown; wide: they have 32-bit numbers, of which it keeps half; exact: read from the files, not
    from the catalog. mtp: whether the checkpoint has its draft layer, None where unknown. vision_bytes,
    mtp_bytes, embedding_bytes: their part of weight_bytes. code: classes that come as Python code with it.
    complete: it lies in the store, every byte verified. missing_bytes: what is still to be fetched of its
    files, None where they are unknown. config: its config.json.
    """

    name: str
    entry: ModelEntry | None = None
    repo: str | None = None
    revision: str | None = None
    path: str | None = None
    architecture: Architecture | None = None
    quantization: Quantization = field(default_factory=lambda: Quantization(None, 16))
    weight_bytes: int | None = None
    vision_bytes: int = 0
    mtp_bytes: int = 0
    embedding_bytes: int = 0
    mtp: bool | None = None
    exact: bool = False
    files: tuple[File, ...] = ()
    complete: bool = False
    directory: str | None = None
    problem: str | None = None
    detail: str = ""
    error: ModelFiles | None = None
    code: tuple[str, ...] = ()
    config: Mapping[str, Any] | None = None
    serves: str = TEXT
    wide: bool = False
    missing_bytes: int | None = None

    @property
    def download_bytes(self) -> int | None:
        """Bytes to fetch, None where unknown."""
        if self.complete or self.path:
            return 0
        return self.weight_bytes if self.missing_bytes is None else self.missing_bytes


def store_directory(box: Box, repo: str, revision: str) -> str:
    """Where a revision lies in the store."""
    return f"{box.root_dir}/models/{repo.replace('/', '--')}/{revision}"


def quantized_directory(source: str, wanted: Quantize) -> str:
    """Where a checkpoint lies that is made of the weights in `source`, beside it in the store."""
    return f"{source}-{wanted.method}-w{wanted.bits}g{wanted.group_size}"


def resolve(
    box: Box, deployment: Deployment, facts: HostFacts, catalog: Catalog, locked: str | None
) -> ModelSource:
    """Everything known of a deployment's model. locked: the commit that the lock file names."""
    model = deployment.model
    entry = catalog.models.get(model.name) if model.name else None
    if model.name and entry is None:
        return ModelSource(model.name, problem="unknown-model")
    if model.path:
        base = ModelSource(model.path, path=model.path, directory=model.path)
    else:
        base = _of_entry(entry) if entry else ModelSource(model.repo or "", repo=model.repo)
    pickled = box.settings.get("model_weights_allow_pickle")
    allowed = isinstance(pickled, (list, tuple)) and base.repo in pickled
    return _judged(located(box, base, locked or model.revision, facts, pickled=allowed), deployment.serves)


def located(
    box: Box, base: ModelSource, wanted: str | None, facts: HostFacts, *, pickled: bool = False
) -> ModelSource:
    """A source with what store, hub or directory say of it.

    wanted: the revision asked for. pickled: whether weights that can run code when loaded are let in.
    """
    if base.path:
        return _from_path(base, facts, pickled=pickled)
    repo = base.repo or ""
    answer = _best(repo, wanted, facts)
    if answer is None or answer.error:
        revision = wanted if wanted and _COMMIT.fullmatch(wanted) else None
        failed = answer is not None and facts.recorded
        return replace(
            base,
            revision=revision,
            problem="hub" if failed or base.weight_bytes is None else None,
            detail=answer.detail if answer else "",
            error=answer,
            directory=store_directory(box, repo, revision) if revision else None,
        )
    there = [
        file
        for one in facts.models
        if one.repo == repo and one.revision == answer.revision and one.origin in ("store", "staged")
        for file in one.files
    ]
    return replace(
        _read(base, answer, pickled=pickled, there=there),
        revision=answer.revision,
        directory=store_directory(box, repo, answer.revision) if answer.revision else None,
        complete=answer.complete and answer.origin == "store",
    )


def _best(repo: str, wanted: str | None, facts: HostFacts) -> ModelFiles | None:
    """The answer to believe: the store's for the wanted commit, the hub's, else what the store has whole."""
    same = [one for one in facts.models if one.repo == repo]
    stored = [one for one in same if one.origin == "store" and one.complete and not one.error]
    hub = [
        one for one in same if one.origin == "hub" and one.request == (f"{repo}@{wanted}" if wanted else repo)
    ]
    good = [one for one in hub if not one.error]
    commit = wanted if wanted and _COMMIT.fullmatch(wanted) else (good[0].revision if good else None)
    exact = [one for one in stored if one.revision == commit]
    if exact:
        return exact[0]
    if good:
        return good[0]
    if wanted is None:
        # One revision may be listed twice, and recorded facts may have been asked for the locked one.
        known = stored or [one for one in same if one.origin == "hub" and not one.error and not hub]
        if len({one.revision for one in known}) == 1:
            return known[0]
    return hub[0] if hub else None


def _of_entry(entry: ModelEntry) -> ModelSource:
    weights = entry.weights
    method = None if weights.format in ("bf16", "fp32") else weights.format
    return ModelSource(
        entry.id,
        entry=entry,
        repo=entry.repo,
        architecture=entry.architecture,
        quantization=Quantization(method, weights.bits, weights.group_size),
        weight_bytes=weights.bytes
        or weights.about
        or estimated_bytes(entry.architecture, weights.bits, weights.group_size),
        vision_bytes=entry.vision_bytes,
        mtp_bytes=entry.mtp_bytes,
        mtp=entry.mtp,
        serves=entry.serves,
        wide=weights.format == "fp32",
    )


def estimated_bytes(architecture: Architecture, bits: int, group_size: int | None) -> int:
    """Bytes of a checkpoint by its geometry: the body at its bits with scales, the rest at 16 bits."""
    body = architecture.body_parameters * bits // 8
    if bits < 16 and group_size:
        body += architecture.body_parameters // group_size * (16 + bits) // 8
    return body + 2 * (architecture.parameters - architecture.body_parameters)


def _from_path(base: ModelSource, facts: HostFacts, *, pickled: bool) -> ModelSource:
    found = next((one for one in facts.models if one.origin == "path" and one.directory == base.path), None)
    if found is None:
        return replace(
            base, problem="path" if facts.recorded else None, detail="the host was not asked about it"
        )
    if found.error:
        return replace(base, problem="path", detail=found.detail, error=found)
    return replace(_read(base, found, pickled=pickled), complete=True)


def _read(base: ModelSource, answer: ModelFiles, *, pickled: bool, there: Sequence[File] = ()) -> ModelSource:
    """The source with what an answer says of geometry, numbers, sizes and tensors.

    there: what the host has of its files, by the bytes that have come.
    """
    architecture, problem, detail = base.architecture, None, ""
    if answer.config is not None:
        try:
            architecture = from_config(answer.config)
        except UnreadableConfig as error:
            problem, detail = ("config" if architecture is None else None), str(error)
    elif architecture is None:
        problem, detail = "config", "it has no config.json"
    weights = model_files.weight_files(answer.files, answer.loaded)
    if not weights and pickled:
        weights = model_files.pickled_files(answer.files)
    if answer.files and not weights:
        problem, detail = "weights", model_files.without_safetensors(answer.files)
    size = sum(file.size for file in weights)
    here = {file.path: file.size for file in sorted(there, key=lambda file: file.size)}
    wanted = model_files.fetched(answer.files, weights)
    kinds = model_files.tensors(answer, architecture)
    return replace(
        base,
        architecture=architecture,
        problem=problem,
        detail=detail,
        files=answer.files,
        quantization=of_config(answer.config) if answer.config is not None else base.quantization,
        weight_bytes=size or base.weight_bytes,
        exact=bool(size),
        mtp=kinds.mtp if kinds else base.mtp,
        mtp_bytes=kinds.draft_layer if kinds else base.mtp_bytes,
        vision_bytes=kinds.vision if kinds else base.vision_bytes,
        embedding_bytes=kinds.embeddings if kinds else 0,
        code=code_classes(answer.config) if answer.config is not None else (),
        config=answer.config,
        missing_bytes=sum(max(0, file.size - here.get(file.path, 0)) for file in wanted) if size else None,
        wide=_is_wide(answer.config) if answer.config is not None else base.wide,
    )


def _is_wide(config: Mapping[str, Any]) -> bool:
    return any(str(config.get(name)) in _WIDE for name in ("torch_dtype", "dtype"))


def _judged(source: ModelSource, wanted: str | None) -> ModelSource:
    """The source with what it serves; refused where that is nothing, or not what is wanted."""
    entry = source.entry.serves if source.entry else None
    if source.config is None or source.problem in ("hub", "path"):
        own = entry or TEXT
        if entry and wanted not in (None, entry, *((EMBEDDINGS,) if entry == TEXT else ())):
            return replace(source, serves=entry, problem="serves", detail=f"it is for {entry}")
        return replace(source, serves=wanted or own)
    found = purpose(source.config, [file.path for file in source.files])
    serves = wanted or (entry if entry in found.can else None) or found.serves
    if serves in found.can:
        return replace(source, serves=str(serves))
    if not found.can:
        return replace(source, problem="task", detail=found.what or "")
    # Where neither anybody nor its files say, the first of what it can be stands for it elsewhere.
    why = f"it is {found.what}" if found.what else "it writes text"
    return replace(source, serves=found.can[0], problem="serves", detail=why)
