"""The verb bench: how fast boxes answer, measured by the engine's own benchmark, kept and compared."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from boxwright.bench.comparison import Difference, compare
from boxwright.bench.picture import svg
from boxwright.bench.run import Run, expectations, prompts, read
from boxwright.cli import bench_report as report
from boxwright.cli import lab
from boxwright.cli.ansible_run import play
from boxwright.cli.console import say, say_aside, show_json
from boxwright.cli.deployments import hosts_with, writing
from boxwright.cli.paths import named, output_file
from boxwright.cli.recording import recorded
from boxwright.cli.ssh_trouble import answers, by_host, in_one_line
from boxwright.cli.targets import targets
from boxwright.cli.turns import addresses, turn
from boxwright.cli.words import whole
from boxwright.errors import EXIT_BAD_INPUT, EXIT_FAILED, UserError
from boxwright.spec.inventory import Inventory
from boxwright.texts import printable

MOST_CONCURRENCY, MOST_CONTEXT, MOST_OUTPUT, MOST_REPEATS, MOST_MINUTES = 4096, 10_000_000, 4096, 50, 24 * 60
#: Why a deployment that writes no text is not measured.
MEASURES = "the benchmark measures how fast text is written"
#: What an option for a sweep says instead of numbers to leave that sweep out.
NONE = "none"

#: How a kept run is named: last, or the beginning of its id or of a release's.
RUN = "[0-9A-Za-z][0-9A-Za-z-]{0,63}"


def refuse_mixture(*, runs: bool, show: str, compare: str, against: str, picture: str) -> None:
    """One thing at a time, before a box is measured that nobody meant to. Raises UserError."""
    for option, word in (("--show", show), ("--compare", compare), ("--against", against)):
        if word and not re.fullmatch(RUN, word):
            raise UserError(
                f"{option} {printable(word)}: last, or the id of a run or a release, or its beginning",
                status=EXIT_BAD_INPUT,
                ways_out=("./invoke bench --host NAME --runs lists them",),
            )
    if against not in ("", "last") and not compare:
        raise UserError(
            "--against is the other side of --compare", status=EXIT_BAD_INPUT, ways_out=("--compare RUN",)
        )
    asked = [
        option
        for option, given in (("--runs", runs and not show), ("--show", show), ("--compare", compare))
        if given
    ]
    if len(asked) > 1:
        raise UserError(f"{' and '.join(asked)}: one at a time", status=EXIT_BAD_INPUT)
    if picture and asked and asked[0] != "--show":
        raise UserError(
            f"--picture draws one run, and {asked[0]} shows others",
            status=EXIT_BAD_INPUT,
            ways_out=("--show RUN --picture FILE.svg",),
        )


def bench(
    hosts: Sequence[str],
    inventories: Sequence[str],
    *,
    every: bool = False,
    deployment: str | None = None,
    concurrency: str = "",
    context: str = "",
    repeats: str = "3",
    output: str = "128",
    minutes: str = "20",
    picture: str = "",
    as_json: bool = False,
) -> None:
    """Measure, keep the run on the box, and tell it; exit status 1 where one could not be measured."""
    variables = {
        "bench_prompts": prompts(),
        "bench_concurrencies": numbers("--concurrency", concurrency, MOST_CONCURRENCY),
        "bench_contexts": numbers("--context", context, MOST_CONTEXT),
        "bench_repeats": whole("--repeats", repeats, MOST_REPEATS),
        "bench_output_tokens": whole("--output", output, MOST_OUTPUT),
        "bench_limit_s": 60 * whole("--minutes", minutes, MOST_MINUTES),
        **({"bench_deployment": deployment} if deployment else {}),
    }
    inventory, names, paths = targets(hosts, inventories, every=every)
    names = hosts_with(inventory, names, deployment, every=every)
    names = writing(inventory, names, deployment, MEASURES, every=every)
    drawing = picture_path(picture, names)
    lab.ensure_simulated(inventory, names, as_json=as_json)
    with turn(addresses(names, inventory.variables), say_aside):
        played = play(
            "bench.yml",
            names,
            paths,
            quiet=as_json,
            variables=variables | recorded("bench", paths),
        )
    runs, missed = answers(played.hosts, names, "engine_bench", inventory)
    found = {name: (read(one["run"]), str(one["path"])) for name, one in runs.items()}
    if drawing:
        for run, _ in found.values():
            write_picture(drawing, svg(run))
    if as_json:
        show_json(
            by_host({name: {**measured(run), "kept": path} for name, (run, path) in found.items()}, missed)
        )
    else:
        for name, (run, path) in found.items():
            report.run(name, run, path)
            if drawing:
                say(f"  picture   {drawing}")
        for name, error in missed.items():
            # The run said what was wrong where it happened.
            if error.ways_out:
                say(str(UserError(error.what, where=name, ways_out=error.ways_out)))
    _end(missed)


def measured(run: Run) -> dict[str, Any]:
    """A run and how it stands to the plan, by stable keys."""
    return {**run.to_json(), "expected": [one.to_json() for one in expectations(run)]}


def runs(
    hosts: Sequence[str],
    inventories: Sequence[str],
    *,
    every: bool = False,
    deployment: str | None = None,
    show: str = "",
    picture: str = "",
    as_json: bool = False,
) -> None:
    """List the runs that the boxes keep, or show one of them again."""
    inventory, names, paths = targets(hosts, inventories, every=every)
    names = hosts_with(inventory, names, deployment, every=every)
    drawing = picture_path(picture, names)
    lab.ensure_simulated(inventory, names, as_json=as_json)
    found, missed = _kept(inventory, names, paths, deployment, [show] if show else [])
    if not show:
        if as_json:
            show_json(by_host({name: {"runs": one["runs"]} for name, one in found.items()}, missed))
        else:
            report.listing({name: one["runs"] for name, one in found.items()})
        _end(missed)
        return
    picked = {name: _meant(name, one, show)[0] for name, one in found.items()}
    if drawing:
        for run in picked.values():
            write_picture(drawing, svg(run))
    if as_json:
        show_json(by_host({name: measured(run) for name, run in picked.items()}, missed))
    else:
        for name, run in picked.items():
            report.run(name, run, None)
    _end(missed)


def comparing(
    hosts: Sequence[str],
    inventories: Sequence[str],
    *,
    every: bool = False,
    deployment: str | None = None,
    first: str,
    second: str = "last",
    as_json: bool = False,
) -> None:
    """Compare two runs or releases of each box; what differs is no failure."""
    inventory, names, paths = targets(hosts, inventories, every=every)
    names = hosts_with(inventory, names, deployment, every=every)
    lab.ensure_simulated(inventory, names, as_json=as_json)
    found, missed = _kept(inventory, names, paths, deployment, list(dict.fromkeys((first, second))))
    told: dict[str, tuple[list[Run], list[Run], list[Difference]]] = {}
    for name, one in found.items():
        sides = _meant(name, one, first), _meant(name, one, second)
        if {run.id for run in sides[0]} & {run.id for run in sides[1]}:
            raise UserError(
                f'"{first}" and "{second}" mean the same run: {sides[1][0].id}',
                where=name,
                status=EXIT_BAD_INPUT,
                ways_out=(f"./invoke bench --host {name} --runs lists them",),
            )
        told[name] = (*sides, compare(*sides))
    if as_json:
        show_json(
            by_host(
                {
                    name: {
                        "first": [run.id for run in ours],
                        "second": [run.id for run in theirs],
                        "statistic": report.STATISTIC,
                        "differences": [one.to_json() for one in differences],
                    }
                    for name, (ours, theirs, differences) in told.items()
                },
                missed,
            )
        )
    else:
        for name, (ours, theirs, differences) in told.items():
            report.comparison(name, ours, theirs, differences)
    _end(missed)


def numbers(option: str, words: str, most: int) -> list[int]:
    """`1,2,4` as numbers, each once; nothing: the tool's own choice; `none`: [0], which leaves it out."""
    if words.strip() == NONE:
        return [0]
    return list(dict.fromkeys(whole(option, word.strip(), most) for word in words.split(",") if word.strip()))


