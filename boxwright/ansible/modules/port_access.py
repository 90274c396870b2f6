"""Keep the published ports of deployments to declared sources, now, at every boot and restart of Docker."""

from __future__ import annotations

import ipaddress
import json
import os
from typing import Any, Dict, List

from ansible.module_utils import shapes, systemctl
from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.command import ensure, run
from ansible.module_utils.engine_unit import unit_name
from ansible.module_utils.shapes import DIGITS, TEXT, Fields, ListOf
from ansible.module_utils.systemd_unit import exec_line, render, specifiers

DOCUMENTATION = r"""
module: port_access
short_description: Which sources reach the ports that deployments publish
description:
  - Docker's published ports pass by the host's own firewall. A systemd unit makes rules for them, in chains
    of their own that DOCKER-USER and INPUT jump to, and nothing else; no engine is started without them.
  - Established connections are kept. No policy and no other port is touched.
  - Where firewalld is installed, a second unit makes them again whenever it reloads, starts or stops,
    each of which empties iptables.
  - Without sources, or with loopback addresses alone, all of it is taken away.
options:
  allow_from:
    description: "Networks that may connect; empty for everybody."
    type: list
    elements: str
    default: []
  deployments:
    description: "Each with name, bind and port."
    type: list
    elements: dict
    default: []
  config: {description: "File with the declaration.", type: path, required: true}
  receipts: {description: "File with the rules as they were made.", type: path, required: true}
  script: {description: "Path of the program that makes the rules.", type: path, required: true}
  script_text: {description: "Its text.", type: str, default: ""}
  unit: {description: "Name of the systemd unit.", type: str, required: true}
"""

#: Prefix of every path; tests point it at a directory of theirs.
ROOT = ""
PYTHON = "/usr/bin/python3"
FIREWALLD = "/usr/sbin/firewalld"
FORMAT = 1
#: What is in its parameter of mappings.
SHAPES = {"deployments": ListOf(Fields({"name": TEXT, "bind": TEXT, "port": DIGITS}))}


class AccessError(Exception):
    """The ports cannot be kept to what was declared; the text says why."""


