"""What a task's variables declare: the box, and what the lock file beside its inventory knows of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from boxwright.catalog import Catalog
from boxwright.errors import UserError
from boxwright.planner import drafters, quantizer
from boxwright.spec import lock
from boxwright.spec.box import ROLE_PREFIXES, Box, Deployment
from boxwright.spec.flat import varied
from boxwright.spec.validate import judged_box

#: Facts that a run sets itself: no declaration.
OWN_FACTS = ("box_plan",)


def box_of(templar: Any, task_vars: Mapping[str, Any]) -> Box:
    """The box that a host's variables declare, templates filled in. Raises SpecErrors."""
    return judged_box(str(task_vars["inventory_hostname"]), values_of(templar, task_vars))


def varied_box(templar: Any, task_vars: Mapping[str, Any], changes: Mapping[str, Any]) -> Box:
    """The same with some options of a deployment changed; changes: {deployment, options}.

    Raises SpecErrors for values that no inventory may have, UserError for options that there are not.
    """
    variables = values_of(templar, task_vars)
    try:
        values = varied(variables, str(changes["deployment"]), changes.get("options") or {})
    except (LookupError, ValueError) as error:
        raise UserError(str(error)) from error
    return judged_box(str(task_vars["inventory_hostname"]), values)


def values_of(templar: Any, task_vars: Mapping[str, Any]) -> dict[str, Any]:
    """A host's own variables (`box_…` and the roles'), templates filled in."""
    names = [
        name
        for name in task_vars
        if isinstance(name, str) and name.startswith(("box_", *ROLE_PREFIXES)) and name not in OWN_FACTS
    ]
    return {name: plain(templar.template(task_vars[name])) for name in names}


def plain(value: Any) -> Any:
    """A value without Ansible's wrappers (tagged texts, lazy containers)."""
    if isinstance(value, Mapping):
        return {plain(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    for kind in (bool, int, float, str):
        if isinstance(value, kind):
            return kind(value)
    return value


def lock_path(task_vars: Mapping[str, Any]) -> Path | None:
    """Where the lock of the host's inventory lies; None for a host of no inventory."""
    directory = task_vars.get("inventory_dir")
    return lock.path_of(str(directory)) if directory else None


def lock_name(deployment: Deployment, catalog: Catalog) -> str | None:
    """The deployment's model as the lock names it, `org/name` or `org/name@revision`; None: a directory."""
    model = quantizer.model_of(deployment, catalog)
    entry = catalog.models.get(model.name) if model.name else None
    repo = model.repo or (entry.repo if entry else None)
    return f"{repo}@{model.revision}" if repo and model.revision else repo


def drafter_lock_name(deployment: Deployment, catalog: Catalog) -> str | None:
    """The deployment's draft model as the lock names it; None: it has none, or a directory."""
    model = drafters.reference(deployment, catalog)
    if model is None or model.repo is None:
        return None
    return f"{model.repo}@{model.revision}" if model.revision else model.repo


def locked_digests(path: Path | None, box: Box) -> dict[str, str]:
    """Image -> digest that the lock has it at, for the images that are declared now."""
    known = lock.read(path) if path else lock.Lock()
    found = {one.image: known.entry(box.host, one.name).digest_of(one.image) for one in box.deployments}
    return {image: digest for image, digest in found.items() if digest}


def locked_revisions(path: Path | None, box: Box, catalog: Catalog) -> tuple[dict[str, str], dict[str, str]]:
    """Deployment -> commit that the lock was made with, of the models and of the draft models.

    Only as far as it was made for what is declared.
    """
    models: dict[str, str] = {}
    drafts: dict[str, str] = {}
    known = lock.read(path) if path else lock.Lock()
    for deployment in box.deployments:
        entry = known.entry(box.host, deployment.name)
        model, draft = lock_name(deployment, catalog), drafter_lock_name(deployment, catalog)
        if model and (revision := entry.revision_of(model)):
            models[deployment.name] = revision
        if draft and (revision := entry.drafter_revision_of(draft)):
            drafts[deployment.name] = revision
    return models, drafts
