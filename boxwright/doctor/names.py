"""Names that must not be sent on, where they are found: in an inventory, in what ssh and journals say."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

from boxwright.facts.parsers.masking import is_plain, tells

#: Hosts of addresses that everybody knows, with all below them: they tell nothing about anybody.
PUBLIC = (
    "huggingface.co", "hf.co", "modelscope.cn", "pypi.org", "pythonhosted.org", "python.org", "pytorch.org",
    "docker.com", "docker.io", "nvidia.com", "nvidia.github.io", "github.com", "githubusercontent.com",
    "vllm.ai",
    "sglang.ai", "debian.org", "ubuntu.com", "launchpad.net", "freedesktop.org", "kernel.org", "redhat.com",
    "fedoraproject.org", "rockylinux.org", "almalinux.org", "grafana.com", "prometheus.io", "quay.io",
    "ghcr.io",
    "nvcr.io", "kubernetes.io", "w3.org", "archlinux.org", "rpmfusion.org", "elrepo.org", "opengroup.org",
    "man7.org", "podman.io", "ucw.cz",
)  # fmt: skip
#: Who a machine's own programs run as: everybody has these.
NOBODYS = frozenset(
    {"root", "nobody", "ubuntu", "debian", "admin", "user", "vllm", "docker", "you", "me", "daemon", "sshd"}
)
#: Shortest name that is looked for wherever it stands; a shorter one is part of too many words.
SHORTEST_NAME = 3
#: Homes of Linux, macOS and Windows, also where the backslashes are doubled.
HOME = re.compile(r"((?:/|\\{1,4})(?:home|Users)(?:/|\\{1,4}))([^/\\\s\"':,;)\]}]{1,64})")
#: How ssh names machines, jump hosts and what ~/.ssh/config makes of a name among them.
_OF_SSH = re.compile(
    r"connect to host (\S{1,255}) port|resolve hostname ([^\s:]{1,255})|@([^\s:@]{1,255}): Permission denied"
    r"|key is known for (\S{1,255})|authenticity of host '([^' ]{1,255})|key for (\S{1,255}) has changed"
    r"|(?:closed|reset) by (?:remote host )?(\S{1,255}) port|onnection to (\S{1,255}) (?:closed|timed out)"
    r"|through (\S{1,255}) ended before|^(\S{1,255}) lets ssh in",
    re.MULTILINE,
)
#: How logs name who is or was there.
_OF_LOGINS = re.compile(
    r"(?:session (?:opened|closed) for user|Accepted \w{1,30} for|Failed \w{1,30} for(?: invalid user)?"
    r"|Invalid user"
    r"|New session \S{1,10} of user|sudo(?:\[\d{1,10}\])?:|su(?:\[\d{1,10}\])?: \(to \w{1,32}\)"
    r"|\buid=\d{1,10}\("
    r"|\b(?:USER|LOGNAME|SUDO_USER)=)\s{0,8}([A-Za-z_][\w.-]{0,31})"
)
_JOURNAL = re.compile(r"^\d{9,11}\.\d+ (\S{1,64}) \S+?(?:\[\d+\])?: ", re.MULTILINE)
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{1,20}://(?:[^\s/@\"'<>\\]{0,300}@)?([A-Za-z0-9_][\w.-]{0,252})")
#: Fields that hold addresses.
_OF_ADDRESSES = re.compile(
    r"(?i)addr|(?:^|_)ips?(?:$|_)|host|bind|listen|gateway|dns|server|peer|endpoint|allow_from"
)
#: A name and a password in an address; the last @ ends them, whatever stands in the password.
_LOGIN_OF_URL = re.compile(r"://([^\s/@:]{0,100}):([^\s]{0,300})@")


def is_public(host: str) -> bool:
    """Whether a host is one of everybody's."""
    name = host.lower().rstrip(".")
    return any(name == one or name.endswith("." + one) for one in PUBLIC)


def is_address(host: str) -> bool:
    """Whether a host is named by its address."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def is_everybodys(host: str) -> bool:
    """Whether a host's name is that of any machine itself."""
    name = host.lower().partition(".")[0]
    return name == "localhost" or (is_address(host) and ipaddress.ip_address(host).is_loopback)


def hosts_of_journals(texts: Iterable[str]) -> set[str]:
    """The names that hosts give themselves: the second word of each line of a journal (`short-unix`)."""
    return {found for text in texts for found in _JOURNAL.findall(text)}


def hosts_of_ssh(texts: Iterable[str]) -> set[str]:
    """The machines that ssh speaks of: they may be none that an inventory names."""
    found = (name.strip("[]'\".,:") for text in texts for names in _OF_SSH.findall(text) for name in names)
    return {name for name in found if name and name not in ("UNKNOWN", "{jump}")}


def hosts_of_urls(texts: Iterable[str]) -> set[str]:
    """Hosts with whole names in addresses: they may stand by themselves elsewhere."""
    found = {name.rstrip(".") for text in texts for name in _URL.findall(text)}
    return {name for name in found if "." in name and not is_address(name) and not is_public(name)}


def short_names(hosts: Iterable[str]) -> set[str]:
    """The first part of full names, which a machine calls itself by."""
    dotted = {host.partition(".")[0] for host in hosts if "." in host and not is_address(host)}
    return {name for name in dotted if len(name) >= SHORTEST_NAME}


def users_of_homes(texts: Iterable[str]) -> set[str]:
    """Whose homes are named anywhere: their names may stand by themselves before."""
    return {found.group(2) for text in texts for found in HOME.finditer(text)} - NOBODYS


def users_of_logins(texts: Iterable[str]) -> set[str]:
    """Who logged in, or is somebody else for a while: an inventory need not name them."""
    return {found for text in texts for found in _OF_LOGINS.findall(text)} - NOBODYS


def addresses_of(value: Any, name: str = "") -> set[str]:
    """The addresses that fields called so hold as whole texts, without the length of a network's prefix.

    name: of the value's own field. What any other field holds may be a version.
    """
    if isinstance(value, Mapping):
        return {found for key, one in value.items() for found in addresses_of(one, str(key))}
    if isinstance(value, (list, tuple)):
        return {found for one in value for found in addresses_of(one, name)}
    text = value.partition("/")[0] if isinstance(value, str) and _OF_ADDRESSES.search(name) else ""
    return {text} if is_address(text) else set()


def texts_of(value: Any) -> Iterable[str]:
    """Every text in a plain value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for one in value.values():
            yield from texts_of(one)
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from texts_of(one)


def secrets_of(variables: Mapping[str, Any]) -> set[str]:
    """The values of variables whose names say that they are secret, wherever they stand."""
    found: set[str] = set()
    for name, value in variables.items():
        if tells(str(name)):
            found |= {text for text in texts_of(value) if not is_plain(text)}
        else:
            found |= _secrets_within(value)
    return found


def _secrets_within(value: Any) -> set[str]:
    if isinstance(value, Mapping):
        return secrets_of(value)
    if isinstance(value, (list, tuple)):
        return {secret for one in value for secret in _secrets_within(one)}
    if isinstance(value, str):
        return {password for _, password in _LOGIN_OF_URL.findall(value) if password}
    return set()


def users_of_urls(texts: Iterable[str]) -> set[str]:
    """Who logs in within addresses."""
    return {user for text in texts for user, _ in _LOGIN_OF_URL.findall(text) if user} - NOBODYS


def hostname(url: str) -> str | None:
    """The host of an address, None of what is none."""
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None
