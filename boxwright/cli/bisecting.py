"""The verb tune --bisect: which option of two declarations of one deployment costs the speed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from boxwright.bench.comparison import Difference
from boxwright.cli import benching
from boxwright.cli import tune_report as report
from boxwright.cli.console import say, say_aside, wrapped
from boxwright.cli.paths import is_file, named
from boxwright.cli.trials import Start
from boxwright.cli.tune_boxes import Meant, Shown, meant, on_each, trials_on
from boxwright.cli.tune_journal import Journal
from boxwright.cli.tune_wish import Asked
from boxwright.cli.tuning import about, foreword, subject_of
from boxwright.errors import EXIT_BAD_INPUT, UserError
from boxwright.spec.flat import LIMITS, differing, written
from boxwright.spec.validate import judged_box
from boxwright.texts import printable
from boxwright.tuner.bisection import Bisecting, Blame
from boxwright.tuner.picture import UNITS, svg
from boxwright.tuner.proposals import Subject, label
from boxwright.tuner.trial import Goal

#: Words for a side that are no file and no release.
DECLARED, CURRENT = "declared", "current"


@dataclass(frozen=True)
class Bisected:
    """A bisection that has ended."""

    goal: Goal
    blame: Blame
    delta: Mapping[str, tuple[Any, Any]]
    deployment: str
    good: str
    bad: str
    origin: str
    restored: bool


def bisect(
    hosts: Sequence[str],
    inventories: Sequence[str],
    *,
    every: bool = False,
    deployment: str | None = None,
    good: str,
    bad: str = DECLARED,
    wanted: Asked,
) -> None:
    """Find the options that cost the speed, and tell them; exit status 1 where a box is not as it was."""
    if not good.strip() or not bad.strip():
        raise UserError(
            "--bisect compares two declarations: --good is the faster one, --bad the slower",
            status=EXIT_BAD_INPUT,
            ways_out=("--good FILE.yml or --good RELEASE; --bad is what is declared, unless said otherwise",),
        )
    for word, option in ((good, "--good"), (bad, "--bad")):
        _refuse_no_file(word, option)
    boxes = meant(hosts, inventories, deployment, every=every)
    drawing = benching.picture_path(wanted.picture, boxes.names)
    on_each(
        boxes,
        lambda host: _bisected(boxes, host, good, bad, wanted),
        Shown(draw, to_json, _picture, lambda one: one.restored),
        drawing=drawing,
        as_json=wanted.as_json,
    )


def _bisected(boxes: Meant, host: str, good: str, bad: str, wanted: Asked) -> Bisected:
    """One box's bisection. Raises UserError."""
    name, aside = boxes.deployments[host], say_aside if wanted.as_json else say
    with trials_on(boxes, host, wanted, ["--bisect"]) as trials:
        start = trials.begin()
        subject = subject_of(boxes.inventory, host, name, start)
        sides = [_side(subject, start, word, option) for word, option in ((good, "--good"), (bad, "--bad"))]
        delta = differing(*sides)
        if not delta:
            raise UserError(
                "the two sides declare the same, so there is nothing to bisect",
                where=f"{host}, {name}",
                why="compared are all options but name, port, address, key and gate question",
                status=EXIT_BAD_INPUT,
            )
        base = _whole(subject, subject.declared, subject.variables)
        upon = {option: value for option, (_, value) in differing(base, sides[0]).items()}
        aside(wrapped(f"{host}: they differ in {len(delta)}: {_delta(delta)}", hang=2))
        load = max(int(side.get("concurrency") or 8) for side in sides)
        goal, trials.bench = wanted.measured_at(load)
        trials.limits = any(option.startswith(LIMITS) for option in {*delta, *upon})
        content = [about(subject, start, trials.bench), *sides]
        journal = Journal("bisect", host, name, content, fresh=wanted.fresh)
        if journal.resumed:
            aside(f"{host}: {journal.resumed} (--fresh measures all anew)")
        aside(foreword(host, f"at most {wanted.candidates} mixtures are tried", wanted))
        bisecting = Bisecting(delta, upon, goal, wanted.candidates)
        trials.drive(bisecting.candidates(), journal, goal)
        blame = bisecting.blame
        if not blame.ended.startswith("the time"):
            journal.close()
        _refuse_unmeasured(host, blame)
        one = Bisected(goal, blame, delta, name, good, bad, start.origin, restored=False)
        trials.did += verdict(one)
    return replace(one, restored=bool(trials.restored))