def _kept(
    inventory: Inventory,
    names: Sequence[str],
    paths: Sequence[Path],
    deployment: str | None,
    wanted: Sequence[str],
) -> tuple[dict[str, Mapping[str, Any]], dict[str, UserError]]:
    variables = {"bench_wanted": list(wanted), **({"bench_deployment": deployment} if deployment else {})}
    played = play("bench_runs.yml", names, paths, quiet=True, variables=variables)
    found, missed = answers(played.hosts, names, "bench_runs", inventory)
    for name, error in missed.items():
        say_aside(f"{name}: {in_one_line(error)}")
    return found, missed


def _meant(name: str, one: Mapping[str, Any], word: str) -> list[Run]:
    """The runs that a word means on a host. Raises UserError where it means none."""
    found = [read(run) for run in one["found"].get(word, ())]
    if not found:
        raise UserError(
            f'no run of {one["deployment"]} is kept there that "{word}" means',
            where=name,
            status=EXIT_BAD_INPUT,
            ways_out=(f"./invoke bench --host {name} --runs lists them", f"./invoke bench --host {name}"),
        )
    return found


def picture_path(picture: str, names: Sequence[str]) -> Path | None:
    """Where the picture goes. Raises UserError where it cannot, before anything is measured."""
    if not picture:
        return None
    path = named(picture)
    problem = None
    if path.suffix.lower() != ".svg":
        problem = "the picture is an SVG: a file that ends so is needed"
    elif len(names) > 1:
        problem = "one picture is of one host, and several were named"
    if problem:
        raise UserError(f"--picture {picture}: {problem}", status=EXIT_BAD_INPUT)
    output_file("--picture", path)
    return path


def write_picture(path: Path, text: str) -> None:
    """Write a picture. Raises UserError where it cannot be written."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserError(
            f"the picture cannot be written: {error.strerror or error}", where=str(path)
        ) from error


def _end(missed: Mapping[str, UserError]) -> None:
    if missed:
        raise SystemExit(EXIT_FAILED)
