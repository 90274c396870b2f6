"""The verb tune: the better setting of a box, found by measuring."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from boxwright import catalog as catalogs
from boxwright.ansible.declared import locked_revisions
from boxwright.bench.run import Place, prompts
from boxwright.catalog.purpose import TEXT
from boxwright.cli import benching, deployments, lab
from boxwright.cli import tune_report as report
from boxwright.cli.console import say, say_aside, show_json, wrapped
from boxwright.cli.targets import targets
from boxwright.cli.trials import Start, Trials
from boxwright.cli.tune_journal import Journal
from boxwright.cli.turns import addresses, turn
from boxwright.cli.validating import refuse_problems
from boxwright.cli.words import whole
from boxwright.errors import EXIT_BAD_INPUT, EXIT_FAILED, EXIT_REFUSED, UserError
from boxwright.spec import lock
from boxwright.spec.flat import LIMITS, flat
from boxwright.spec.inventory import Inventory
from boxwright.spec.suggestions import nearest
from boxwright.spec.validate import judged_box
from boxwright.texts import printable
from boxwright.tuner.picture import svg
from boxwright.tuner.proposals import KINDS, OF_CARDS, Subject, Sweep, sweeps
from boxwright.tuner.search import Found, Searching
from boxwright.tuner.trial import Goal

MOST_CANDIDATES = 200
#: Seconds that the measurement of one candidate may take, whatever the time for all of them is.
MEASURE_S = 600
#: What is to become better: the figure of the benchmark.
OBJECTIVES = {
    "decode": "decode",
    "throughput": "output",
    "prefill": "prefill",
    "tokens_per_joule": "tokens_per_joule",
}
DEFAULT_CONTEXT = 2048


@dataclass(frozen=True)
class Asked:
    """What was asked for, checked. bench: variables of a measurement, without its load."""

    candidates: int
    minutes: int
    objective: str
    concurrency: int | None
    context: int | None
    bench: Mapping[str, Any]
    fresh: bool
    picture: str
    as_json: bool

    def measured_at(self, load: int) -> tuple[Goal, dict[str, Any]]:
        """The goal and a measurement's variables. load: requests at once, where none was asked for."""
        at_once = self.concurrency or (1 if self.objective in ("decode", "prefill") else load)
        if self.objective == "prefill":
            at_once, context = 1, self.context or DEFAULT_CONTEXT
            points: dict[str, Any] = {"bench_concurrencies": [0], "bench_contexts": [context]}
            place = Place(1, context)
        else:
            points = {"bench_concurrencies": [at_once], "bench_contexts": [0]}
            place = Place(at_once, None)
        return Goal(self.objective, OBJECTIVES[self.objective], place), {**self.bench, **points}


def asked(
    *,
    candidates: str = "8",
    minutes: str = "60",
    objective: str = "decode",
    concurrency: str = "",
    context: str = "",
    repeats: str = "3",
    output: str = "128",
    fresh: bool = False,
    picture: str = "",
    as_json: bool = False,
) -> Asked:
    """The options of both ways to tune. Raises UserError for what is no number, or no objective."""
    if objective not in OBJECTIVES:
        raise UserError(
            f'--objective: "{printable(objective)}" is none',
            status=EXIT_BAD_INPUT,
            ways_out=(f"one of: {', '.join(OBJECTIVES)}",),
        )
    if context and objective != "prefill":
        raise UserError(
            f"--context is the length of the prompts for --objective prefill, not for {objective}",
            status=EXIT_BAD_INPUT,
        )
    limit = whole("--minutes", minutes, benching.MOST_MINUTES)
    return Asked(
        candidates=whole("--candidates", candidates, MOST_CANDIDATES),
        minutes=limit,
        objective=objective,
        concurrency=whole("--concurrency", concurrency, benching.MOST_CONCURRENCY) if concurrency else None,
        context=whole("--context", context, benching.MOST_CONTEXT) if context else None,
        bench={
            "bench_prompts": list(prompts()),
            "bench_repeats": whole("--repeats", repeats, benching.MOST_REPEATS),
            "bench_output_tokens": whole("--output", output, benching.MOST_OUTPUT),
            "bench_limit_s": min(MEASURE_S, 60 * limit),
        },
        fresh=fresh,
        picture=picture,
        as_json=as_json,
    )