def _picture(host: str, one: Bisected) -> str:
    good = one.blame.good
    shown = [report.bar(one.goal, trial, "base" if trial is good else "bar") for trial in one.blame.trials]
    return svg(one.goal, shown, host, one.deployment)


def _refuse_unmeasured(host: str, blame: Blame) -> None:
    """Raise UserError where a whole side could not be measured."""
    for side, trial in (("good", blame.good), ("bad", blame.bad)):
        if trial is None or not trial.measured:
            raise UserError(
                f"the {side} side could not be measured",
                where=host,
                why=trial.why if trial else "there was no time for it (--minutes)",
            )


def _refuse_no_file(word: str, option: str) -> None:
    """Before the box is asked: what can only be a file is there. Raises UserError."""
    path = named(word)
    if ("/" in word or path.suffix in (".yml", ".yaml")) and not is_file(path):
        raise UserError(
            f"{option}: there is no file {printable(word)}",
            status=EXIT_BAD_INPUT,
            ways_out=("a file that declares the deployment, or the id of a release on the box",),
        )


def _side(subject: Subject, start: Start, word: str, option: str) -> dict[str, Any]:
    """One side as a deployment with the cards' limits beside it. Raises UserError where there is none."""
    if word == DECLARED:
        return _whole(subject, subject.declared, subject.variables)
    path = named(word)
    if is_file(path):
        declared, limits = _of_file(path, subject.deployment, option)
        return _whole(subject, {**declared, "name": subject.deployment}, _limited(subject, limits))
    wanted = start.origin if word == CURRENT else word
    found = [one for one in start.releases if one.startswith(wanted)]
    if len(found) != 1 or path.suffix in (".yml", ".yaml"):
        raise UserError(
            f'{option}: "{printable(word)}" is no file, and {len(found) or "no"} release of '
            f"{subject.deployment} begins so",
            where=subject.host,
            status=EXIT_BAD_INPUT,
            ways_out=(
                f"a file that declares the deployment, {DECLARED}, {CURRENT}, or one of: "
                + (", ".join(start.releases) or "none"),
            ),
        )
    declared = start.releases[found[0]]
    if not declared:
        raise UserError(
            f"{option}: release {found[0]} does not say how it was declared",
            where=subject.host,
            why="it was made by an earlier Boxwright, which did not keep that",
            status=EXIT_BAD_INPUT,
            ways_out=("give its declaration as a file",),
        )
    return _whole(subject, {**declared, "name": subject.deployment}, subject.variables)


def _limited(subject: Subject, limits: Mapping[str, Any]) -> dict[str, Any]:
    """The host's variables with the limits that a file says; one that says none leaves them as declared."""
    if not limits:
        return dict(subject.variables)
    others = {name: value for name, value in subject.variables.items() if not name.startswith(LIMITS)}
    return {**others, **limits}


