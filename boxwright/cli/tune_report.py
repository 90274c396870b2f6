"""What a person reads of a tuning: a row for each setting, the best one, and the lines that declare it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from boxwright.bench.comparison import Difference
from boxwright.bench.figures import KEYS
from boxwright.bench.noise import Spread, spread
from boxwright.cli.bench_report import NOTHING, STATISTIC, TITLES, shown
from boxwright.cli.console import say, table, wrapped
from boxwright.spec.flat import LIMITS, SPREAD
from boxwright.spec.yaml_text import flow
from boxwright.tuner import proposals
from boxwright.tuner.picture import Bar
from boxwright.tuner.proposals import Sweep
from boxwright.tuner.search import Found
from boxwright.tuner.trial import REFUSED, Goal, Trial

#: Longest reason in a table; longer ones are told whole below it.
SHORT = 200
#: Figures beside the one that counts, where they were measured.
BESIDE = ("decode", "output", "ttft", "tokens_per_joule")


@dataclass(frozen=True)
class Tuned:
    """A tuning that has ended. origin: the release that counts; place: of the declaration."""

    goal: Goal
    found: Found
    deployment: str
    origin: str
    restored: bool
    place: str


def draw(host: str, one: Tuned, tried: Sequence[Sweep]) -> None:
    """All of it, for a person."""
    found, goal = one.found, one.goal
    say()
    say(f"{host}: {one.deployment}, {objective(goal)}")
    say()
    trials: list[tuple[str, Trial, Difference | None]] = [("declared", found.base, None)]
    for step in found.steps:
        mark = "best" if step.trial.candidate == found.best.candidate else "better" if step.taken else ""
        trials.append((mark, step.trial, step.difference))
    rows(goal, trials)
    say()
    say(wrapped(f"{STATISTIC}; each is compared with the best before it.", 2))
    reasons([trial for _, trial, _ in trials])
    for what, why in refusals(tried):
        say(wrapped(f"not tried {what}: {why}", 2, 10))
    if found.ended:
        say(wrapped(f"ended     {found.ended}; the same command with more of it tries the rest", 2, 10))
    say()
    say(wrapped(f"{host}: {better(found)}", hang=2))
    if found.better:
        say(f"  declare   {one.place or 'in the inventory'}")
        for line in lines(found.best.candidate.options):
            say(f"    {line}")
        say(f"  then      ./invoke provision --host {host}")
    way_back(one.origin, restored=one.restored)


def better(found: Found) -> str:
    """What a search came to, in one sentence."""
    if not found.better:
        return "nothing tried is better than what is declared by more than noise"
    return f"better: {found.best.candidate.label}{_gain(found.overall)}"


def objective(goal: Goal) -> str:
    """What became better or not, and at which load."""
    load = (
        f"{goal.place.context:,} tokens of prompt"
        if goal.place.context
        else (f"{goal.place.concurrency} request{'' if goal.place.concurrency == 1 else 's'} at once")
    )
    return f"objective {goal.name} at {load}"


def rows(goal: Goal, trials: Sequence[tuple[str, Trial, Difference | None]]) -> None:
    """The table: a row for each trial."""
    beside = [
        name for name in BESIDE if name != goal.figure and any(_at(goal, t, name) for _, t, _ in trials)
    ]
    figures = [goal.figure, *beside]
    said = []
    for mark, trial, difference in trials:
        cells = [shown(name, _at(goal, trial, name)) if trial.measured else NOTHING for name in figures]
        verdict = trial.status if not trial.measured else difference.verdict if difference else mark
        change = f"{difference.change:+.0%}" if difference else NOTHING
        said.append([mark, trial.candidate.label, *cells, change, verdict])
    table(
        ["", "setting", *(TITLES[name] for name in figures), "change", "verdict"],
        said,
        right=range(2, 3 + len(figures)),
    )


def reasons(trials: Sequence[Trial]) -> None:
    """Why some were not measured."""
    for trial in trials:
        if not trial.measured and trial.why:
            word = "refused" if trial.status == REFUSED else "failed"
            text = " ".join(trial.why.split())
            text = text if len(text) <= 3 * SHORT else text[: 3 * SHORT] + "\N{HORIZONTAL ELLIPSIS}"
            say(wrapped(f"{word:<9} {trial.candidate.label}: {text}", 2, 10))


def refusals(tried: Sequence[Sweep]) -> list[tuple[str, str]]:
    """What was not tried, and why; values that one rule refuses for one reason are told together."""
    found: dict[str, list[str]] = {}
    for what, why in proposals.refused(tried):
        found.setdefault(why, []).append(what)
    return [(", ".join(whats), why) for why, whats in found.items()]


def lines(options: Mapping[str, Any]) -> list[str]:
    """The lines of YAML that declare options: of the box, and of the deployment."""
    box = {name: value for name, value in options.items() if name.startswith(LIMITS)}
    own = {name: value for name, value in options.items() if name not in box}
    found = [_line(name, value) for name, value in box.items()]
    if own and box:
        found.append("# of the deployment:")
    for place in dict.fromkeys(name.partition(".")[0] for name in own):
        if place not in SPREAD:
            found.append(_line(place, own[place]))
            continue
        found.append(f"{place}:")
        for name, value in own.items():
            if name.startswith(f"{place}."):
                found.append(f"  {_line(name.partition('.')[2], value)}")
    return found


def _line(name: str, value: Any) -> str:
    return f"{name}: {flow(value)}" if value is not None else f"# without {name}"


def way_back(origin: str, *, restored: bool) -> None:
    """What serves now."""
    if restored:
        say(f"  serving   release {origin}, as before; nothing was declared or promoted")
    else:
        say("  serving   the box could not be brought back as it was: see above")


def bars(goal: Goal, found: Found) -> list[Bar]:
    """The picture's bars."""
    trials = [found.base, *(step.trial for step in found.steps)]
    return [
        bar(goal, trial, "base" if trial is found.base else "best" if trial == found.best else "bar")
        for trial in trials
    ]


