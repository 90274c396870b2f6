"""The base of our actions: their modules run without Ansible's wrapper.

The wrapper makes every call cost a third of a second of a host's processor, whatever it does: it carries
and compiles some hundred kilobytes of Ansible's own that our modules use next to nothing of.
"""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

from ansible.plugins.action import ActionBase

from boxwright.ansible.declared import plain
from boxwright.ansible.interpreter import PYTHON
from boxwright.ansible.lean import payload

#: What a shell ends with where a program is not there, or cannot be run.
NOT_STARTED = (126, 127)


class LeanAction(ActionBase):  # type: ignore[misc]  # ansible-core ships no types
    """An action whose modules of ours run lean; all others run as Ansible has them.

    So does every module where input cannot be sent along with a command (a sudo that wants a terminal, su).
    """

    def _execute_module(
        self,
        module_name: str | None = None,
        module_args: dict[str, Any] | None = None,
        task_vars: dict[str, Any] | None = None,
        **more: Any,
    ) -> dict[str, Any]:
        name = module_name or str(self._task.action)
        python = str(self._templar.template((task_vars or {}).get("ansible_python_interpreter") or PYTHON))
        plainly = self._is_pipelining_enabled("new") and not (more or self._task.async_val)
        if not (plainly and self._is_ours(name) and python.startswith("/")):
            found: dict[str, Any] = super()._execute_module(
                module_name=module_name, module_args=module_args, task_vars=task_vars, **more
            )
            return found
        arguments = plain(self._task.args if module_args is None else module_args)
        check = bool(self._task.check_mode)
        command = [python, *payload.words()]
        environment = self._compute_environment_string()
        done = self._low_level_execute_command(
            f"{environment} {shlex.join(command)}".strip(),
            in_data=payload.sent(name, arguments, check=check),
        )
        return result(name, done, python)

    def _is_ours(self, name: str) -> bool:
        """Whether Ansible would take our module, too: a library may have another one of that name."""
        if not payload.known(name):
            return False
        found = self._shared_loader_obj.module_loader.find_plugin(name)
        return bool(found) and Path(found).resolve() == payload.place(name).resolve()


def result(module: str, done: dict[str, Any], python: str = PYTHON) -> dict[str, Any]:
    """What a module said, or what spoke in its place: a shell, sudo, Python itself."""
    said = str(done.get("stdout") or "")
    for line in reversed(said.splitlines()):
        if line.startswith("{"):
            try:
                found = json.loads(line)
            except ValueError:
                break
            if isinstance(found, dict):
                return found
    absent = done.get("rc") in NOT_STARTED
    return {
        "failed": True,
        "msg": f"{module} was not run: the interpreter {python} does not start"
        if absent
        else f"{module} did not run to its end on the host",
        "rc": done.get("rc"),
        "module_stdout": said,
        "module_stderr": str(done.get("stderr") or ""),
    }
