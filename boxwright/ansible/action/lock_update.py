"""Moves a host's lock to what is offered now, on the controller, and tells what that changes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleActionFail

from boxwright import catalog, facts
from boxwright.ansible.action.host_facts import arguments
from boxwright.ansible.declared import (
    box_of,
    drafter_lock_name,
    lock_name,
    lock_path,
    locked_digests,
    locked_revisions,
    plain,
)
from boxwright.ansible.lean.action import LeanAction
from boxwright.errors import UserError
from boxwright.planner import updating
from boxwright.planner.lookups import lookups
from boxwright.spec import lock
from boxwright.spec.box import Box


class ActionModule(LeanAction):
    """Arguments: model (only this one: a deployment's, catalog's or hub's name, "" for all)."""

    _supports_check_mode = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """The moves; the lock is written unless in check mode."""
        result: dict[str, Any] = super().run(tmp, task_vars) or {}
        variables, only = task_vars or {}, str(self._task.args.get("model") or "")
        known, path = catalog.load(), lock_path(variables)
        if path is None:
            raise AnsibleActionFail("the host is of no inventory, so it has no lock")
        try:
            box = box_of(self._templar, variables)
            locked, digests = locked_revisions(path, box, known), locked_digests(path, box)
            wanted = lookups(box.deployments, known, {}, {}) + lookups(box.deployments, known, *locked)
            asked = self._execute_module(
                module_name="host_facts",
                module_args=_arguments(box, known, wanted, digests, images=not only),
                task_vars=variables,
            )
            if asked.get("failed"):
                return dict(asked)
            told = facts.parse(plain(asked["raw"]), box.host)
            names = {
                one.name: (lock_name(one, known), drafter_lock_name(one, known)) for one in box.deployments
            }
            moves = updating.moves(box, known, told, locked, names, only)
            if not only:
                moves += updating.image_moves(box, told, digests)
            if not self._task.check_mode:
                _write(path, box.host, moves)
        except UserError as error:
            raise AnsibleActionFail(str(error)) from error
        changed = [move for move in moves if move["before"] != move["after"]]
        return {**result, "changed": bool(changed), "moves": moves}


def _arguments(
    box: Box, known: catalog.Catalog, models: list[dict[str, str]], digests: dict[str, str], *, images: bool
) -> dict[str, Any]:
    asked = arguments(box, ({}, {}), known)
    return {
        **asked,
        "models": [dict(one) for one in {tuple(sorted(one.items())): one for one in models}.values()],
        "images": asked["images"] if images else [],
        "digests": digests,
        "ask_registries": True,
    }


def _write(path: Path, host: str, moves: list[Mapping[str, Any]] | Any) -> None:
    for move in moves:
        if move["what"] == "image":
            lock.update(path, host, move["deployment"], image=move["name"], image_digest=move["after"])
        elif move["what"] == "weights":
            lock.update(path, host, move["deployment"], model=move["name"], revision=move["after"])
        else:
            lock.update(path, host, move["deployment"], drafter=move["name"], drafter_revision=move["after"])
