#!/usr/bin/python
"""Ansible module: Docker runs with our settings in its daemon.json, and everybody else's where they were."""

from __future__ import annotations

import glob
import os
import re
import shutil
import time
from typing import Any, Dict, List, Optional

from ansible.module_utils import (
    docker_daemon,
    docker_unit,
    exact_json,
    shapes,
    shared_file,
    systemctl,
    way_out,
)
from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.command import read, take_away, write
from ansible.module_utils.daemon_json import ConfigError, Receipt, ShapeError, dump, merge, parse
from ansible.module_utils.docker_api import Docker, DockerError
from ansible.module_utils.docker_daemon import DaemonError
from ansible.module_utils.docker_proxy import Proxy, ProxyError, variables_text
from ansible.module_utils.docker_settings import due, ours, overlay
from ansible.module_utils.shapes import ANY, MapOf
from ansible.module_utils.shared_file import SharedFileError

DOCUMENTATION = r"""
module: docker_daemon_config
short_description: Docker runs with our settings, and everybody else's
description:
  - Merges settings into daemon.json (or the file that the unit names), keeping other keys and their order;
    what it set
    earlier and is declared no more goes back to what stood there before.
  - A file that is not valid JSON is left alone and reported. The new one is held against the unit's command
    line and tried by the daemon itself before it is put in place; if the daemon does not start with it, the
    old file comes back.
  - The daemon is told to reload where that suffices and restarted where it must be, only after a change.
options:
  config: {type: dict, default: {}, description: "Further settings, as in daemon.json; they win over ours."}
  state: {type: str, choices: [present, absent], default: present, description: "absent takes only ours out."}
  receipt: {type: path, required: true, description: "Where to keep what in the file is ours."}
  proxy:
    description: "Proxy for fetching images, kept beside the receipt; without, the daemon's own stays."
    type: str
  no_proxy: {type: list, elements: str, default: [], description: "Hosts that are reached without it."}
  announce:
    description: "Only tell what a restart would stop, where one is due."
    type: bool
    default: false
"""
RETURN = r"""
version: {type: str, description: "The daemon's version."}
cdi: {type: bool, description: "Whether it gives containers devices by CDI."}
info: {type: dict, description: "Of `docker info`: runtimes, data_root, live_restore, cgroup_driver."}
applied: {type: str, description: "none, reload or restart."}
announced: {type: list, description: "Running containers that a due restart stops; nothing was done yet."}
backup: {type: str, description: "Copy of the file as it was."}
"""

#: There while a restart is due: a run that ends between the new file and the restart leaves it to the next
#: one.
#: It lies where a reboot, which is a restart too, takes it away.
PENDING = "/run/boxwright-docker-restart-due"
HOOK = "/usr/bin/nvidia-container-runtime-hook"
#: What the names of our engines' containers begin with.
ENGINES = "boxwright-"
PROXY_FILE = "docker-proxy.env"
#: How the names of our backups go on.
_BACKUPS = ".before-[0-9]*T[0-9]*Z"
_CREDENTIALS = re.compile(r"(://)[^/\s\"]+@")


