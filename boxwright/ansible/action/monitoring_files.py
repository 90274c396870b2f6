"""Tells the module monitoring_files what the box declares, with what a Prometheus finds in the inventory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from boxwright.ansible.declared import plain, values_of
from boxwright.ansible.lean.action import LeanAction
from boxwright.errors import UserError
from boxwright.monitoring import plan, scrape
from boxwright.spec.validate import judged_box


class ActionModule(LeanAction):
    """The action beside the module. state: also `absent`, as if nothing was declared. start: units too."""

    _supports_check_mode = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Make the arguments and run the module on the host."""
        result: dict[str, Any] = super().run(tmp, task_vars) or {}
        given, variables = plain(self._task.args), task_vars or {}
        state = given.pop("state", "present")
        start = given.pop("start", False)
        values = values_of(self._templar, variables)
        if state == "absent":
            values |= {"monitoring_exporters": False, "monitoring_server": False}
        declared = plan.declared(values)
        try:
            targets = found(self._templar, variables) if declared.server else []
        except UserError as error:
            return {**result, "failed": True, "msg": str(error)}
        if state == "verified":
            arguments = {"state": state, **plan.asked(declared, targets)}
        else:
            arguments = plan.kept(declared, targets) | ({"units": plan.units(declared)} if start else {})
        # The texts of all files would go into the host's journal at every run.
        quiet = {**variables, "ansible_no_target_syslog": True}
        done: dict[str, Any] = self._execute_module(
            module_name="monitoring_files", module_args=arguments, task_vars=quiet
        )
        return done


def found(templar: Any, variables: Mapping[str, Any]) -> list[scrape.Target]:
    """What the Prometheus of this host asks. Raises UserError."""
    me, known = str(variables["inventory_hostname"]), variables["hostvars"]
    watched = [
        watched_box(templar, str(name), known[name])
        for name in sorted(known)
        if plain(known[name].get("monitoring_exporters")) is True
    ]
    return scrape.targets(me, address(known[me], me), watched)


def watched_box(templar: Any, name: str, variables: Mapping[str, Any]) -> scrape.Watched:
    """A box of the inventory as it declares itself. Raises SpecErrors."""
    values = values_of(templar, variables)
    bind = str(values.get("monitoring_bind") or "127.0.0.1")
    return scrape.Watched(judged_box(name, values), address(variables, name), bind)


def address(variables: Mapping[str, Any], name: str) -> str:
    """How other boxes reach a host: its address in the inventory, or its name."""
    return str(plain(variables.get("monitoring_address")) or plain(variables.get("ansible_host")) or name)
