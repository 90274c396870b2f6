"""Asking registries as Docker on this host will: with its logins, its authorities and its proxy."""

from __future__ import annotations

import os
from typing import Any, Dict, Optional

from ansible.module_utils import registry_logins
from ansible.module_utils.registry_lookup import Registry, host_of
from ansible.module_utils.web import Reader

#: The declared registries, as a module takes them.
ARGUMENT = {
    "type": "list",
    "elements": "dict",
    "default": [],
    "options": {
        "host": {"type": "str", "required": True},
        "username": {"type": "str", "default": ""},
        "password": {"type": "str", "default": "", "no_log": True},
        "ca": {"type": "str", "default": ""},
        "insecure": {"type": "bool", "default": False},
    },
}


def ask_as_docker(parameters: Dict[str, Any], timeout: float, deadline: float) -> Registry:
    """Reads images with what is declared of their registries, else with what the host has.

    parameters: images, registries, insecure_registries, proxy, no_proxy and (if any) ca of a module.
    """
    declared = {one["host"]: one for one in parameters["registries"]}
    hosts = {host_of(image) for image in parameters["images"]}
    known = [text for host in hosts for text in registry_logins.authorities(host)]
    trusted = [*known, *(one["ca"] for one in declared.values() if one.get("ca"))]
    trusted += [parameters["ca"]] if parameters.get("ca") else []
    reader = Reader(timeout, deadline, parameters["proxy"], parameters["no_proxy"], trusted)

    def basic(host: str) -> Optional[str]:
        one = declared.get(host)
        if one and one.get("username"):
            return str(registry_logins.Login(host, one["username"], one.get("password") or "").basic)
        try:
            login = registry_logins.find(host)
        except registry_logins.LoginError:
            return None  # what is wrong with root's file, the role says that needs it
        return login.basic if login else None

    return Registry(reader, parameters["insecure_registries"], os.uname().machine, basic)
