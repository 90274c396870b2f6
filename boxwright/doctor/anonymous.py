"""Taking out of a text who and where it is about, so that it can be sent on; a thing keeps its word.

Secrets become `***` (see facts.parsers.masking); addresses, names of users and of hosts become `address-1`,
`user-1`, `host-1`. What tells a fault stays: versions, models, paths of the system, loopback addresses.
"""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from boxwright.facts.parsers.masking import MASK, SHORTEST, mask

#: Before a word: nothing of a word, or an escape of a text within a text (`\n`), or of an address (`%2F`).
_BEGIN = r"(?:(?<![A-Za-z0-9-])(?<![^\W_]_)|(?<=\\[nrtbf])|(?<=%2F)|(?<=%2f))"
#: What an address may look like; whether it is one, the standard library decides.
_V4 = re.compile(r"(?:(?<![A-Za-z0-9.])|(?<=\\[nrtbf]))(?:\d{1,3}\.){3}\d{1,3}(?![A-Za-z0-9]|\.\d)")
_V6 = re.compile(
    r"(?:(?<![\w:])|(?<=\\[nrtbf])|(?<=[g-zG-Z_]:))"
    r"(?:[0-9A-Fa-f]{0,4}:){2,7}[0-9A-Fa-f]{0,4}(?:%[\w.-]{1,15})?(?![\w:])"
)
_HARDWARE = re.compile(r"(?<![\w:])(?:[0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}(?![\w:])")
_MAIL = re.compile(r"[\w.+-]{1,64}@(?:[\w-]{1,63}\.){1,8}[A-Za-z]{2,24}")
#: Homes of Linux, macOS and Windows, also where the backslashes are doubled.
_HOME = re.compile(r"((?:/|\\{1,4})(?:home|Users)(?:/|\\{1,4}))([^/\\\s\"':,;)\]}]{1,64})")
#: A name that an address makes (cloud machines): ip-10-0-0-5.
_NAME_OF_ADDRESS = re.compile(r"(?<![\w-])ip(?:-\d{1,3}){4}(?![\w-])")
#: Who logs in to something that has a word already.
_LOGIN = re.compile(r"(?<![\w.-])([A-Za-z_][\w.-]{0,31})@(?=(?:host|address)-\d)")
#: How ssh names machines, jump hosts and what ~/.ssh/config makes of a name among them.
_OF_SSH = re.compile(
    r"connect to host (\S{1,255}) port|resolve hostname ([^\s:]{1,255})|@([^\s:@]{1,255}): Permission denied"
    r"|key is known for (\S{1,255})|authenticity of host '([^' ]{1,255})|key for (\S{1,255}) has changed"
    r"|(?:closed|reset) by (?:remote host )?(\S{1,255}) port|onnection to (\S{1,255}) (?:closed|timed out)"
    r"|through (\S{1,255}) ended before|^(\S{1,255}) lets ssh in",
    re.MULTILINE,
)
#: Who a machine's own programs run as: everybody has these.
_NOBODYS = frozenset({"root", "nobody", "ubuntu", "debian", "admin", "user", "vllm", "docker", "you", "me"})
#: What a secret is called.
TELLING = re.compile(r"(?i)(?:password|passwd|secret|token(?!iz)|api_?key|credential|_pass$|_key$)")
#: Shortest name that is looked for by itself: a shorter one is part of too many words.
_SHORTEST_NAME = 3


