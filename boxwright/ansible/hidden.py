"""The secrets that a host's variables hold, for what is written down of it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from ansible.errors import AnsibleError

from boxwright.ansible.declared import OWN_FACTS, plain
from boxwright.doctor.names import secrets_of

#: Ansible's own variables hold passwords of SSH and sudo.
PREFIXES = ("box_", "container_runtime_", "ansible_")
#: Variables that Ansible itself makes: the whole inventory among them.
MAGIC = ("ansible_facts", "hostvars", "groups", "vars", "environment", *OWN_FACTS)


def secrets(templar: Any, variables: Mapping[str, Any]) -> set[str]:
    """The values that may be told nowhere. Raises nothing: what cannot be templated cannot be told either."""
    found = {}
    for name in map(str, variables):
        if name in MAGIC:
            continue
        value = variables[name]
        # Which of the others are secret, their names tell.
        if name.startswith(PREFIXES) or _telling(name, value):
            with suppress(AnsibleError):
                found[name] = plain(templar.template(value))
    return secrets_of(found)


def _telling(name: str, value: Any) -> bool:
    """Whether a variable of any name holds a secret, as far as it shows before templating."""
    with suppress(AnsibleError):
        return bool(secrets_of({name: plain(value)}))
    return True
