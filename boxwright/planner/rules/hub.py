"""Rules about the hub: it is needed only for weights that the store does not have."""

from __future__ import annotations

from difflib import get_close_matches

from boxwright.planner.case import Case
from boxwright.planner.rules.registry import Note, gate, note
from boxwright.planner.rules.words import shown

SOURCE = "https://huggingface.co/docs/hub/models-gated"


def _failed(case: Case, *errors: str) -> bool:
    answer = case.model.error
    return case.model.problem == "hub" and answer is not None and answer.error in errors


def _catalogued(case: Case) -> list[str]:
    """The catalog's models of the same family as a repository's name says: Qwen/Qwen3.8-27B-AWQ is none, and
    qwen3.8-27b-awq is what there is.
    """
    if case.model.entry or not case.model.repo:
        return []
    wanted = case.model.repo.rpartition("/")[2].lower()
    known = {identity: identity for identity in case.host.catalog.models}
    known |= {one.repo.rpartition("/")[2].lower(): one.id for one in case.host.catalog.models.values()}
    like = get_close_matches(wanted, known, 1, 0.8)
    return [f"model: {known[like[0]]} ({case.host.catalog.models[known[like[0]]].repo})"] if like else []


@gate("hub-unreachable", source="https://github.com/vllm-project/vllm/issues/9255")
def unreachable(case: Case) -> Note | None:
    """Weights that are not in the host's store come from the hub, so it must answer before anything is
    changed.

    A host whose store has the locked revision needs no hub.
    """
    if not _failed(case, "unreachable", "dns", "tls", "invalid"):
        return None
    hub = case.host.box.hub.endpoint
    return note(
        f"the hub {hub} cannot be used for {shown(case.model.name)}: {case.model.detail}",
        "see that the host reaches it (box_proxy, box_hub.endpoint)",
        "put the weights into the store first",
        at="model",
    )


@gate("hub-unauthorized", source=SOURCE)
def unauthorized(case: Case) -> Note | None:
    """The hub wants to know who asks (401): the model is private or gated, or the token is wrong, or no such
    model.

    The hub answers 401 for names that do not exist, too, so that nobody can try names.
    """
    if not _failed(case, "unauthorized"):
        return None
    token = case.host.box.hub.token
    way = "the token is refused: make a new one" if token else "box_hub: {token: …} of an account with access"
    return note(
        f"the hub does not show {shown(case.model.repo)} to {'this token' if token else 'anybody'} (401); "
        "it answers the same for a repository that does not exist",
        *_catalogued(case),
        "see that the repository's name is right",
        way,
        at="model",
    )


@gate("hub-forbidden", source=SOURCE)
def forbidden(case: Case) -> Note | None:
    """The hub knows the account and does not let it in (403): the model's licence was not accepted."""
    if not _failed(case, "forbidden"):
        return None
    endpoint = case.host.box.hub.endpoint
    return note(
        f"the account of the token may not read {shown(case.model.repo)} (403)",
        f"accept its licence at {endpoint}/{case.model.repo}",
        at="model",
    )


@gate("hub-not-found", source="https://huggingface.co/docs/hub/repositories")
def not_found(case: Case) -> Note | None:
    """The hub has no such repository, or no such revision in it."""
    if not _failed(case, "not-found"):
        return None
    return note(
        f"the hub has no {shown(case.deployment.model)}: {case.model.detail}",
        *_catalogued(case),
        "see that repository and revision are spelt right",
        at="model",
    )


@gate("model-unknown-offline", source="boxwright/planner/model_source.py")
def unknown_offline(case: Case) -> Note | None:
    """A model outside the catalog is known by what the hub says of it; without a look there is no plan."""
    if case.model.problem != "hub" or case.model.error is not None:
        return None
    return note(
        f"nothing is known of {shown(case.model.name)} without asking the hub",
        *_catalogued(case),
        "plan on the host instead of offline",
        "use a model of the catalog",
        at="model",
    )
