"""Makes the plan from the declaration and the host's facts, on the controller; refuses what cannot work."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.module_utils.parsing.convert_bool import boolean
from ansible.plugins.action import ActionBase

from boxwright import catalog, facts, planner
from boxwright.ansible.declared import (
    box_of,
    drafter_lock_name,
    lock_name,
    lock_path,
    locked_revisions,
    plain,
    varied_box,
)
from boxwright.errors import UserError
from boxwright.planner import Finding, HostPlan
from boxwright.spec import inventory, lock

WIDTH = 100


class ActionModule(ActionBase):  # type: ignore[misc]  # ansible-core ships no types
    """Arguments: raw (of host_facts), refuse (default true: fail when gates refuse, and lock what was
    resolved), full (default false: every role is to be visited), changes (options of a deployment that are to
    be tried: {deployment, options}; nothing is locked then).
    """

    _supports_check_mode = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """The plan as the fact box_plan; failed, with the gates as its message, when it cannot work."""
        result: dict[str, Any] = super().run(tmp, task_vars) or {}
        variables, refuse = task_vars or {}, bool(self._task.args.get("refuse", True))
        raw = self._task.args.get("raw")
        if not isinstance(raw, Mapping):
            raise AnsibleActionFail("plan needs raw, what the module host_facts returned")
        known, path = catalog.load(), lock_path(variables)
        try:
            changes = plain(self._task.args.get("changes") or {})
            box = (
                varied_box(self._templar, variables, changes) if changes else box_of(self._templar, variables)
            )
            models, drafts = locked_revisions(path, box, known)
            made = planner.plan(box, facts.parse(plain(raw), box.host), known, models, drafts)
            made = replace(made, full=self._full(variables))
            if refuse and path and not made.gates and not changes and not self._task.check_mode:
                _lock(path, made, known)
        except UserError as error:
            raise AnsibleActionFail(str(error)) from error
        result.update(changed=False, ansible_facts={"box_plan": made.to_json()}, said=_said(made))
        if made.gates and refuse:
            result.update(failed=True, refused=True, msg=refusal(made, _places(variables, box.host)))
        return result

    def _full(self, variables: Mapping[str, Any]) -> bool:
        """Whether all roles are visited: asked for, or a part of a role was asked for by its tag."""
        tags = variables.get("ansible_run_tags")
        return boolean(self._task.args.get("full", False)) or (tags is not None and list(tags) != ["all"])


def _said(made: HostPlan) -> str:
    if made.changes is None:
        return "changes unknown"
    count = len(made.changes)
    return f"{count} change{'' if count == 1 else 's'}" if count else "no changes"


def _lock(path: Path, made: HostPlan, known: catalog.Catalog) -> None:
    """Keep the commits that the models and draft models were resolved to."""
    for case in made.cases:
        name, revision = lock_name(case.deployment, known), case.model.revision
        if name and revision:
            lock.update(path, made.host, case.deployment.name, model=name, revision=revision)
        name, draft = drafter_lock_name(case.deployment, known), case.draft_model
        if name and draft and draft.revision:
            lock.update(path, made.host, case.deployment.name, drafter=name, drafter_revision=draft.revision)


def _places(variables: Mapping[str, Any], host: str) -> Callable[[str], str]:
    """Finds where a variable stands, `file:line`, in the inventories that the run was started with."""
    sources = [Path(str(one)) for one in variables.get("ansible_inventory_sources") or ()]
    known = inventory.load([one for one in sources if one.exists()])

    def place(path: str) -> str:
        found = known.location(host, path) if path else None
        return str(found) if found else path

    return place


def refusal(made: HostPlan, place: Callable[[str], str]) -> str:
    """What refuses a plan, as a person reads it: what, where, why, ways out."""
    lines = [f"{made.host}: refused, nothing was changed"]
    for found in made.gates:
        lines += ["", *_told(found, place(found.path))]
    return "\n".join(lines)


def _told(found: Finding, where: str) -> list[str]:
    lines = [f"  {found.id}   {where}".rstrip()]
    lines += textwrap.wrap(found.message, WIDTH, initial_indent="    ", subsequent_indent="    ")
    for number, way in enumerate(found.fix):
        word = "or" if number else "Either" if len(found.fix) > 1 else "Do"
        lines += textwrap.wrap(way, WIDTH, initial_indent=f"    {word:<8}", subsequent_indent=" " * 12)
    return lines