def bar(goal: Goal, trial: Trial, kind: str) -> Bar:
    """A trial's bar."""
    return Bar(trial.candidate.label, kind, goal.spread(trial), "" if trial.measured else trial.status)


def to_json(one: Tuned, tried: Sequence[Sweep]) -> dict[str, Any]:
    """The whole tuning by stable keys."""
    found = one.found
    return {
        "deployment": one.deployment,
        **goal_json(one.goal),
        "better": found.better,
        "change": found.overall.to_json() if found.overall else None,
        "declare": dict(found.best.candidate.options),
        "lines": lines(found.best.candidate.options) if found.better else [],
        "declared": trial_json(one.goal, found.base),
        "tried": [
            {
                **trial_json(one.goal, step.trial),
                "difference": step.difference.to_json() if step.difference else None,
                "taken": step.taken,
            }
            for step in found.steps
        ],
        "not_tried": [{"setting": what, "why": why} for what, why in proposals.refused(tried)],
        "ended": found.ended or None,
        "release": one.origin,
        "restored": one.restored,
        "failure": None,
    }


def goal_json(goal: Goal) -> dict[str, Any]:
    """What was to become better."""
    return {
        "objective": goal.name,
        "figure": KEYS[goal.figure],
        "concurrency": goal.place.concurrency,
        "context": goal.place.context,
    }


def trial_json(goal: Goal, trial: Trial) -> dict[str, Any]:
    """One trial. repeats: of the figure that counts."""
    return {
        "setting": trial.candidate.label,
        "options": dict(trial.candidate.options),
        "status": trial.status,
        "why": trial.why or None,
        "seconds": trial.seconds,
        "runs": [run.id for run in trial.runs],
        "releases": sorted({run.release for run in trial.runs}),
        "median": goal.median(trial),
        "repeats": goal.values(trial),
    }


def _at(goal: Goal, trial: Trial, name: str) -> Spread | None:
    values = [v for run in trial.runs if (point := run.at(goal.place)) for v in point.values(name)]
    return spread(values)


def _gain(overall: Difference | None) -> str:
    return f" ({overall.change:+.0%}, {overall.first:,.4g} to {overall.second:,.4g})" if overall else ""
