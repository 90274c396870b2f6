"""Which model a deployment means, and what is known of it: store, hub, directory, catalog."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from boxwright.catalog import Catalog, ModelEntry
from boxwright.catalog.architecture import Architecture
from boxwright.catalog.config_values import UnreadableConfig
from boxwright.catalog.model_config import from_config
from boxwright.facts.model import File, HostFacts, ModelFiles, TensorGroup
from boxwright.spec.box import Box, Deployment, Quantize

_COMMIT = re.compile(r"[0-9a-f]{40}")
_MTP = re.compile(r"(^|\.)mtp(\.|$)")
_VISION = re.compile(r"(^|\.)(visual|vision_tower|vision_model|multi_modal_projector)(\.|$)")


@dataclass(frozen=True)
class Quantization:
    """How a checkpoint's numbers are stored.

    method: of its quantization_config, None for 16-bit. bits: a weight.
    """

    method: str | None
    bits: int
    group_size: int | None = None


@dataclass(frozen=True)
class ModelSource:
    """A deployment's model as far as it is known.

    problem: why it is not (`unknown-model`, `hub`, `config`, `path`), with detail. weight_bytes: what the
    engine loads, None where unknown; exact: read from the files, not from the catalog. mtp: whether the
    checkpoint has its draft layer, None where unknown. vision_bytes, mtp_bytes: their part of weight_bytes.
    complete: it lies in the store, every byte verified. present_bytes: of files that need no download.
    """

    name: str
    entry: ModelEntry | None = None
    repo: str | None = None
    revision: str | None = None
    path: str | None = None
    architecture: Architecture | None = None
    quantization: Quantization = Quantization(None, 16)
    weight_bytes: int | None = None
    vision_bytes: int = 0
    mtp_bytes: int = 0
    mtp: bool | None = None
    exact: bool = False
    files: tuple[File, ...] = ()
    complete: bool = False
    directory: str | None = None
    problem: str | None = None
    detail: str = ""
    error: ModelFiles | None = None

    @property
    def download_bytes(self) -> int | None:
        """Bytes to fetch, None where unknown."""
        if self.complete or self.path:
            return 0
        return sum(file.size for file in self.files) if self.files else self.weight_bytes


def store_directory(box: Box, repo: str, revision: str) -> str:
    """Where a revision lies in the store."""
    return f"{box.root_dir}/models/{repo.replace('/', '--')}/{revision}"


def quantized_directory(source: str, wanted: Quantize) -> str:
    """Where a checkpoint lies that is made of the weights in `source`, beside it in the store."""
    return f"{source}-{wanted.method}-w{wanted.bits}g{wanted.group_size}"


def lookups(
    deployments: Iterable[Deployment], catalog: Catalog, revisions: dict[str, str]
) -> list[dict[str, str]]:
    """What the module host_facts has to look up: repo with revision, or path, each once.

    revisions: deployment -> locked commit.
    """
    asked: list[dict[str, str]] = []
    for deployment in deployments:
        model = deployment.model
        entry = catalog.models.get(model.name) if model.name else None
        repo = model.repo or (entry.repo if entry else None)
        if repo:
            revision = revisions.get(deployment.name) or model.revision
            one = {"repo": repo, "revision": revision} if revision else {"repo": repo}
        elif model.path:
            one = {"path": model.path}
        else:
            continue
        if one not in asked:
            asked.append(one)
    return asked


def resolve(
    box: Box, deployment: Deployment, facts: HostFacts, catalog: Catalog, locked: str | None
) -> ModelSource:
    """Everything known of a deployment's model. locked: the commit that the lock file names."""
    model = deployment.model
    entry = catalog.models.get(model.name) if model.name else None
    if model.name and entry is None:
        return ModelSource(model.name, problem="unknown-model")
    if model.path:
        return _from_path(model.path, facts)
    repo = model.repo or (entry.repo if entry else "") or ""
    wanted = locked or model.revision
    answer = _best(repo, wanted, facts)
    base = _of_entry(entry) if entry else ModelSource(repo, repo=repo)
    if answer is None or answer.error:
        revision = wanted if wanted and _COMMIT.fullmatch(wanted) else None
        failed = answer is not None and facts.recorded
        return _with(
            base,
            revision=revision,
            problem="hub" if failed or entry is None else None,
            detail=answer.detail if answer else "",
            error=answer,
            directory=store_directory(box, repo, revision) if revision else None,
        )
    directory = store_directory(box, repo, answer.revision) if answer.revision else None
    return _with(
        _read(base, answer),
        revision=answer.revision,
        directory=directory,
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
    if wanted is None and len(stored) == 1:
        return stored[0]
    return hub[0] if hub else None


def _with(source: ModelSource, **changes: object) -> ModelSource:
    values = {name: getattr(source, name) for name in source.__dataclass_fields__}
    return ModelSource(**{**values, **changes})


def _of_entry(entry: ModelEntry) -> ModelSource:
    weights = entry.weights
    method = None if weights.format == "bf16" else weights.format
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
    )


