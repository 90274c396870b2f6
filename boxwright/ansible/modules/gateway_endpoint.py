#!/usr/bin/python
"""Keeps one endpoint in front of several boxes: HAProxy's files, its unit, and changes without a gap."""

from __future__ import annotations

import json
import os
import shutil
import socket
import time
from typing import Any, Dict, List, Optional

from ansible.module_utils import gateway_socket, systemctl
from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.command import ensure, read, run, write
from ansible.module_utils.gateway_socket import GatewayError
from ansible.module_utils.gateway_text import CONFIG, files, key_name, placed
from ansible.module_utils.gateway_words import ADMIN
from ansible.module_utils.systemd_unit import exec_line, render

DOCUMENTATION = r"""
module: gateway_endpoint
short_description: One endpoint in front of several boxes
description:
  - Each configuration lies in a directory of its own, which HAProxy checks before the link C(current) leads
    to it; the one before it stays. A change is a reload, which no running request notices. One that HAProxy
    does not take over is taken back.
  - Keys of engines and the certificate lie in files of root's alone.
options:
  settings: {type: dict, default: {}, description: "What is declared, as gateway_text.files takes it."}
  keys: {type: dict, default: {}, description: "`model/box` -> an engine's key; one left out stays as known."}
  certificate: {type: str, default: "", description: "Chain and key as PEM."}
  directory: {type: path, required: true, description: "Where the files lie."}
  unit: {type: str, required: true, description: "Name of the systemd unit."}
  state: {type: str, choices: [present, absent, verified], default: present, description: "Present or not."}
author: [Boxwright maintainers]
"""
EXAMPLES = r"""
- name: The gateway serves what is declared
  gateway_endpoint:
    settings: "{{ gateway_settings }}"
    directory: /etc/boxwright/gateway
    unit: boxwright-gateway.service
"""
RETURN = r"""
told: {description: "What a person should know.", type: list, returned: success}
"""

HAPROXY = "/usr/sbin/haproxy"
CURRENT, KEYS = "current", "keys.json"
#: Seconds until a reload must have come through, and a start.
PATIENCE_S = 30.0
POLL_S = 0.2