def refuse_what(what: str) -> None:
    """A bisection varies what its two sides differ in. Raises UserError where something else is asked for."""
    if what:
        raise UserError(
            "--what is not for --bisect, which varies what the two sides differ in", status=EXIT_BAD_INPUT
        )


def refuse_sides(good: str, bad: str) -> None:
    """Sides are a bisection's. Raises UserError where they are given without it."""
    if good or bad not in ("", "declared"):
        raise UserError(
            "--good and --bad are the two sides of --bisect", status=EXIT_BAD_INPUT, ways_out=("--bisect",)
        )


def kinds(what: str, wanted: Asked) -> list[str]:
    """What is to be varied. Raises UserError for what cannot be."""
    if not what.strip():
        # A limit of the cards never makes them faster, it may make them do with less; and how many sequences
        # are worked on at once says nothing to a single one.
        frugal = wanted.objective == "tokens_per_joule"
        several = wanted.objective in ("throughput", "tokens_per_joule") or (wanted.concurrency or 1) > 1
        left_out = {*(() if frugal else OF_CARDS), *(() if several else ("sequences",))}
        return [kind for kind in KINDS if kind not in left_out]
    words = [word.strip().replace("-", "_") for word in what.split(",") if word.strip()]
    wrong = next((word for word in words if word not in KINDS), None)
    if wrong is not None or not words:
        guess = nearest(wrong or "", KINDS)
        raise UserError(
            f'--what: "{printable(wrong or what)}" cannot be varied',
            status=EXIT_BAD_INPUT,
            ways_out=(
                f"one or more of {', '.join(KINDS)}" + (f' (did you mean "{guess}"?)' if guess else ""),
            ),
        )
    return words


def one_host(hosts: Sequence[str], inventories: Sequence[str]) -> tuple[Inventory, str, list[Path]]:
    """The host to tune. Raises UserError for none, or several."""
    inventory, names, paths = targets(hosts, inventories)
    if len(names) != 1:
        raise UserError(
            f"tuning takes one box at a time, and these are {len(names)}: {', '.join(names[:8])}",
            status=EXIT_BAD_INPUT,
        )
    refuse_problems(inventory, names)
    return inventory, names[0], paths


def tune(
    hosts: Sequence[str],
    inventories: Sequence[str],
    *,
    deployment: str | None = None,
    what: str = "",
    wanted: Asked,
) -> None:
    """Try settings, tell the best; exit status 1 where the box could not be brought back as it was."""
    varied = kinds(what, wanted)
    inventory, host, paths = one_host(hosts, inventories)
    name = deployments.chosen(inventory, host, deployment)
    deployments.refuse_wordless(inventory, host, name, benching.MEASURES)
    drawing = benching.picture_path(wanted.picture, [host])
    lab.ensure_simulated(inventory, [host], as_json=wanted.as_json)
    with turn(addresses([host], inventory.variables), say_aside):
        found, told = _search(inventory, host, name, paths, varied, wanted)
    if drawing:
        benching.write_picture(drawing, svg(found.goal, report.bars(found.goal, found.found), host, name))
    if wanted.as_json:
        show_json({host: report.to_json(found, told)})
    else:
        report.draw(host, found, told)
        if drawing:
            say(f"  picture   {drawing}")
    if not found.restored:
        raise SystemExit(EXIT_FAILED)


def _search(
    inventory: Inventory, host: str, name: str, paths: Sequence[Path], varied: Sequence[str], wanted: Asked
) -> tuple[report.Tuned, Sequence[Sweep]]:
    bench = dict(wanted.bench)
    with Trials(host, name, inventory, paths, bench, minutes=wanted.minutes, quiet=wanted.as_json) as trials:
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
