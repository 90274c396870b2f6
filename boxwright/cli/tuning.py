"""The verb tune: the better setting of a box, found by measuring."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from boxwright import catalog as catalogs
from boxwright.ansible.declared import locked_revisions
from boxwright.catalog.purpose import TEXT
from boxwright.cli import benching, deployments
from boxwright.cli import tune_report as report
from boxwright.cli.console import say, say_aside, wrapped
from boxwright.cli.trials import Start
from boxwright.cli.tune_boxes import Meant, Shown, meant, on_each, trials_on
from boxwright.cli.tune_journal import Journal
from boxwright.cli.tune_wish import Asked, kinds
from boxwright.errors import EXIT_BAD_INPUT, EXIT_FAILED, EXIT_REFUSED, UserError
from boxwright.spec import lock
from boxwright.spec.flat import LIMITS, flat
from boxwright.spec.inventory import Inventory
from boxwright.spec.validate import judged_box
from boxwright.tuner.picture import svg
from boxwright.tuner.proposals import OF_CARDS, Subject, Sweep, sweeps
from boxwright.tuner.search import Found, Searching


def tune(
    hosts: Sequence[str],
    inventories: Sequence[str],
    *,
    every: bool = False,
    deployment: str | None = None,
    what: str = "",
    wanted: Asked,
) -> None:
    """Try settings on each box, tell the best; exit status 1 where one failed, or is not as it was."""
    varied = kinds(what, wanted)
    boxes = meant(hosts, inventories, deployment, every=every)
    drawing = benching.picture_path(wanted.picture, boxes.names)

    def drawn(host: str, one: tuple[report.Tuned, Sequence[Sweep]]) -> None:
        report.draw(host, *one)

    def picture(host: str, one: tuple[report.Tuned, Sequence[Sweep]]) -> str:
        found = one[0]
        return svg(found.goal, report.bars(found.goal, found.found), host, found.deployment)

    on_each(
        boxes,
        lambda host: _search(boxes, host, varied, wanted),
        Shown(drawn, lambda one: report.to_json(*one), picture, lambda one: one[0].restored),
        drawing=drawing,
        as_json=wanted.as_json,
    )


def _search(
    boxes: Meant, host: str, varied: Sequence[str], wanted: Asked
) -> tuple[report.Tuned, Sequence[Sweep]]:
    inventory, name = boxes.inventory, boxes.deployments[host]
    with trials_on(boxes, host, wanted) as trials:
        start = trials.begin()
        subject = subject_of(inventory, host, name, start)
        found = sweeps(subject, varied)
        if not any(one.tried for one in found):
            raise UserError(
                "there is nothing to try",
                where=host,
                why="; ".join(f"{what}: {why}" for what, why in report.refusals(found)) or None,
                ways_out=(f"--what, other than {','.join(varied)}",),
                status=EXIT_BAD_INPUT,
            )
        load = max([subject.case(subject.plan({})).settings.concurrency, *_loads(found)])
        goal, trials.bench = wanted.measured_at(load)
        trials.limits = any(one.kind in OF_CARDS for one in found)
        journal = Journal("tune", host, name, about(subject, start, trials.bench), fresh=wanted.fresh)
        aside = say_aside if wanted.as_json else say
        if journal.resumed:
            aside(f"{host}: {journal.resumed} (--fresh measures all anew)")
        aside(foreword(host, f"at most {wanted.candidates} settings are tried", wanted))
        search = Searching(found, goal, wanted.candidates)
        trials.drive(search.candidates(), journal, goal)
        known = search.found
        if known is None or not known.base.measured or not known.ended.startswith("the time"):
            journal.close()
        result = usable(host, known)
        trials.did += [report.better(result)]
    place = inventory.location(host, "box_deployments")
    return report.Tuned(goal, result, name, start.origin, bool(trials.restored), str(place or "")), found


def foreword(host: str, what: str, wanted: Asked) -> str:
    """What a person must know before it begins."""
    return wrapped(
        f"{host}: {what}, for about {wanted.minutes} minutes; the endpoint serves what is tried meanwhile, "
        "and is away while an engine starts",
        hang=2,
    )


def usable(host: str, found: Found | None) -> Found:
    """What a search came to. Raises UserError where not even the declaration itself could be measured."""
    if found is None or not found.base.measured:
        base = found.base if found else None
        raise UserError(
            "what is declared could not be measured, so there is nothing to compare with",
            where=host,
            why=base.why if base and base.why else "there was no time for it (--minutes)",
            status=EXIT_REFUSED if base and base.status == "refused" else EXIT_FAILED,
        )
    return found


def _loads(found: Sequence[Sweep]) -> list[int]:
    """Sequences at once that are tried: the load must be able to use them."""
    return [int(value.options[one.option]) for one in found if one.kind == "sequences" for value in one.tried]


def subject_of(inventory: Inventory, host: str, name: str, start: Start) -> Subject:
    """The deployment with all that a plan of it needs. Raises UserError where its own plan refuses it."""
    variables, known = inventory.variables(host), catalogs.load()
    revisions, drafters = locked_revisions(
        lock.path_of(str(inventory.directory(host))), judged_box(host, variables), known
    )
    subject = Subject(host, name, variables, start.facts, known, revisions, drafters)
    refusal = subject.refusal({})
    if refusal:
        raise UserError(
            "the plan refuses what is declared, so nothing was tried",
            where=host,
            why=refusal,
            status=EXIT_REFUSED,
            ways_out=(f"./invoke plan --host {host} tells the ways out",),
        )
    served = subject.case(subject.plan({})).settings.serves
    if served != TEXT:
        raise deployments.wordless(host, name, served, benching.MEASURES)
    return subject


def about(subject: Subject, start: Start, bench: Mapping[str, Any]) -> dict[str, Any]:
    """What measurements hold for: the declaration, the cards with their driver, and how it is measured."""
    cards = [card.uuid for card in start.facts.cards]
    limits = {name: value for name, value in subject.variables.items() if name.startswith(LIMITS)}
    return {
        "declared": flat(subject.declared),
        "limits": limits,
        "cards": cards,
        "driver": start.facts.driver.version,
        "bench": {name: value for name, value in bench.items() if name != "bench_limit_s"},
    }