class Endpoint:
    """One call's work. done: what was (or would be) changed, in words."""

    def __init__(self, params: Dict[str, Any], check: bool) -> None:
        self.params, self.check = params, check
        self.done, self.told = [], []  # type: List[str], List[str]
        self.directory = str(params["directory"])
        self.current = os.path.join(self.directory, CURRENT)
        self.unit_path = "%s/%s" % (systemctl.UNIT_DIRECTORY, params["unit"])

    def present(self) -> None:
        """Write, have it checked, and have HAProxy take it over. Raises GatewayError."""
        settings, keys = self.params["settings"], self.keys()
        wanted = [(one["name"], server["box"]) for one in settings["models"] for server in one["servers"]]
        for model, box in wanted:
            if key_name(model, box) not in keys:
                self.told.append(
                    "%s is left out of %s: the key of its engine is not known yet" % (box, model)
                )
        for one in settings["models"]:
            for server in one["servers"]:
                server["address"] = resolved(server["box"], server["address"])
        try:
            name, texts = placed(files(settings, keys, self.params["certificate"]), self.directory)
        except (KeyError, TypeError, ValueError) as error:
            raise GatewayError("what is declared makes no configuration: %s" % error) from None
        texts[KEYS] = json.dumps(keys)
        before = self.name()
        if before != name or self.differs(name, texts):
            self.done.append("write %s/%s" % (self.directory, name))
        unit_changed = ensure(self.unit_path, self.unit_text(), check=self.check)
        if unit_changed:
            self.done.append("write " + self.unit_path)
        state = systemctl.show(self.params["unit"])
        if not state.running or not state.enabled:
            self.done.append("enable and start " + self.params["unit"])
        if self.check or not self.done:
            return
        if unit_changed:
            systemctl.call("daemon-reload")
        self.lay(name, texts, before)
        try:
            self.take_over(name, running=state.running)
        except (GatewayError, systemctl.UnitError) as error:
            self.back(before, str(error))
        self.prune(name, before)

    def keys(self) -> Dict[str, str]:
        """The keys that were given, and of the others those that were known before."""
        text = read(os.path.join(self.current, KEYS))
        try:
            known = json.loads(text) if text else {}
        except ValueError:
            known = {}
        return {**known, **{name: key for name, key in self.params["keys"].items() if key}}

    def name(self) -> Optional[str]:
        """The configuration that the link leads to."""
        try:
            return os.path.basename(os.readlink(self.current))
        except OSError:
            return None

    def differs(self, name: str, texts: Dict[str, str]) -> bool:
        """Whether somebody has changed the files since."""
        here = os.path.join(self.directory, name)
        return any(
            read(os.path.join(here, file)) != text or os.stat(os.path.join(here, file)).st_mode & 0o77
            for file, text in texts.items()
        )

    def lay(self, name: str, texts: Dict[str, str], before: Optional[str]) -> None:
        """The files in their directory, taken by HAProxy's own check, and the link to it."""
        here = os.path.join(self.directory, name)
        os.makedirs(here, mode=0o700, exist_ok=True)
        os.chmod(here, 0o700)
        for file, text in texts.items():
            write(os.path.join(here, file), text, 0o600)
        checked = run([HAPROXY, "-c", "-q", "-f", os.path.join(here, CONFIG)], timeout=60)
        if checked.rc:
            if name != before:
                shutil.rmtree(here)
            raise GatewayError(
                "HAProxy does not take the new configuration, the gateway is as it was: %s"
                % self.clean(checked.text)
            )
        self.link(name)

    def link(self, name: str) -> None:
        """Have `current` lead there, at once."""
        temporary = self.current + ".new"
        if os.path.lexists(temporary):
            os.unlink(temporary)
        os.symlink(name, temporary)
        os.replace(temporary, self.current)

    def clean(self, text: str) -> str:
        """What HAProxy said, without any key of an engine."""
        for key in self.keys().values():
            text = text.replace(key, "***")
        return text[-2000:]

    def take_over(self, name: str, running: bool) -> None:
        """Start or reload, and see that what runs is this. Raises GatewayError, UnitError."""
        unit = self.params["unit"]
        systemctl.call("enable", unit)
        systemctl.call("reload" if running else "start", unit)
        until = time.monotonic() + PATIENCE_S
        while True:
            try:
                found = gateway_socket.description(ADMIN)
            except GatewayError as error:
                found = str(error)
            if found == name:
                return
            if time.monotonic() >= until:
                raise GatewayError("%s does not take it over (%s)" % (unit, found))
            time.sleep(POLL_S)

    def back(self, before: Optional[str], why: str) -> None:
        """What served before serves on. Raises GatewayError, always: it is no success."""
        if before is None or not os.path.isdir(os.path.join(self.directory, before)):
            raise GatewayError(why)
        self.link(before)
        run(["systemctl", "reload-or-restart", self.params["unit"]])
        raise GatewayError("%s; the configuration before it is back" % why)

    def prune(self, name: str, before: Optional[str]) -> None:
        """The configuration that serves and the one before it stay."""
        for other in os.listdir(self.directory):
            path = os.path.join(self.directory, other)
            if other not in (name, before) and os.path.isdir(path) and not os.path.islink(path):
                shutil.rmtree(path)

    def verified(self) -> None:
        """What runs is what lies there. Raises GatewayError."""
        name = self.name()
        state = systemctl.show(self.params["unit"])
        if name is None or not state.running or not state.enabled:
            raise GatewayError(
                "%s is %s (%s)"
                % (self.params["unit"], state.active, "enabled" if state.enabled else "not enabled")
            )
        found = gateway_socket.description(ADMIN)
        if found != name:
            raise GatewayError("another configuration runs (%s) than lies in %s" % (found, self.current))
        down: Dict[str, List[str]] = {}
        up = set()
        for one in gateway_socket.servers(ADMIN, "model."):
            if one.up or one.status.startswith("no check"):
                up.add(one.backend)
            else:
                out = "out of use" if one.held else one.status
                down.setdefault(one.backend, []).append("%s is %s there (%s)" % (one.name, out, one.check))
        for backend, words in sorted(down.items()):
            nobody = "" if backend in up else "; nobody serves it"
            self.told.append("%s: %s%s" % (backend[len("model.") :], ", ".join(words), nobody))

    def absent(self) -> None:
        """No unit, no files, no keys."""
        paths = [path for path in (self.unit_path, self.directory) if os.path.lexists(path)]
        self.done += ["remove " + path for path in paths]
        if self.check or not paths:
            return
        if self.unit_path in paths:
            systemctl.call("disable", "--now", self.params["unit"])
            os.unlink(self.unit_path)
            systemctl.call("daemon-reload")
        if self.directory in paths:
            shutil.rmtree(self.directory)

    def unit_text(self) -> str:
        """HAProxy under systemd as its package has it, with a configuration and a directory of our own."""
        config = os.path.join(self.current, CONFIG)
        check = exec_line([[HAPROXY, "-c", "-q", "-f", config]])
        unit = [
            ("Description", "One endpoint in front of several boxes (Boxwright)"),
            ("Wants", "network-online.target"),
            ("After", "network-online.target"),
        ]
        service = [
            ("Type", "notify"),
            ("ExecStart", exec_line([[HAPROXY, "-Ws", "-f", config, "-p", "/run/boxwright-gateway/pid"]])),
            ("ExecReload", check),
            ("ExecReload", "/bin/kill -USR2 $MAINPID"),
            ("KillMode", "mixed"),
            ("Restart", "always"),
            ("SuccessExitStatus", "143"),
            ("RuntimeDirectory", "boxwright-gateway"),
            ("RuntimeDirectoryMode", "0711"),
            ("LimitNOFILE", "65536"),
            ("NoNewPrivileges", "yes"),
            ("ProtectSystem", "strict"),
            ("ProtectHome", "yes"),
            ("PrivateTmp", "yes"),
            ("PrivateDevices", "yes"),
            ("ProtectKernelTunables", "yes"),
            ("ProtectKernelModules", "yes"),
            ("ProtectControlGroups", "yes"),
        ]
        text: str = render(
            [("Unit", unit), ("Service", service), ("Install", [("WantedBy", "multi-user.target")])],
            comments=["Kept by Boxwright; edits are overwritten."],
        )
        return text


