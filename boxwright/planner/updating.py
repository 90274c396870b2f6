"""What moving a box's lock to the present commits of models and digests of images would change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from boxwright.catalog import Catalog
from boxwright.errors import EXIT_BAD_INPUT, UserError
from boxwright.facts import HostFacts
from boxwright.facts.model import File, Image, ModelFiles
from boxwright.planner import drafters
from boxwright.planner.lookups import reference
from boxwright.spec.box import Box, Deployment, ModelRef

#: Files that serving reads.
SERVING = (".safetensors", ".json", ".jinja", ".model", ".tiktoken")
#: Deployment -> locked commit, of the models and of the draft models.
Locked = tuple[Mapping[str, str], Mapping[str, str]]


def moves(
    box: Box,
    catalog: Catalog,
    facts: HostFacts,
    locked: Locked,
    names: Mapping[str, tuple[str | None, str | None]],
    only: str = "",
) -> list[dict[str, Any]]:
    """Each model and draft model of the hub: its locked commit (None: none yet), and the hub's present one.

    names: deployment -> its model and draft model as the lock names them. Raises UserError when the hub does
    not tell one, or `only` names none.
    """
    found: list[dict[str, Any]] = []
    for deployment in box.deployments:
        parts = (
            ("weights", reference(deployment, catalog)),
            ("draft model", drafters.reference(deployment, catalog)),
        )
        for number, (what, model) in enumerate(parts):
            name = names[deployment.name][number]
            if model is None or not model.repo or not name or not _meant(only, deployment, model):
                continue
            before = locked[number].get(deployment.name)
            now = _answer(facts, model.repo, model.revision, box.host)
            then = _answer_at(facts, model.repo, before)
            found.append(
                {
                    "deployment": deployment.name,
                    "what": what,
                    "name": name,
                    "repo": model.repo,
                    "before": before,
                    "after": now.revision,
                    **_difference(then, now),
                }
            )
    if only and not found:
        raise UserError(
            f'no deployment has a model of the hub named "{only}"',
            where=box.host,
            status=EXIT_BAD_INPUT,
            ways_out=("--model one of: " + ", ".join(one.name for one in box.deployments),),
        )
    return found


def image_moves(box: Box, facts: HostFacts, locked: Mapping[str, str]) -> list[dict[str, Any]]:
    """Each deployment's image that is declared by a tag: its locked digest, and what the tag means now.

    locked: image -> digest. Raises UserError when a registry does not tell one.
    """
    found: list[dict[str, Any]] = []
    for deployment in box.deployments:
        image = deployment.image
        if "@" in image:
            continue  # a digest that is declared stays
        answers = [one for one in facts.images if one.reference == image]
        now = next((one for one in answers if not one.present), None)
        if now is None or now.error or not now.digest:
            raise UserError(
                f"the registry does not tell what {image} is now",
                where=box.host,
                why=(now.detail or now.error or "it gave no digest") if now else "it gave no answer",
                ways_out=("--model NAME moves the lock of a model alone",),
            )
        before = locked.get(image)
        here = next((one for one in answers if one.present and one.digest == before), None)
        found.append(
            {
                "deployment": deployment.name,
                "what": "image",
                "name": image,
                "repo": None,
                "before": before,
                "after": now.digest,
                "changed": _settings(here, now) if before != now.digest else [],
                "bytes": now.size or 0 if before != now.digest else 0,
            }
        )
    return found


def _settings(then: Image | None, now: Image) -> list[str] | None:
    """What the two say otherwise of CUDA and the driver; None where what was is not known."""
    if then is None:
        return None
    names = sorted({*then.env, *now.env})
    return [
        f"{name}: {then.env.get(name, 'none')} -> {now.env.get(name, 'none')}"
        for name in names
        if then.env.get(name) != now.env.get(name)
    ]


def _meant(only: str, deployment: Deployment, model: ModelRef) -> bool:
    return not only or only in (deployment.name, deployment.model.name, model.name, model.repo)


def _answer(facts: HostFacts, repo: str, revision: str | None, host: str) -> ModelFiles:
    request = f"{repo}@{revision}" if revision else repo
    answers = [one for one in facts.models if one.repo == repo and one.origin == "hub"]
    exact = [one for one in answers if one.request in (request, f"{repo}@main")] or (
        [one for one in facts.models if one.repo == repo and one.revision == revision] if revision else []
    )
    if not exact or exact[0].error or not exact[0].revision:
        why = exact[0].detail or exact[0].error if exact else "it gave no answer"
        raise UserError(f"the hub does not tell the present commit of {repo}", where=host, why=why)
    return exact[0]


def _answer_at(facts: HostFacts, repo: str, revision: str | None) -> ModelFiles | None:
    return next(
        (
            one
            for one in facts.models
            if revision and (one.repo, one.revision) == (repo, revision) and one.files
        ),
        None,
    )


def _difference(then: ModelFiles | None, now: ModelFiles) -> dict[str, Any]:
    """changed: files for serving that are new or other than before (None: not known); bytes: of these."""
    if then is None or then.revision == now.revision:
        return {"changed": [] if then else None, "bytes": 0}
    had = {one.path: one for one in then.files}
    other = [one for one in now.files if one.path.endswith(SERVING) and _differs(had.get(one.path), one)]
    return {"changed": sorted(one.path for one in other), "bytes": sum(one.size for one in other)}


def _differs(then: File | None, now: File) -> bool:
    if then is None or then.size != now.size:
        return True
    return bool(then.sha256 and now.sha256 and then.sha256 != now.sha256)