def _of_file(path: Path, deployment: str, option: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """A deployment and limits that a file declares: a host's variables, or the deployment alone."""
    try:
        found = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise UserError(
            f"{option}: {path} cannot be read: {' '.join(str(error).split())}", status=EXIT_BAD_INPUT
        ) from error
    listed = found.get("box_deployments") if isinstance(found, Mapping) else found
    if isinstance(listed, list):
        known = [one for one in listed if isinstance(one, Mapping)]
        meant = [one for one in known if one.get("name") == deployment] or (known if len(known) == 1 else [])
        if len(meant) == 1:
            limits = found if isinstance(found, Mapping) else {}
            return dict(meant[0]), {name: limits[name] for name in limits if str(name).startswith(LIMITS)}
    elif isinstance(found, Mapping) and "model" in found:
        return dict(found), {}
    raise UserError(
        f"{option}: {path} does not declare {deployment}",
        status=EXIT_BAD_INPUT,
        ways_out=("a host's file with box_deployments, or one deployment by itself",),
    )


def _whole(subject: Subject, declared: Mapping[str, Any], variables: Mapping[str, Any]) -> dict[str, Any]:
    """A deployment as any inventory would say it, what is as by default left out, with limits that are set.

    Raises SpecErrors for mistakes in it.
    """
    box = judged_box(subject.host, {**variables, "box_deployments": [dict(declared)]})
    limits = {
        name: value
        for name, value in variables.items()
        if name.startswith(LIMITS) and isinstance(value, int) and not isinstance(value, bool)
    }
    return {**limits, **written(box.deployments[0])}


def _delta(delta: Mapping[str, tuple[Any, Any]]) -> str:
    return "; ".join(
        f"{label(name, good)} / {label(name, bad).removeprefix(f'{name}: ')}"
        for name, (good, bad) in delta.items()
    )


def draw(host: str, one: Bisected) -> None:
    """All of it, for a person."""
    blame, goal = one.blame, one.goal
    say()
    sides = f"good {one.good}, bad {one.bad}"
    say(wrapped(f"{host}: {one.deployment}, {report.objective(goal)}: {sides}", hang=2))
    say()
    report.rows(
        goal,
        [
            ("good" if trial is blame.good else "bad" if trial is blame.bad else "", trial, difference)
            for trial in blame.trials
            for difference in [_against(goal, blame, trial)]
        ],
    )
    say()
    report.reasons(blame.trials)
    if blame.ended:
        say(wrapped(f"ended     {blame.ended}; the same command with more of it goes on", 2, 10))
    for text in verdict(one):
        say(wrapped(f"{host}: {text}", hang=2))
    report.way_back(one.origin, restored=one.restored)


def _against(goal: Goal, blame: Blame, trial: Any) -> Difference | None:
    if trial is blame.good or blame.good is None or not trial.measured:
        return None
    return goal.difference(blame.good, trial)


def verdict(one: Bisected) -> list[str]:
    """What the measurements say, in sentences."""
    blame = one.blame
    overall = blame.overall
    if overall is None:
        return ["the two sides were not compared"]
    if overall.verdict == "better":
        return [f"the bad side is the faster one ({overall.change:+.0%}): --good and --bad are exchanged"]
    if not blame.differs:
        return [f"no difference: {overall.change:+.0%} is within the noise of {min(overall.repeats)} repeats"]
    found, unit = [], UNITS.get(one.goal.name, "tokens/s")
    for culprit in blame.culprits:
        names = " and ".join(label(name, one.delta[name][1]) for name in culprit.options)
        instead = " and ".join(label(name, one.delta[name][0]) for name in culprit.options)
        only = ", only together" if len(culprit.options) > 1 else ""
        found.append(
            f"{names} costs {-culprit.cost.change:.0%}{only} ({culprit.cost.first:,.4g} to "
            f"{culprit.cost.second:,.4g} {unit}; all of the bad side costs {-overall.change:.0%}); "
            f"the good side has {instead}"
        )
    if blame.culprits and blame.rest is not None and blame.rest.verdict != "worse":
        found.append("what else they differ in costs nothing beyond noise")
    if not blame.culprits:
        found.append(f"the bad side costs {-overall.change:.0%}; which option it is was not found")
    return found


def to_json(one: Bisected) -> dict[str, Any]:
    """The whole bisection by stable keys."""
    blame = one.blame
    return {
        "deployment": one.deployment,
        **report.goal_json(one.goal),
        "good": one.good,
        "bad": one.bad,
        "differences": {name: {"good": good, "bad": bad} for name, (good, bad) in one.delta.items()},
        "overall": blame.overall.to_json() if blame.overall else None,
        "culprits": [
            {"options": list(culprit.options), "cost": culprit.cost.to_json()} for culprit in blame.culprits
        ],
        "rest": blame.rest.to_json() if blame.rest else None,
        "tried": [report.trial_json(one.goal, trial) for trial in blame.trials],
        "said": verdict(one),
        "ended": blame.ended or None,
        "release": one.origin,
        "restored": one.restored,
        "failure": None,
    }