def resolved(box: str, address: str) -> str:
    """The address of a box as this host knows it. Raises GatewayError."""
    try:
        found = socket.getaddrinfo(address, None, type=socket.SOCK_STREAM)
    except OSError as error:
        raise GatewayError(
            "the gateway knows no address of %s (%s: %s): declare gateway_address there, the address under "
            "which the gateway reaches it" % (box, address, error.strerror)
        ) from None
    # IPv4 first: an engine's 0.0.0.0 takes nothing else.
    return str(min(found, key=lambda one: one[0] != socket.AF_INET)[4][0])


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "settings": {"type": "dict", "default": {}},
            "keys": {"type": "dict", "default": {}, "no_log": True},
            "certificate": {"type": "str", "default": "", "no_log": True},
            "directory": {"type": "path", "required": True},
            "unit": {"type": "str", "required": True},
            "state": {"type": "str", "choices": ["present", "absent", "verified"], "default": "present"},
        },
        supports_check_mode=True,
    )
    endpoint = Endpoint(module.params, module.check_mode)
    try:
        getattr(endpoint, module.params["state"])()
    except (GatewayError, systemctl.UnitError) as error:
        module.fail_json(msg=str(error), done=endpoint.done)
    except OSError as error:
        module.fail_json(msg="%s: %s" % (error.filename, error.strerror), done=endpoint.done)
    module.exit_json(
        changed=bool(endpoint.done),
        told=endpoint.told,
        done=endpoint.done,
        diff={"before": "", "after": "".join(line + "\n" for line in endpoint.done)},
    )


if __name__ == "__main__":
    main()