class Daemon:
    """One call's work on the daemon's configuration."""

    def __init__(self, params: Dict[str, Any]) -> None:
        self.params = params
        self.version = docker_daemon.installed()
        self.unit = docker_unit.look()
        self.path, self.text = shared_file.look(self.unit.config_path)
        self.before = parse(self.text, self.path)
        self.receipt = Receipt.load(read(params["receipt"]), params["receipt"])
        # The whole file is ours where there was none before.
        made = [*self.receipt.made, ()] if self.text is None and not self.receipt.made else self.receipt.made
        wanted: Dict[str, Any] = {}
        if params["state"] == "present":
            clean = merge(self.before, {}, self.receipt)[0]
            wanted = overlay(ours(self.version, clean), _declared(params["config"]))
        try:
            self.after, self.new_receipt = merge(self.before, wanted, self.receipt._replace(made=made))
        except ShapeError as error:
            raise error.located(self.path, self.text) from error
        self.deleted = not self.after and self.text is not None and () in made
        variables = variables_text(way_out.address(params["proxy"]), params["no_proxy"]) if wanted else None
        self.proxy = Proxy(variables, os.path.join(os.path.dirname(params["receipt"]), PROXY_FILE))
        self.backup: Optional[str] = None

    @property
    def rewritten(self) -> bool:
        """Whether the file is to change."""
        return bool(self.after != self.before or self.deleted)

    @property
    def changed(self) -> bool:
        """Whether anything is not as declared."""
        return bool(self.rewritten or self.new_receipt != self.receipt or self.proxy.changed or self.off)

    @property
    def off(self) -> bool:
        """Whether Docker, which is to run, does not start at boot."""
        if self.version is None or self.params["state"] != "present":
            return False
        return not systemctl.show(docker_daemon.UNIT).enabled

    def clashes(self) -> str:
        """What the unit's command line sets too, for a message; Docker would not start (again) with both."""
        found = self.unit.clashes(self.after)
        if not found:
            return ""
        declared = sorted({clash.key.partition(".")[0] for clash in found} & set(self.params["config"]))
        where = "; %s from container_runtime_daemon_config" % ", ".join(declared) if declared else ""
        return (
            "%s would hold %s. Docker starts with one of the two only, so nothing was changed: take one out%s"
            % (self.path, "; ".join(str(clash) for clash in found), where)
        )

    def apply_by(self) -> str:
        """What is due: none, start, reload or restart."""
        if self.version is None:
            return "none"
        state = systemctl.show(docker_daemon.UNIT)
        if not state.running:
            return "start"
        if self.proxy.changed or os.path.exists(PENDING) or self._hook_unknown(state.began):
            return "restart"
        by: str = due(self.before, self.after)
        return by

    def _hook_unknown(self, began: Optional[float]) -> bool:
        """Whether the daemon began before the hook for --gpus was there: it looks for it only then."""
        if self.version is None or self.version.knows_cdi or began is None or not os.path.exists(HOOK):
            return False
        return os.stat(HOOK).st_ctime > began + 1

    def apply(self, by: str) -> None:
        """Try the new file, put it in place, have it take effect; the old one comes back if it does not."""
        if self.rewritten and self.version is not None:
            trial = self.path + ".boxwright-trial"
            write(trial, dump(self.after, self.text), 0o600)
            try:
                docker_daemon.check(self.version, trial, self.unit, self.after)
            except DaemonError as error:
                raise DaemonError(
                    "Docker does not accept the settings, %s was left as it is: %s"
                    % (self.path, str(error).replace(trial, self.path))
                ) from error
            finally:
                os.unlink(trial)
        due_before = os.path.exists(PENDING)
        if by in ("restart", "start"):
            write(PENDING, "")
        try:
            self._write()
        except OSError as error:
            for left in ([] if due_before else [PENDING]) + ([self.backup] if self.backup else []):
                if os.path.exists(left):
                    os.unlink(left)
            raise DaemonError(
                "%s cannot be written: %s; it was left as it is"
                % (error.filename or self.path, shared_file.reason(error))
            ) from error
        try:
            self._effect(by)
        except DaemonError as error:
            raise DaemonError(self._back(error)) from error
        if self.params["state"] == "present":
            write(self.params["receipt"], self.new_receipt.text(), 0o600)
        else:
            # The file is as it was without us: what was kept of it before each change goes with the receipt.
            for left in [self.params["receipt"], *glob.glob(glob.escape(self.path) + _BACKUPS)]:
                take_away(left)
        take_away(PENDING)

    def _write(self) -> None:
        if self.rewritten:
            status = os.stat(self.path) if self.text is not None else None
            if self.text is not None:
                self.backup = "%s.before-%s" % (self.path, time.strftime("%Y%m%dT%H%M%SZ", time.gmtime()))
                shutil.copy2(self.path, self.backup)
            if self.deleted:
                os.unlink(self.path)
            else:
                write(self.path, dump(self.after, self.text), status.st_mode & 0o7777 if status else 0o644)
            if status and not self.deleted:
                os.chown(self.path, status.st_uid, status.st_gid)
        self.proxy.apply()

    def _effect(self, by: str) -> None:
        try:
            if not systemctl.show(docker_daemon.UNIT).enabled:
                systemctl.call("enable", docker_daemon.UNIT)
            if by == "reload":
                systemctl.call("reload", docker_daemon.UNIT)
        except systemctl.UnitError as error:
            raise DaemonError(str(error)) from error
        if by in ("restart", "start"):
            docker_daemon.restart()

    def _back(self, error: DaemonError) -> str:
        """Put the old file back and start with it; the message about it all."""
        if not self.rewritten:
            return "Docker does not start: %s" % error
        if self.text is None:
            os.unlink(self.path)
        elif self.backup:
            shutil.copy2(self.backup, self.path)
        try:
            docker_daemon.restart()
        except DaemonError as second:
            return "Docker starts neither with the new settings (%s) nor with the old ones (%s)" % (
                error,
                second,
            )
        if os.path.exists(PENDING):
            os.unlink(PENDING)
        return "Docker did not start with the new settings and runs with the old ones again: %s" % error