class Anonymizer:
    """Replaces what it knows and what looks like it. replaced: how many different ones of each kind."""

    def __init__(
        self, *, users: Iterable[str] = (), hosts: Iterable[str] = (), secrets: Iterable[str] = ()
    ) -> None:
        self._words: dict[str, dict[str, str]] = {"address": {}, "user": {}, "host": {}, "mail": {}}
        self._secrets = sorted({one for one in secrets if len(one) >= SHORTEST}, key=len, reverse=True)
        for user in users:
            if user not in _NOBODYS:
                self._word("user", user)
        for host in hosts:
            if not _is_everybodys(host):
                self._word("host", host)

    @property
    def replaced(self) -> Mapping[str, int]:
        """Kind -> number of different things that have a word."""
        return {kind: len(words) for kind, words in self._words.items()}

    def text(self, text: str) -> str:
        """The text without them."""
        text = mask(text, self._secrets)
        text = _HOME.sub(self._home, text)
        text = _MAIL.sub(lambda found: self._word("mail", found.group(0)), text)
        for kind in ("host", "user"):
            text = self._named(kind, text)
        text = _HARDWARE.sub(lambda found: self._word("address", found.group(0).lower()), text)
        text = _V4.sub(self._address, text)
        text = _V6.sub(self._address, text)
        text = _NAME_OF_ADDRESS.sub(lambda found: self._word("host", found.group(0)), text)
        return _LOGIN.sub(self._login, text)

    def value(self, value: Any) -> Any:
        """A plain value with each of its texts, and names of fields, replaced."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {self.text(str(key)): self.value(one) for key, one in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.value(one) for one in value]
        return value

    def _word(self, kind: str, name: str) -> str:
        words = self._words[kind]
        # Names of hosts and mail addresses are the same in capitals.
        name = name if kind == "user" else name.lower()
        return words.setdefault(name, f"{kind}-{len(words) + 1}")

    def _named(self, kind: str, text: str) -> str:
        known = {name: word for name, word in self._words[kind].items() if len(name) >= _SHORTEST_NAME}
        if not known:
            return text
        longest_first = sorted(known, key=len, reverse=True)
        pattern = re.compile(
            _BEGIN + "(" + "|".join(map(re.escape, longest_first)) + r")(?![\w-])",
            re.IGNORECASE if kind == "host" else 0,
        )
        return pattern.sub(lambda found: self._word(kind, found.group(1)), text)

    def _login(self, found: re.Match[str]) -> str:
        name = found.group(1)
        return found.group(0) if name in _NOBODYS else self._word("user", name) + "@"

    def _home(self, found: re.Match[str]) -> str:
        name = found.group(2)
        return found.group(0) if name in _NOBODYS else found.group(1) + self._word("user", name)

    def _address(self, found: re.Match[str]) -> str:
        text, _, _ = found.group(0).partition("%")
        try:
            address = ipaddress.ip_address(text)
        except ValueError:
            return found.group(0)
        if address.is_loopback or address.is_unspecified:
            return found.group(0)
        return self._word("address", str(address))


def hosts_of_journals(texts: Iterable[str]) -> set[str]:
    """The names that hosts give themselves: the second word of each line of a journal (`short-unix`)."""
    line = re.compile(r"^\d{9,11}\.\d+ (\S{1,64}) \S+?(?:\[\d+\])?: ", re.MULTILINE)
    return {found for text in texts for found in line.findall(text)}


def hosts_of_ssh(texts: Iterable[str]) -> set[str]:
    """The machines that ssh speaks of: they may be none that an inventory names."""
    found = (name.strip("[]'\".,:") for text in texts for names in _OF_SSH.findall(text) for name in names)
    return {name for name in found if name and name not in ("UNKNOWN", "{jump}")}


def short_names(hosts: Iterable[str]) -> set[str]:
    """The first part of full names, which a machine calls itself by."""
    dotted = {host.partition(".")[0] for host in hosts if "." in host and not _is_address(host)}
    return {name for name in dotted if len(name) >= _SHORTEST_NAME}


def users_of_homes(texts: Iterable[str]) -> set[str]:
    """Whose homes are named anywhere: their names may stand by themselves before."""
    return {found.group(2) for text in texts for found in _HOME.finditer(text)} - _NOBODYS


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _is_everybodys(host: str) -> bool:
    """Whether a host's name is that of any machine itself."""
    name = host.lower().partition(".")[0]
    return name == "localhost" or (_is_address(host) and ipaddress.ip_address(host).is_loopback)


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
        if TELLING.search(str(name)):
            found |= {text for text in texts_of(value) if text and text != MASK}
        elif isinstance(value, Mapping):
            found |= secrets_of(value)
        elif isinstance(value, (list, tuple)):
            for one in value:
                if isinstance(one, Mapping):
                    found |= secrets_of(one)
        elif isinstance(value, str):
            found |= set(re.findall(r"://[^\s/@:]*:([^\s/@]+)@", value))
    return found


def size_of(value: Any) -> int:
    """Bytes of a value as JSON."""
    return len(json.dumps(value, ensure_ascii=False).encode())
