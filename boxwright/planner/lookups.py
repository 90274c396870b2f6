"""What a host has to look up before there can be a plan: the models and draft models of its deployments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from boxwright.catalog import Catalog
from boxwright.planner import drafters, quantizer
from boxwright.spec.box import Deployment, ModelRef

_NONE: Mapping[str, str] = MappingProxyType({})


def reference(deployment: Deployment, catalog: Catalog) -> ModelRef:
    """The deployment's model by repository or directory; neither for a name that the catalog lacks."""
    model = quantizer.model_of(deployment, catalog)
    entry = catalog.models.get(model.name) if model.name else None
    return ModelRef(name=model.name, repo=entry.repo) if entry else model


def lookups(
    deployments: Iterable[Deployment],
    catalog: Catalog,
    revisions: Mapping[str, str],
    drafter_revisions: Mapping[str, str] = _NONE,
) -> list[dict[str, str]]:
    """What the module host_facts has to look up: repo with revision, or path, each once.

    revisions, drafter_revisions: deployment -> locked commit of its model, of its draft model.
    """
    asked: list[dict[str, str]] = []
    for deployment in deployments:
        model, drafter = reference(deployment, catalog), drafters.reference(deployment, catalog)
        for one, locked in ((model, revisions), (drafter, drafter_revisions)):
            wanted = _lookup(one, locked.get(deployment.name)) if one else None
            if wanted and wanted not in asked:
                asked.append(wanted)
    return asked


def _lookup(model: ModelRef, locked: str | None) -> dict[str, str] | None:
    if model.repo:
        revision = locked or model.revision
        return {"repo": model.repo, "revision": revision} if revision else {"repo": model.repo}
    return {"path": model.path} if model.path else None
