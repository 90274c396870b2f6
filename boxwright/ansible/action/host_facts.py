"""Tells the module host_facts what to look up: the declared models, images, hub and places."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

from boxwright import catalog
from boxwright.ansible import receipts
from boxwright.ansible.declared import box_of, lock_path, locked_digests, locked_revisions, values_of
from boxwright.errors import UserError
from boxwright.planner.changes.runtime import declared_settings
from boxwright.planner.lookups import lookups
from boxwright.spec.box import Box


def arguments(
    box: Box, revisions: tuple[dict[str, str], dict[str, str]], known: catalog.Catalog
) -> dict[str, Any]:
    """The module's arguments for a box. revisions: as of `locked_revisions`."""
    daemon = declared_settings(box.settings)
    insecure = daemon.get("insecure-registries")
    return {
        "root_dir": box.root_dir,
        "config_dir": box.config_dir,
        "docker_root": str(daemon.get("data-root") or "/var/lib/docker"),
        "models": lookups(box.deployments, known, *revisions),
        "images": sorted({deployment.image for deployment in box.deployments}),
        "endpoint": box.hub.endpoint,
        "token": box.hub.token.reveal() if box.hub.token else "",
        "insecure_registries": _texts(insecure),
        "registries": _registries(box.settings.get("container_runtime_registries")),
        "proxy": box.proxy or "",
        "no_proxy": _texts(box.settings.get("container_runtime_no_proxy")),
    }


def _registries(declared: object) -> list[dict[str, str]]:
    """What the module needs of the declared registries."""
    found = declared if isinstance(declared, (list, tuple)) else ()
    names = ("host", "username", "password", "ca")
    return [{name: str(one.get(name) or "") for name in names} for one in found if isinstance(one, Mapping)]


def _texts(value: object) -> list[str]:
    return [str(one) for one in value] if isinstance(value, (list, tuple)) else []


class ActionModule(ActionBase):  # type: ignore[misc]  # ansible-core ships no types
    """The action beside the module host_facts; the task's own arguments win over those of the declaration."""

    _supports_check_mode = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Run the module on the host; the result is the module's own."""
        super().run(tmp, task_vars)
        variables = task_vars or {}
        known = catalog.load()
        try:
            box = box_of(self._templar, variables)
            revisions = locked_revisions(lock_path(variables), box, known)
            digests = locked_digests(lock_path(variables), box)
        except UserError as error:
            raise AnsibleActionFail(str(error)) from error
        declared = receipts.declared(values_of(self._templar, variables))
        given = {
            **arguments(box, revisions, known),
            "declared": declared,
            "digests": digests,
            **self._task.args,
        }
        result: dict[str, Any] = self._execute_module(
            module_name="host_facts", module_args=given, task_vars=task_vars
        )
        return result