def _declared(config: Dict[str, Any]) -> Dict[str, Any]:
    """What is declared, as the file has it. Raises ConfigError for what JSON has not."""
    try:
        found: Dict[str, Any] = exact_json.exact(config, "container_runtime_daemon_config")
    except exact_json.NotExact as error:
        raise ConfigError("%s; nothing was changed" % error) from error
    return found


def diff(daemon: Daemon) -> Dict[str, str]:
    """Ansible's diff, without the passwords that addresses may hold."""

    def shown(text: str) -> str:
        return _CREDENTIALS.sub(r"\1***@", text)

    return {
        "before_header": daemon.path,
        "after_header": daemon.path,
        "before": shown(daemon.text or ""),
        "after": shown(dump(daemon.after, daemon.text) if daemon.rewritten else daemon.text or ""),
    }


def stopped(docker: Docker) -> List[str]:
    """Running containers that a restart of the daemon stops.

    With live-restore they run on, but for our engines: their units require the daemon's and stop with it.
    """
    running = sorted(docker.running())
    if docker.info().get("LiveRestoreEnabled"):
        return [name for name in running if name.startswith(ENGINES)]
    return running


def summary(info: Dict[str, Any]) -> Dict[str, Any]:
    """What a role checks, of `docker info`."""
    return {
        "runtimes": sorted(info.get("Runtimes") or {}),
        "data_root": info.get("DockerRootDir"),
        "live_restore": bool(info.get("LiveRestoreEnabled")),
        "cgroup_driver": info.get("CgroupDriver"),
    }


#: What is in its parameters of mappings and lists.
SHAPES = {"config": MapOf(ANY)}


def main() -> None:
    """Look, merge, try, write, restart."""
    module = AnsibleModule(
        argument_spec={
            "config": {"type": "dict", "default": {}},
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "receipt": {"type": "path", "required": True},
            "proxy": {"type": "str"},
            "no_proxy": {"type": "list", "elements": "str", "default": []},
            "announce": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    shapes.refuse(module, SHAPES)
    way_out.hide_logins(module)
    params = module.params
    try:
        daemon = Daemon(params)
        if daemon.version is None and not module.check_mode and params["state"] == "present":
            module.fail_json(msg="Docker is not installed: the role's install step brings it")
        by = daemon.apply_by()
        changed = daemon.changed or by != "none"
        clashes = daemon.clashes() if daemon.version else ""
        if clashes and params["state"] == "present":
            module.fail_json(msg=clashes)
        running = stopped(Docker()) if by == "restart" else []
        told = bool(params["announce"] and running)
        if changed and not module.check_mode and not told:
            daemon.apply(by)
        info = docker_daemon.wait(10) if daemon.version and (by == "none" or not module.check_mode) else {}
    except (ConfigError, DaemonError, DockerError, ProxyError, SharedFileError, systemctl.UnitError) as error:
        module.fail_json(msg=_CREDENTIALS.sub(r"\1***@", str(error)))
    except OSError as error:
        module.fail_json(msg="%s: %s" % (error.filename, shared_file.reason(error)))
    module.exit_json(
        changed=changed,
        applied=by,
        announced=running if told or module.check_mode else [],
        diff=diff(daemon),
        backup=daemon.backup,
        version=daemon.version.text if daemon.version else "",
        # In check mode there may be no Docker yet; what the run would install is taken to have it.
        cdi=daemon.version is None or daemon.version.knows_cdi,
        info=summary(info),
    )


if __name__ == "__main__":
    main()
