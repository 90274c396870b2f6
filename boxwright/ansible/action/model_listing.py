"""Tells model_listing what the inventory declares, and shows how far it is while it reads a store through."""

from __future__ import annotations

import re
from typing import Any

from ansible.errors import AnsibleActionFail

from boxwright import catalog
from boxwright.ansible.action.watched import WatchedAction
from boxwright.ansible.declared import box_of, lock_path, locked_revisions
from boxwright.errors import UserError
from boxwright.planner.lookups import lookups


class ActionModule(WatchedAction):
    """The action beside the module model_listing."""

    module_name = "model_listing"

    def arguments(self, task_vars: dict[str, Any]) -> dict[str, Any]:
        """The task's own, with where the store is and the models that are declared."""
        known = catalog.load()
        try:
            box = box_of(self._templar, task_vars)
            revisions = locked_revisions(lock_path(task_vars), box, known)
        except UserError as error:
            raise AnsibleActionFail(str(error)) from error
        declared = [
            {"repo": one["repo"], "revision": _commit(one.get("revision"))}
            for one in lookups(box.deployments, known, *revisions)
            if one.get("repo")
        ]
        return {**self._task.args, "root_dir": box.root_dir, "declared": declared}


def _commit(revision: str | None) -> str | None:
    return revision if revision and re.fullmatch("[0-9a-f]{40}", revision) else None
