"""What of an inventory and of this machine nobody else is to know, for verbs that make what is sent on."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from boxwright.doctor import names as known
from boxwright.doctor.anonymous import Anonymizer
from boxwright.facts.parsers.masking import tells
from boxwright.spec.inventory import Inventory

#: Shortest secret of this machine's environment: what is shorter is a switch.
SHORTEST_OF_ENVIRONMENT = 8


def anonymizer_for(
    inventory: Inventory,
    names: Sequence[str],
    boxes: Mapping[str, Any],
    *,
    users: Iterable[str] = (),
    hosts: Iterable[str] = (),
    keep: Iterable[str] = (),
) -> Anonymizer:
    """Knows the boxes' users, hosts, addresses and secrets, and those of this machine.

    boxes: all that was read of them. users, hosts: more of them. keep: names of hosts that may stay.
    """
    users = {os.environ.get("USER", ""), os.environ.get("SUDO_USER", ""), *users}
    own, hosts, secrets = {platform.node()}, set(hosts), of_environment()
    told = list(known.texts_of(boxes))
    addresses = known.addresses_of(boxes)
    for name in names:
        variables = inventory.everything(name)
        texts = list(known.texts_of(variables))
        secrets |= known.secrets_of(variables)
        users |= {
            str(variables.get(key) or "")
            for key in ("ansible_user", "ansible_ssh_user", "ansible_become_user")
        }
        users |= known.users_of_urls(texts)
        own |= {name, str(variables.get("ansible_host") or "")}
        addresses |= known.addresses_of(variables) | known.addresses_of(name, "host")
        hosts |= {host for url in texts if (host := known.hostname(url)) and not known.is_public(host)}
        for user, host in jumps(variables):
            users.add(user)
            hosts.add(host)
    hosts |= own | known.short_names(own) | known.hosts_of_journals(told) | known.hosts_of_urls(told)
    hosts |= {host for host in known.hosts_of_ssh(told) if not known.is_public(host)}
    users |= known.users_of_homes(told) | known.users_of_logins(told)
    hosts -= set(keep)
    return Anonymizer(users=sorted(users), hosts=sorted(hosts), secrets=secrets, addresses=addresses)


def of_environment() -> set[str]:
    """The secrets that this machine's environment holds: a run may have told a box some of them."""
    return {
        value
        for name, value in os.environ.items()
        if tells(name) and len(value) >= SHORTEST_OF_ENVIRONMENT and "/" not in value
    }


def jumps(variables: Mapping[str, Any]) -> list[tuple[str, str]]:
    """User ("" for none) and name of each jump host in what ssh is given beside the box's own address."""
    given = " ".join(
        str(variables.get(name) or "")
        for name in ("ansible_ssh_common_args", "ansible_ssh_extra_args", "ansible_ssh_args")
    )
    found = re.findall(r"(?:-J\s{0,4}|ProxyJump[= ]\s{0,4})([^\s\"']{1,500})", given)
    one = re.compile(r"(?:ssh://)?(?:([^\s@,\"'=/]{1,64})@)?(\[[0-9A-Fa-f:]+\]|[\w.-]{1,255})(?::\d+)?")
    places = [place for listed in found for place in one.findall(listed)]
    return [
        (user, host.strip("[]"))
        for user, host in [*places, *re.findall(r"([\w.-]{1,64})@([\w.-]{1,255})", given)]
    ]
