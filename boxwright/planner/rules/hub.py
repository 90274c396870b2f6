"""Rules about the hub: it is needed only for weights that the store does not have."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

from boxwright.facts.model import ModelFiles
from boxwright.planner.case import Case
from boxwright.planner.model_source import ModelSource
from boxwright.planner.rules.registry import Note, gate, note
from boxwright.planner.rules.words import shown

SOURCE = "https://huggingface.co/docs/hub/models-gated"


def _failed(case: Case, *errors: str) -> Iterator[tuple[ModelSource, str, ModelFiles]]:
    """The models that the hub refused in one of these ways, with where they are declared and its answer."""
    for source, at in case.sources:
        if source.problem == "hub" and source.error is not None and source.error.error in errors:
            yield source, at, source.error


def _catalogued(case: Case, source: ModelSource) -> list[str]:
    """The catalog's models of the same family as a repository's name says: Qwen/Qwen3.8-27B-AWQ is none, and
    qwen3.8-27b-awq is what there is.
    """
    if source is not case.model or source.entry or not source.repo:
        return []
    wanted = source.repo.rpartition("/")[2].lower()
    known = {identity: identity for identity in case.host.catalog.models}
    known |= {one.repo.rpartition("/")[2].lower(): one.id for one in case.host.catalog.models.values()}
    like = get_close_matches(wanted, known, 1, 0.8)
    return [f"model: {known[like[0]]} ({case.host.catalog.models[known[like[0]]].repo})"] if like else []


@gate("hub-unreachable", source="https://github.com/vllm-project/vllm/issues/9255")
def unreachable(case: Case) -> Iterator[Note]:
    """Weights that are not in the host's store come from the hub, so it must answer before anything is
    changed.

    A host whose store has the locked revision needs no hub.
    """
    hub = case.host.box.hub.address
    for source, at, _ in _failed(case, "unreachable", "dns", "tls"):
        yield note(
            f"the hub {hub} cannot be used for {shown(source.name)}: {source.detail}",
            "see that the host reaches it (box_proxy, box_hub.endpoint)",
            "put the weights into the store first",
            at=at,
        )


@gate("hub-unreadable", source="https://huggingface.co/docs/hub/api")
def unreadable(case: Case) -> Iterator[Note]:
    """What a hub says of a model must make sense: a broken repository, or a page that asks for a login, does
    not.
    """
    for source, at, _ in _failed(case, "invalid"):
        yield note(
            f"what the hub says of {shown(source.name)} makes no sense: {source.detail}",
            "another revision or repository, where it is the repository that is broken",
            "see that box_hub.endpoint is a hub, and that no proxy answers in its place",
            at=at,
        )


@gate("hub-busy", source="https://huggingface.co/docs/hub/rate-limits")
def busy(case: Case) -> Iterator[Note]:
    """A hub answers only so many requests in some minutes (429), fewer without a token."""
    for source, at, _ in _failed(case, "rate-limited"):
        yield note(
            f"the hub asks to come back later for {shown(source.name)}: {source.detail}",
            "run again in some minutes",
            *(() if case.host.box.hub.token else ("box_hub: {token: …}, which raises the limit",)),
            at=at,
        )


@gate("hub-unauthorized", source=SOURCE)
def unauthorized(case: Case) -> Iterator[Note]:
    """The hub wants to know who asks (401): the model is private or gated, or the token is wrong, or no such
    model.

    The hub answers 401 for names that do not exist, too, so that nobody can try names.
    """
    hub = case.host.box.hub
    way = (
        "the token is refused: make a new one"
        if hub.token
        else "box_hub: {token: …} of an account with access"
    )
    for source, at, answer in _failed(case, "unauthorized"):
        if answer.code == "GatedRepo":
            yield note(
                f"{shown(source.repo)} is gated (401): the hub shows it to those who accepted its licence",
                f"accept its licence at {hub.address}/{source.repo}, then {way}",
                at=at,
            )
            continue
        yield note(
            f"the hub does not show {shown(source.repo)} to {'this token' if hub.token else 'anybody'} "
            "(401); it answers the same for a repository that does not exist",
            *_catalogued(case, source),
            "see that the repository's name is right",
            way,
            at=at,
        )


@gate("hub-forbidden", source=SOURCE)
def forbidden(case: Case) -> Iterator[Note]:
    """The hub knows the account and does not let it in (403): the model's licence was not accepted."""
    for source, at, answer in _failed(case, "forbidden"):
        if answer.code == "DisabledRepo" or "disabled" in source.detail.lower():
            yield note(
                f"the hub has taken {shown(source.repo)} out of use (403): {source.detail}",
                "declare another repository",
                at=at,
            )
            continue
        yield note(
            f"the account of the token may not read {shown(source.repo)} (403)",
            f"accept its licence at {case.host.box.hub.address}/{source.repo}",
            "give the token the right to read the repository, where it is a fine-grained one",
            at=at,
        )


@gate("hub-not-found", source="https://huggingface.co/docs/hub/repositories")
def not_found(case: Case) -> Iterator[Note]:
    """The hub has no such repository, or no such revision in it."""
    for source, at, answer in _failed(case, "not-found"):
        # A lock may name a commit that has gone since.
        revision = answer.request.partition("@")[2]
        if answer.code == "RevisionNotFound" and revision:
            yield note(
                f"{shown(source.repo)} has no revision {shown(revision)}",
                "see that the revision is spelt right",
                "take it out of .boxwright.lock.json where it stands there: it was rewritten on the hub",
                at=at,
            )
            continue
        yield note(
            f"the hub has no {shown(answer.request or source.repo)}: {source.detail}",
            *_catalogued(case, source),
            "see that repository and revision are spelt right",
            at=at,
        )


@gate("model-unknown-offline", source="boxwright/planner/model_source.py")
def unknown_offline(case: Case) -> Iterator[Note]:
    """A model outside the catalog is known by what the hub says of it; without a look there is no plan.

    Facts recorded with `invoke facts --json` on a host of the same declaration carry what the hub said.
    """
    for source, at in case.sources:
        if source.problem == "hub" and source.error is None:
            yield note(
                f"nothing is known of {shown(source.name)} without asking the hub",
                *_catalogued(case, source),
                "plan on the host, or with recorded facts: ./invoke plan --facts FILE",
                "use a model of the catalog",
                at=at,
            )
