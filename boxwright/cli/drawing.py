"""Plans and facts as a person reads them: a page, not a log."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Mapping
from typing import Any

from boxwright.catalog.purpose import EMBEDDINGS, RERANKING, TEXT
from boxwright.cli.capacity import draw_memory, draw_speed, gib
from boxwright.cli.console import WIDTH, say, table, wrapped
from boxwright.facts import HostFacts
from boxwright.facts.model import ModelFiles
from boxwright.facts.room import Filesystem

#: Where clients ask for what is no text.
ASKED = {EMBEDDINGS: "/v1/embeddings", RERANKING: "/v1/rerank"}


def draw_plan(name: str, plan: Mapping[str, Any]) -> None:
    """Print what refuses it, what to know, each deployment's memory and command, and what would change."""
    verdict = "refused" if plan["gates"] else "will work"
    say(f"{name}: {verdict}")
    for kind in ("gates", "advice"):
        for finding in plan[kind]:
            say()
            draw_finding(finding, refuses=kind == "gates")
    for deployment in plan["deployments"]:
        say()
        draw_deployment(deployment)
    say()
    if plan["changes"] is None:
        say("changes: unknown (no facts of the host)")
    elif plan["changes"]:
        say("changes")
        for change in plan["changes"]:
            say(textwrap.fill(change["text"], WIDTH, initial_indent="  - ", subsequent_indent="    "))
    else:
        say("changes: none")
        draw_visits(plan.get("visits") or {})


def draw_visits(visits: Mapping[str, Any]) -> None:
    """Print which roles a run looks at all the same, and why."""
    if visits:
        say("looked at all the same")
    for role, reasons in visits.items():
        line = f"{role}: {'; '.join(reasons)}"
        say(textwrap.fill(line, WIDTH, initial_indent="  - ", subsequent_indent="    "))


def draw_finding(finding: Mapping[str, Any], *, refuses: bool) -> None:
    """Print one gate or advice: id, where it was declared, what and why, the ways out."""
    where = finding.get("place")
    say(f"  {'refused' if refuses else 'advice '}  {finding['id']}" + (f"   {where}" if where else ""))
    say(textwrap.fill(finding["message"], WIDTH, initial_indent="    ", subsequent_indent="    "))
    for number, way in enumerate(finding["fix"]):
        opening = ("either  " if len(finding["fix"]) > 1 else "do      ") if number == 0 else "or      "
        say(textwrap.fill(way, WIDTH, initial_indent=f"    {opening}", subsequent_indent=" " * 12))


def draw_deployment(deployment: Mapping[str, Any]) -> None:
    """Print a deployment: its memory, its speed, and the engine's command."""
    served = deployment.get("serves") or TEXT
    what = "" if served == TEXT else f", serves {served} at {ASKED[served]}"
    say(f"  {deployment['name']}: {deployment['served_name']} on {deployment['image']}{what}")
    memory = deployment.get("memory") or {}
    if memory.get("cards"):
        draw_memory(memory, deployment["context"])
    speed = deployment.get("speed") or {}
    if speed:
        draw_speed(speed)
    say("    command:")
    command = textwrap.fill(
        shlex.join(deployment["command"]), WIDTH - 8, break_long_words=False, break_on_hyphens=False
    )
    say(textwrap.indent(command.replace("\n", " \\\n"), "      "))
    for key, value in (deployment.get("env") or {}).items():
        say(f"      {key}={shlex.quote(str(value))}")


def model_word(model: ModelFiles) -> str:
    """What a host has of a model, in a few words."""
    if model.error:
        return model.detail or model.error
    size = gib(model.weight_bytes)
    return f"{size} in the {model.origin}" + (", every byte verified" if model.complete else "")


def draw_facts(name: str, facts: HostFacts) -> None:
    """Print what a box is, on a page."""
    system = facts.os
    say(f"{name}: {system.id} {system.version_id}, Linux {system.kernel}, {system.architecture}")
    driver = facts.driver
    say(
        f"  driver   {driver.state}"
        + (
            f", {driver.loaded_version or driver.installed_version}"
            if driver.loaded_version or driver.installed_version
            else ""
        )
    )
    runs = facts.docker
    toolkit = f", container toolkit {runs.toolkit_version}" if runs.toolkit_version else ""
    say(f"  docker   {runs.version or 'absent'}{toolkit}")
    memory = facts.memory
    say(f"  memory   {gib(memory.total)}, {gib(memory.available)} available")
    disks: dict[str, list[Filesystem]] = {}
    for one in facts.filesystems:
        disks.setdefault(one.device, []).append(one)
    for first, *others in disks.values():
        paths = ", ".join(one.path for one in (first, *others))
        say(wrapped(f"room     {gib(first.available)} of {gib(first.size)} free for {paths}", 2, 9))
    for model in facts.models:
        say(wrapped(f"model    {model.repo or model.request}: {model_word(model)}", 2, 9))
    for release in facts.releases:
        say(f"  release  {release.id} of {release.deployment}{', live' if release.current else ''}")
    if facts.cards:
        table(
            ["  card", "name", "memory", "power limit", "PCIe"],
            [
                [
                    f"  {card.index}",
                    card.name or card.pci_id,
                    f"{card.memory_total_mib:,} MiB" if card.memory_total_mib else "?",
                    f"{card.power.limit:.0f} W" if card.power.limit else "?",
                    f"x{card.link.width}" if card.link.width else "?",
                ]
                for card in facts.cards
            ],
            right=(2, 3),
        )
    else:
        say("  cards    none found")