class Access:
    """One call's work. done: what was (or would be) changed, in words."""

    def __init__(self, params: Dict[str, Any], check: bool) -> None:
        self.params, self.check, self.done = params, check, []  # type: Dict[str, Any], bool, List[str]
        self.config, self.receipts = ROOT + params["config"], ROOT + params["receipts"]
        self.script = ROOT + params["script"]
        self.unit_path = "%s%s/%s" % (ROOT, systemctl.UNIT_DIRECTORY, params["unit"])
        self.watch = params["unit"].replace(".service", "-watch.service")
        self.watch_path = "%s%s/%s" % (ROOT, systemctl.UNIT_DIRECTORY, self.watch)
        try:
            self.sources = [str(ipaddress.ip_network(text)) for text in params["allow_from"]]
            self.guarded = [
                {"name": one["name"], "bind": one["bind"], "port": int(one["port"])}
                for one in params["deployments"]
                if not ipaddress.ip_address(one["bind"]).is_loopback
            ]
        except (KeyError, TypeError, ValueError) as error:
            raise AccessError("box_allow_from or a deployment's bind and port: %s" % error) from None

    def run(self) -> None:
        """Make it so. Raises AccessError."""
        try:
            if self.sources and self.guarded:
                self.present()
            else:
                self.absent()
        except systemctl.UnitError as error:
            raise AccessError(str(error)) from None

    def present(self) -> None:
        """Write, apply where anything differs, and look again."""
        ports = [{"bind": one["bind"], "port": one["port"]} for one in self.guarded]
        config = {"format": FORMAT, "allow_from": self.sources, "ports": ports}
        watched = os.path.exists(ROOT + FIREWALLD)
        texts = (
            (self.config, json.dumps(config, indent=1) + "\n", 0o644),
            (self.script, self.params["script_text"], 0o755),
            (self.unit_path, self.unit_text(), 0o644),
            *([(self.watch_path, self.watch_text(), 0o644)] if watched else []),
        )
        changed = [path for path, text, mode in texts if ensure(path, text, mode, check=self.check)]
        self.done += ["write " + path for path in changed]
        state = systemctl.show(self.params["unit"])
        if not state.enabled or state.active != "active":
            self.done.append("enable and start " + self.params["unit"])
        elif not changed:
            self.done += self.differences()
        watching = systemctl.show(self.watch) if watched else None
        if watching and not (watching.enabled and watching.active == "active"):
            self.done.append("enable and start " + self.watch)
        if self.check or not self.done:
            return
        if self.unit_path in changed or not state.enabled:
            systemctl.call("daemon-reload")
            # "reenable": the links of engines that need it follow what [Install] says now.
            systemctl.call("reenable", self.params["unit"])
        # Not a restart: engines that need the unit would be restarted with it.
        systemctl.call("reload-or-restart" if state.active == "active" else "start", self.params["unit"])
        wrong = self.differences()
        if wrong:
            raise AccessError("the rules do not hold:\n" + "\n".join(wrong))
        if watched:
            systemctl.call("daemon-reload")
            systemctl.call("reenable", self.watch)
            systemctl.restart(self.watch)

    def unit_text(self) -> str:
        """The unit: after Docker and with each of its restarts, before every engine, which needs it."""
        units = " ".join(specifiers(unit_name(one["name"])) for one in self.guarded)
        words = [PYTHON, "-I", self.params["script"], "apply", self.params["config"], self.params["receipts"]]
        apply = exec_line([words])
        unit = [
            ("Description", "Which sources reach the ports that Boxwright's deployments publish"),
            ("After", "docker.service ufw.service firewalld.service"),
            ("PartOf", "docker.service"),
            ("Before", units),
        ]
        service = [
            ("Type", "oneshot"),
            ("RemainAfterExit", "yes"),
            ("ExecStart", apply),
            ("ExecReload", apply),
            ("TimeoutStartSec", "150"),
        ]
        install = [("WantedBy", "docker.service"), ("RequiredBy", units)]
        text: str = render(
            [("Unit", unit), ("Service", service), ("Install", install)],
            comments=["Kept by Boxwright; edits are overwritten."],
        )
        return text

    def watch_text(self) -> str:
        """The unit that makes the rules again after firewalld has emptied iptables."""
        words = [PYTHON, "-I", self.params["script"], "watch", self.params["config"], self.params["receipts"]]
        unit = [
            ("Description", "Published ports kept to their sources when firewalld empties iptables"),
            ("After", "dbus.service firewalld.service docker.service " + self.params["unit"]),
            ("ConditionPathExists", FIREWALLD),
            ("StartLimitIntervalSec", "0"),
        ]
        service = [
            ("Type", "exec"),
            ("ExecStart", exec_line([words])),
            ("Restart", "always"),
            ("RestartSec", "5"),
        ]
        text: str = render(
            [("Unit", unit), ("Service", service), ("Install", [("WantedBy", "multi-user.target")])],
            comments=["Kept by Boxwright; edits are overwritten."],
        )
        return text

    def differences(self) -> List[str]:
        """What is not as it was applied, in words. Raises AccessError where that cannot be told."""
        done = run([PYTHON, "-I", self.script, "check", self.config, self.receipts], timeout=150)
        if done.rc not in (0, 1):
            raise AccessError(done.text)
        return [line for line in done.stdout.splitlines() if line]

    def absent(self) -> None:
        """Everybody reaches the ports again, as far as they are bound to."""
        kept = (self.watch_path, self.unit_path, self.script, self.config, self.receipts)
        paths = [path for path in kept if os.path.exists(path)]
        self.done += ["remove " + path for path in paths]
        if self.check or not paths:
            return
        if self.watch_path in paths:
            systemctl.call("disable", self.watch)
            run(["systemctl", "stop", self.watch])
        # First the links by which engines need the unit: they would be stopped with it.
        if self.unit_path in paths:
            systemctl.call("disable", self.params["unit"])
        if self.script in paths:
            done = run([PYTHON, "-I", self.script, "remove", self.config, self.receipts], timeout=150)
            if done.rc:
                raise AccessError(done.text)
        for path in paths:
            if os.path.exists(path):
                os.unlink(path)
        # The unit is forgotten with its file; it holds nothing that would have to be stopped.
        systemctl.call("daemon-reload")
        run(["systemctl", "stop", self.params["unit"]])


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "allow_from": {"type": "list", "elements": "str", "default": []},
            "deployments": {"type": "list", "elements": "dict", "default": []},
            "config": {"type": "path", "required": True},
            "receipts": {"type": "path", "required": True},
            "script": {"type": "path", "required": True},
            "script_text": {"type": "str", "default": ""},
            "unit": {"type": "str", "required": True},
        },
        supports_check_mode=True,
    )
    shapes.refuse(module, SHAPES)
    done: List[str] = []
    try:
        access = Access(module.params, module.check_mode)
        done = access.done
        access.run()
    except AccessError as error:
        module.fail_json(msg=str(error), done=done)
    module.exit_json(
        changed=bool(done),
        said=", ".join(access.sources) if access.sources and access.guarded else "",
        done=done,
        diff={"before": "", "after": "".join(line + "\n" for line in done)},
    )


if __name__ == "__main__":
    main()
