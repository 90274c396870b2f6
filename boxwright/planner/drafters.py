"""The draft model of a deployment: which it means, and what is known of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from boxwright.catalog import Catalog, Drafter
from boxwright.catalog.config_values import UnreadableConfig
from boxwright.catalog.model_config import from_config
from boxwright.facts.model import HostFacts
from boxwright.planner.model_source import ModelSource, located
from boxwright.spec.box import Box, Deployment, ModelRef


def reference(deployment: Deployment, catalog: Catalog) -> ModelRef | None:
    """The draft model by repository or directory: the declared one, else the catalog's for the model.

    None where the method has no model of its own, or where there is none for this model.
    """
    declared, method = deployment.speculative.model, deployment.speculative.method
    if method not in catalog.draft_classes:
        return None
    if declared is not None and not declared.name:
        return declared
    entry = _entry(deployment, catalog)
    return ModelRef(name=entry.id, repo=entry.repo) if entry else None


def _entry(deployment: Deployment, catalog: Catalog) -> Drafter | None:
    declared, method = deployment.speculative.model, deployment.speculative.method
    if declared is None:
        return catalog.drafter(deployment.model.name, method)
    return next((one for one in catalog.drafters if one.id == declared.name and one.method == method), None)


def resolve(
    box: Box, deployment: Deployment, facts: HostFacts, catalog: Catalog, locked: str | None
) -> ModelSource | None:
    """Everything known of the draft model; None where there is none. locked: the commit in the lock file."""
    wanted = reference(deployment, catalog)
    if wanted is None:
        return None
    entry = _entry(deployment, catalog)
    if wanted.path:
        base = ModelSource(wanted.path, path=wanted.path, directory=wanted.path)
    else:
        name = entry.id if entry else wanted.repo or ""
        base = ModelSource(name, repo=wanted.repo, weight_bytes=entry.bytes if entry else None)
    source = located(box, base, locked or wanted.revision, facts)
    if source.config is None:
        # Its geometry is the catalog's, or unknown together with its files.
        return replace(source, problem=None) if entry and source.problem == "config" else source
    try:
        return replace(source, architecture=from_config(_with_layers(source.config)))
    except UnreadableConfig as error:
        return replace(source, problem="config", detail=str(error))


def _with_layers(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """A draft model's config with the kinds of its layers said as other models say them.

    Source: vllm model_executor/models/qwen3_dflash.py: without layer_types all layers have a window, or none.
    """
    own, count = config.get("dflash_config"), config.get("num_hidden_layers")
    own = own if isinstance(own, Mapping) else {}
    window = own.get("swa_window_size") or config.get("sliding_window")
    if config.get("layer_types") or not isinstance(count, int) or not 0 < count <= 4096:
        return {**config, "sliding_window": window}
    kind = "sliding_attention" if own.get("use_swa") else "full_attention"
    return {**config, "sliding_window": window, "layer_types": [kind] * count}


def drafter(deployment: Deployment, source: ModelSource | None, catalog: Catalog) -> Drafter | None:
    """The numbers of a draft model, of its own files or else the catalog's; None where they are unknown."""
    if source is None:
        return None
    entry, architecture = _entry(deployment, catalog), source.architecture
    if architecture is None or source.weight_bytes is None:
        return entry
    method = deployment.speculative.method
    since = catalog.draft_classes[method].get(architecture.name, {})
    return Drafter(
        id=source.name,
        repo=source.repo or "",
        targets=entry.targets if entry else (),
        method=method,
        bytes=source.weight_bytes,
        tokens=_tokens(source.config or {}) or (entry.tokens if entry else 0),
        attention=architecture.attention,
        since=since,
        sliding=architecture.sliding,
    )


def _tokens(config: Mapping[str, Any]) -> int | None:
    """Tokens that it was trained to draft: its block less the token that the block begins with."""
    own = config.get("dflash_config")
    block = (own.get("block_size") if isinstance(own, Mapping) else None) or config.get("block_size")
    return block - 1 if isinstance(block, int) and not isinstance(block, bool) and 1 < block <= 4096 else None
