"""Which deployment a verb means, by what the inventory declares: said before any box is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from boxwright import catalog as catalogs
from boxwright.catalog.purpose import EMBEDDINGS, RERANKING, TEXT
from boxwright.errors import EXIT_BAD_INPUT, UserError
from boxwright.spec.inventory import Inventory
from boxwright.spec.suggestions import did_you_mean
from boxwright.texts import printable

#: What a client asks instead of a chat, and what measures or shows it.
_INSTEAD = {
    EMBEDDINGS: "POST /v1/embeddings, as `./invoke provision` shows it",
    RERANKING: "POST /v1/rerank, as `./invoke provision` shows it",
}


def refuse_wordless(inventory: Inventory, host: str, deployment: str | None, verb: str) -> None:
    """Before a box is asked: a deployment that is declared to write no text has no use for some verbs.

    verb: what the verb would do, `chat talks with a model`. Raises UserError. What only the files of a model
    say is seen on the box.
    """
    declared: Any = inventory.variables(host).get("box_deployments") or []
    known = [one for one in declared if isinstance(one, dict) and deployment in (None, one.get("name"))]
    if len(known) == 1 and (found := serves(known[0])) not in (None, TEXT):
        raise wordless(host, str(known[0].get("name")), str(found), verb)


def writing(
    inventory: Inventory, hosts: Sequence[str], deployment: str | None, verb: str, *, every: bool
) -> list[str]:
    """The hosts whose deployment may write text. every: they were not named, and others are left out.

    Raises UserError, as refuse_wordless does, for a host that was named, or where none is left.
    """
    found, refusal = [], None
    for host in hosts:
        try:
            refuse_wordless(inventory, host, deployment, verb)
        except UserError as error:
            refusal = error
            if not every:
                raise
        else:
            found.append(host)
    if refusal is not None and not found:
        raise refusal
    return found


def wordless(host: str, name: str, served: str, verb: str) -> UserError:
    """That a verb is for deployments that write text."""
    return UserError(
        f"{printable(name)} serves {served}, and {verb}",
        where=host,
        status=EXIT_BAD_INPUT,
        ways_out=(_INSTEAD.get(served, ""), f"./invoke verify --host {host} lets it answer"),
    )


def serves(declared: Mapping[str, Any]) -> str | None:
    """What a deployment serves, as it says or the catalog does; None where only its files tell."""
    said, model = declared.get("serves"), declared.get("model")
    if said:
        return str(said)
    entry = catalogs.load().models.get(str(model)) if isinstance(model, str) else None
    return entry.serves if entry else None


def names_of(inventory: Inventory, host: str) -> list[str]:
    """The deployments that a host declares."""
    declared: Any = inventory.variables(host).get("box_deployments") or []
    return [str(one["name"]) for one in declared if isinstance(one, dict) and "name" in one]


def hosts_with(
    inventory: Inventory, hosts: Sequence[str], deployment: str | None, *, every: bool = False
) -> list[str]:
    """The hosts that are to be asked about a deployment: all of them, where none is named.

    every: the hosts were not named one by one, and those that do not declare it are left out. Raises
    UserError where a host that was named does not declare it, or none does.
    """
    if deployment is None:
        return list(hosts)
    declared = {host: names_of(inventory, host) for host in hosts}
    found = [host for host in hosts if deployment in declared[host]]
    missing = next((host for host in hosts if host not in found), None)
    if missing is not None and (not every or not found):
        known = {name for host in hosts for name in declared[host]} if every else declared[missing]
        raise UserError(
            f'no deployment is named "{printable(deployment)}"',
            where=None if every else missing,
            status=EXIT_BAD_INPUT,
            ways_out=(f"--deployment NAME, {did_you_mean(deployment, known)}",),
        )
    return found


def hosts_that_deploy(
    inventory: Inventory, hosts: Sequence[str], deployment: str | None, verb: str, *, every: bool
) -> list[str]:
    """The hosts of `hosts_with`; of every host those that declare a deployment at all.

    verb: why it takes one, `so there is no key`. Raises UserError where none declares one.
    """
    found = hosts_with(inventory, hosts, deployment, every=every)
    if every:
        found = [name for name in found if names_of(inventory, name)]
        if not found:
            raise UserError(f"no host declares a deployment, {verb}", status=EXIT_BAD_INPUT)
    return found


def chosen(inventory: Inventory, host: str, deployment: str | None) -> str:
    """The one deployment of a host that is meant. Raises UserError where that is not clear."""
    hosts_with(inventory, [host], deployment)
    known = names_of(inventory, host)
    if deployment is not None:
        return deployment
    if len(known) != 1:
        raise UserError(
            "nothing is deployed there" if not known else "it serves several models",
            where=host,
            status=EXIT_BAD_INPUT,
            ways_out=("--deployment one of: " + ", ".join(known),) if known else (),
        )
    return known[0]