def estimated_bytes(architecture: Architecture, bits: int, group_size: int | None) -> int:
    """Bytes of a checkpoint by its geometry: the body at its bits with scales, the rest at 16 bits."""
    body = architecture.body_parameters * bits // 8
    if bits < 16 and group_size:
        body += architecture.body_parameters // group_size * (16 + bits) // 8
    return body + 2 * (architecture.parameters - architecture.body_parameters)


def _from_path(path: str, facts: HostFacts) -> ModelSource:
    found = next((one for one in facts.models if one.origin == "path" and one.directory == path), None)
    base = ModelSource(path, path=path, directory=path)
    if found is None:
        return _with(
            base, problem="path" if facts.recorded else None, detail="the host was not asked about it"
        )
    if found.error:
        return _with(base, problem="path", detail=found.detail)
    return _with(_read(base, found), complete=True)


def _read(base: ModelSource, answer: ModelFiles) -> ModelSource:
    """The source with what an answer says of geometry, numbers, sizes and tensors."""
    architecture, problem, detail = base.architecture, None, ""
    if answer.config is not None:
        try:
            architecture = from_config(answer.config)
        except UnreadableConfig as error:
            problem, detail = ("config" if architecture is None else None), str(error)
    elif architecture is None:
        problem, detail = "config", "there is no config.json"
    weights = weight_files(answer.files)
    size = sum(file.size for file in weights)
    groups = answer.tensors or ()
    mtp_bytes, vision_bytes = _sum(groups, _MTP), _sum(groups, _VISION)
    return _with(
        base,
        architecture=architecture,
        problem=problem,
        detail=detail,
        files=answer.files,
        quantization=_quantization(answer, base.quantization),
        weight_bytes=size or base.weight_bytes,
        exact=bool(size),
        mtp=bool(mtp_bytes) if answer.tensors is not None else base.mtp,
        mtp_bytes=mtp_bytes if answer.tensors is not None else base.mtp_bytes,
        vision_bytes=vision_bytes if answer.tensors is not None else base.vision_bytes,
    )


def weight_files(files: Iterable[File]) -> list[File]:
    """The safetensors files that an engine loads: of the top folder, not the second copy named
    `consolidated`.
    """
    plain = [file for file in files if file.path.endswith(".safetensors") and "/" not in file.path]
    return [file for file in plain if not file.path.startswith("consolidated")] or plain


def _sum(groups: Iterable[TensorGroup], name: re.Pattern[str]) -> int:
    return sum(group.bytes for group in groups if name.search(group.name))


def _quantization(answer: ModelFiles, default: Quantization) -> Quantization:
    config = answer.config or {}
    text = config.get("text_config")
    said = config.get("quantization_config") or (
        text.get("quantization_config") if isinstance(text, dict) else None
    )
    if not isinstance(said, dict):
        return Quantization(None, 16) if answer.config is not None else default
    method = str(said.get("quant_method") or said.get("quant_algo") or "unknown").lower()
    weights = _group_weights(said)
    bits = next(
        (
            value
            for value in (said.get("bits"), said.get("w_bit"), weights.get("num_bits"))
            if isinstance(value, int) and 1 <= value <= 16
        ),
        8 if "fp8" in method else 4,
    )
    size = next(
        (
            value
            for value in (said.get("group_size"), said.get("q_group_size"), weights.get("group_size"))
            if isinstance(value, int) and value > 0
        ),
        None,
    )
    return Quantization(method, bits, size)


def _group_weights(said: dict[str, object]) -> dict[str, object]:
    groups = said.get("config_groups")
    first = next(iter(groups.values()), None) if isinstance(groups, dict) else None
    weights = first.get("weights") if isinstance(first, dict) else None
    return weights if isinstance(weights, dict) else {}
