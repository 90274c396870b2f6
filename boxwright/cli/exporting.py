"""The verb export: a box's releases as a compose file, Quadlet units, or Kubernetes manifests."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from boxwright.ansible.module_utils import engine_state
from boxwright.ansible.module_utils.engine_container import container_of, key_variable
from boxwright.cli import lab
from boxwright.cli.ansible_run import HostReport, play
from boxwright.cli.console import say, say_aside, show_json, wrapped
from boxwright.cli.deployments import hosts_with
from boxwright.cli.paths import named, output_directory
from boxwright.cli.ssh_trouble import in_one_line, tell_missed, told_of, trouble
from boxwright.cli.targets import some, targets
from boxwright.cli.validating import refuse_problems, refuse_value
from boxwright.errors import EXIT_BAD_INPUT, EXIT_FAILED, UserError
from boxwright.export import FORMATS
from boxwright.export.release import Release, checked
from boxwright.spec.box import Box
from boxwright.spec.inventory import Inventory
from boxwright.spec.lock import path_of, read
from boxwright.spec.places import shown_path
from boxwright.spec.validate import judged_box
from boxwright.texts import printable

#: Of a planned release, what only the role knows; as its defaults are.
STOP_TIMEOUT_S = 90


class Pinned(NamedTuple):
    """The image of a planned release, as far as the lock knows it."""

    id: str
    digest: str | None

    def reference(self, image: str) -> str:
        """What to run: at its digest, where there is one."""
        return f"{image}@{self.digest}" if self.digest and "@" not in image else image


def export(
    hosts: Sequence[str],
    inventories: Sequence[str],
    *,
    format_: str,
    every: bool = False,
    deployment: str | None = None,
    planned: bool = False,
    output: str = "",
    as_json: bool = False,
) -> None:
    """Write the releases that serve on each box, or those that are planned, to a directory or to the output.

    Of several boxes each has a directory of its own in it. Exit status 1 where one has nothing to write.
    """
    if format_ not in FORMATS:
        raise UserError(
            f'--format: there is none named "{printable(format_)}"' if format_ else "which format?",
            status=EXIT_BAD_INPUT,
            ways_out=("--format one of: " + ", ".join(FORMATS),),
        )
    if deployment is not None:
        refuse_value("--deployment", deployment, "box_deployments[].name")
    if output:
        output_directory("--output", named(output))
    inventory, names, paths = targets(hosts, inventories, every=every)
    if every:
        names = hosts_with(inventory, names, deployment, every=True)
    alone = len(names) == 1 and not every
    if not alone and not output and not as_json:
        raise UserError(
            "the files of several boxes are told apart by the directory that they are in",
            status=EXIT_BAD_INPUT,
            ways_out=("--output a directory", "--host one of: " + ", ".join(some(names))),
        )
    refuse_problems(inventory, names)
    lab.ensure_simulated(inventory, names, as_json=True)
    played = play("plan.yml" if planned else "facts.yml", names, paths, quiet=True)
    told: dict[str, dict[str, Any]] = {}
    missed: dict[str, UserError] = {}
    for name in names:
        host = played.hosts.get(name, HostReport(name))
        written: list[Path] = []
        try:
            found = _found(name, host, inventory, paths, deployment, planned=planned)
            texts = _texts(name, format_, found)
            if output:
                written = save(named(output) if alone else named(output) / name, texts)
        except UserError as error:
            missed[name] = error
            told[name] = told_of({"format": format_, "files": None, "written": []}, in_one_line(error))
            continue
        told[name] = told_of({"format": format_, "files": texts, "written": [str(one) for one in written]})
        if output and not as_json:
            for path in written:
                say(f"written: {shown_path(path)}")
        elif not as_json:
            show(texts)
        for note in notes(found):
            say_aside(wrapped(f"note: {note}" if alone else f"note: {name}: {note}", hang=2))
    if as_json and not (alone and missed):
        show_json(told)
    tell_missed(missed, alone=alone, what="nothing was written")
    if missed:
        raise SystemExit(EXIT_FAILED)


def _found(
    name: str,
    host: HostReport,
    inventory: Inventory,
    paths: Sequence[Path],
    deployment: str | None,
    *,
    planned: bool,
) -> list[Release]:
    """The releases of a box that are meant. Raises UserError where there is none."""
    if host.failure or not host.results.get("host_facts"):
        raise trouble(name, host.failure, variables=inventory.variables(name))
    box = judged_box(name, inventory.variables(name))
    found = of_plan(box, host, paths) if planned else serving(name, host)
    if deployment is not None:
        found = [one for one in found if one.name == deployment]
    if not found:
        what = f'deployment "{printable(deployment)}"' if deployment is not None else "deployment"
        raise UserError(
            f"no {what} {'is planned' if planned else 'serves'} there",
            where=name,
            status=EXIT_BAD_INPUT,
            ways_out=("--planned takes those that are declared",) if not planned else (),
        )
    return found


def _texts(name: str, format_: str, releases: list[Release]) -> Mapping[str, str]:
    """The files of a box. Raises UserError for what the format has no words for."""
    try:
        return FORMATS[format_](releases)
    except ValueError as error:
        raise UserError(f"it cannot be written as {format_}: {error}", where=name) from error


def serving(name: str, host: HostReport) -> list[Release]:
    """The releases that serve, as the box keeps them."""
    found = []
    for one in host.results["host_facts"][0]["raw"].get("releases") or ():
        if not one.get("current"):
            continue
        try:
            state = json.loads(one["record"])
            release = _release(name, state, str(state["id"]), running=True)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise UserError(
                f"the release of {printable(str(one.get('deployment')))} that serves there cannot be read",
                where=name,
                why=f"{type(error).__name__}: {error}",
                ways_out=(f"./invoke provision --host {name}",),
            ) from error
        found.append(release)
    return found


def of_plan(box: Box, host: HostReport, paths: Sequence[Path]) -> list[Release]:
    """The releases that a provision would make. Raises UserError for what the plan refuses."""
    plan = next(iter(host.results.get("plan", ())), {}).get("ansible_facts", {}).get("box_plan", {})
    if plan.get("gates"):
        raise UserError(
            "the plan refuses it: " + "; ".join(str(one["id"]) for one in plan["gates"]),
            where=box.host,
            ways_out=(f"./invoke plan --host {box.host}",),
        )
    found = []
    for one in plan.get("deployments") or ():
        digest = next(
            (
                known
                for path in paths
                if (known := read(path_of(path)).entry(box.host, one["name"]).digest_of(one["image"]))
            ),
            None,
        )
        devices = [str(card) for card in one.get("devices") or one.get("gpus") or ()]
        params = {
            "config_dir": box.config_dir,
            "root_dir": box.root_dir,
            "stop_timeout_s": STOP_TIMEOUT_S,
            "drain_seconds": 0,
            "restart_limit": 0,
            "restart_window_s": 0,
        }
        state = engine_state.state_of(one, Pinned(one["image"], digest), "cdi", devices, params)
        found.append(_release(box.host, state, "planned", running=False))
    return found


def _release(host: str, state: Mapping[str, Any], release: str, *, running: bool) -> Release:
    # A text would be taken for the list of its letters.
    if not all(isinstance(state[name], list) for name in ("command", "devices")):
        raise ValueError("its command or its devices are no list")
    container = checked(container_of(dict(state), release))
    guard = engine_state.guard_source() if state.get("guard") else None
    return Release(host, container, guard, running, key_variable(dict(state)))


def notes(releases: Sequence[Release]) -> list[str]:
    """What whoever uses the files has to know beside what stands in them."""
    loose = [one.name for one in releases if "@" not in one.container.image]
    return [
        f"{name}: its image is not pinned: no lock knows its digest yet, a provision resolves it"
        for name in loose
    ]


def show(texts: Mapping[str, str]) -> None:
    """Print the files one below the other; one alone as it is, for a pipe."""
    for name, text in texts.items():
        if len(texts) > 1:
            say(f"# ---- {name}")
        say(text.rstrip("\n"))


def save(directory: Path, texts: Mapping[str, str]) -> list[Path]:
    """Write the files anew; none that is there is replaced. Raises UserError."""
    there = [name for name in texts if (directory / name).exists()]
    if there:
        raise UserError(
            f"there is such a file already: {', '.join(there)}",
            where=str(directory),
            status=EXIT_BAD_INPUT,
            ways_out=("--output another directory", "remove it"),
        )
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            (directory / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserError(
            f"it cannot be written: {error.strerror or error}",
            where=str(error.filename or directory),
            ways_out=("--output a directory where you may write",),
        ) from error
    return [directory / name for name in texts]
