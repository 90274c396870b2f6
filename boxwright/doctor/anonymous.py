"""Taking out of a text who and where it is about, so that it can be sent on; a thing keeps its word.

Secrets become `***` (see facts.parsers.masking); addresses, names of users and of hosts, and numbers that
only one card or machine has become `address-1`, `user-1`, `host-1`, `card-1`. What tells a fault stays:
versions, models, paths of the system, loopback addresses.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from boxwright.doctor import addresses
from boxwright.doctor.names import HOME, NOBODYS, SHORTEST_NAME, is_address, is_everybodys, is_public
from boxwright.facts.parsers.masking import MASK, SHORTEST_WORD, mask, tells

#: Before a word: nothing of a word, or an escape of a text within a text (`\n`), or of an address (`%2F`).
_BEGIN = r"(?:(?<![A-Za-z0-9-])(?<![^\W_]_)|(?<=\\[nrtbf])|(?<=%2F)|(?<=%2f))"
_MAIL = re.compile(r"[\w.+'-]{1,64}(?:@|%40)(?:[\w-]{1,63}\.){1,8}[A-Za-z]{2,24}")
#: Who logs in to something that has a word already, or to this machine.
_LOGIN = re.compile(r"(?<![\w.-])([A-Za-z_][\w.-]{0,31})@(?=(?:host|address)-\d|localhost\b)")
#: The machine of an address; schemes that name no machine are left out.
_URL = re.compile(
    r"(?<![A-Za-z0-9+.-])(?!(?:docker|oci|hf|huggingface|modelscope|file)://)([A-Za-z][A-Za-z0-9+.-]{1,20}://"
    r"(?:[^\s/@\"'<>\\]{0,300}@)?)([A-Za-z0-9_][\w.-]{0,252})"
)
#: Names of machines that only a network of its own has.
_PRIVATE = re.compile(
    r"(?<![\w.-])(?:[A-Za-z0-9][\w-]{0,62}\.){1,6}(?:lan|corp|intranet|localdomain|home\.arpa)(?![\w.-]*\w)"
    r"|(?<![\w.-])(?:[A-Za-z0-9][\w-]{0,62}\.){2,8}internal(?![\w.-]*\w)"
)
_WORD = re.compile(r"(?:address|user|host|mail|card|id|serial)-\d+(?!\w)")
#: What only one card or one machine has.
_UUID = re.compile(
    r"(?i)(?<![0-9A-Za-z])((?:MIG-)?(?:GPU-)?)([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})(?![0-9a-f])"
)
_SERIAL = re.compile(
    r"(?i)((?<![a-z])(?:serial(?:[ _-]?(?:number|num|no|nr|id))?|board_?serial|S/N)\.?(?:\\{0,4}[\"'])?"
    r"\s{0,40}[:=#]\s{0,3}"
    r"(?:\\{0,4}[\"'])?)(?!N/A|none|null|true|false|unknown|not )([A-Z0-9][A-Z0-9._-]{3,39})(?![\w])"
)
#: Where a name stands that is too short, or too common a word, to be looked for everywhere.
_AS_USER = (
    r"((?:(?:\b|_)(?i:user(?:name)?|login|logname|owner"
    r"|become_user)\b(?:\\{0,4}[\"'])?[\s:=]{1,4}(?:\\{0,4}[\"'])?"
    r"|\b[ug]id=\d{1,10}\(|\bfor (?:invalid user |user )?(?=\S{1,32} from)|\bsudo(?:\[\d{1,10}\])?:\s{1,8}))"
    r"(%s)(?![\w-])|(?<![\w.-])(%s)(?=@)"
)
_AS_HOST = (
    r"((?i:\bhost(?:name)?\b)(?:\\{0,4}[\"'])?[\s:=]{1,4}(?:\\{0,4}[\"'])?"
    r"|@|://|^\d{9,11}\.\d{1,9} )(%s)(?![\w.-]*\w)"
)
#: Short words that are no name wherever they stand.
_COMMON = frozenset(
    re.findall(
        r"\w+",
        """
        ai am an as at az be by do eu fp fs gb go gi he hf id if ii in io ip is it kb kv lr ls me mb
        mi ml mm ms my na nm no nr ns of ok on op or os pc pi ps py qk rc rm sd se sh si sm so sp ss
        st su tb to tp tx rx ui uk up us uv vm vs we xy
        """,
    )
)


class Anonymizer:
    """Replaces what it knows and what looks like it. replaced: how many different ones of each kind.

    addresses: those that are known to be some, whatever they look like.
    """

    def __init__(
        self,
        *,
        users: Iterable[str] = (),
        hosts: Iterable[str] = (),
        secrets: Iterable[str] = (),
        addresses: Iterable[str] = (),
    ) -> None:
        kinds = ("address", "user", "host", "mail", "card", "id", "serial")
        self._words: dict[str, dict[str, str]] = {kind: {} for kind in kinds}
        self._secrets = sorted({one for one in secrets if len(one) >= SHORTEST_WORD}, key=len, reverse=True)
        self._own = frozenset(addresses)
        for user in users:
            if user and user not in NOBODYS:
                self._word("user", user)
        for host in hosts:
            if host and not is_everybodys(host) and not is_address(host):
                self._word("host", host)
        # What gets a word later (a machine in an address) has it only where it was met.
        self._patterns = {kind: _patterns(kind, self._words[kind]) for kind in ("host", "user")}

    @property
    def replaced(self) -> Mapping[str, int]:
        """Kind -> number of different things that have a word."""
        return {kind: len(words) for kind, words in self._words.items()}

    def host(self, name: str) -> str:
        """The word of a host, by its name."""
        return self.text(name) if is_address(name) else self._word("host", name)

    def text(self, text: str, before: str = "") -> str:
        """The text without them. before: what stood before it where it was taken from."""
        text = mask(text, self._secrets)
        text = HOME.sub(self._home, text)
        text = _MAIL.sub(self._mail, text)
        for kind, patterns in self._patterns.items():
            for pattern in patterns:
                text = pattern.sub(partial(self._named, kind), text)
        text = _URL.sub(self._of_url, text)
        text = _PRIVATE.sub(lambda found: self._word("host", found.group(0)), text)
        text = _UUID.sub(self._uuid, text)
        text = _SERIAL.sub(lambda found: found.group(1) + self._word("serial", found.group(2)), text)
        text = addresses.replaced(
            text,
            lambda one: self._word("address", one),
            lambda one: self._word("host", one),
            self._own,
            before,
        )
        return _LOGIN.sub(self._login, text)

    def value(self, value: Any, name: str = "") -> Any:
        """A plain value with each of its texts, and names of fields, replaced. name: of its field."""
        if isinstance(value, Mapping):
            pair = str(value.get("name")) if set(value) >= {"name", "value"} else ""
            # All that a field with a secret's name holds is secret, by whatever names.
            return {
                self.text(str(key)): self.value(
                    one, name if tells(name) else pair if key == "value" and tells(pair) else str(key)
                )
                for key, one in value.items()
            }
        if isinstance(value, (list, tuple)):
            return self._list(value, name)
        if isinstance(value, bool) or value is None:
            return value
        if tells(name) and str(value).strip():
            return MASK
        if "serial" in name.lower() and str(value).isalnum() and len(str(value)) > SHORTEST_NAME:
            return self._word("serial", str(value))
        return self.text(value, f"{name}: " if name else "") if isinstance(value, str) else value

    def _list(self, values: Iterable[Any], name: str) -> list[Any]:
        """Lines of a log may hold a key of several lines, which has to be seen whole."""
        values = list(values)
        texts = [one for one in values if isinstance(one, str)]
        if len(texts) == len(values) and any("PRIVATE KEY" in one for one in texts):
            values = mask("\n".join(texts)).split("\n")
        return [self.value(one, name) for one in values]

    def _word(self, kind: str, name: str) -> str:
        words = self._words[kind]
        # Names of hosts and mail addresses are the same in capitals.
        name = name if kind == "user" else name.lower()
        return words.setdefault(name, f"{kind}-{len(words) + 1}")

    def _named(self, kind: str, found: re.Match[str]) -> str:
        """A name alone, or after what tells that it is one."""
        name = next(part for part in reversed(found.groups()) if part is not None)
        return found.group(0)[: -len(name)] + self._word(kind, name)

    def _of_url(self, found: re.Match[str]) -> str:
        name = found.group(2).rstrip(".")
        keep = _WORD.match(name) or is_address(name) or is_everybodys(name) or is_public(name)
        # Four numbers are left to who knows addresses from versions; more of a name stands behind it.
        return (
            found.group(0)
            if keep
            else found.group(1) + self._word("host", name) + found.group(2)[len(name) :]
        )

    def _uuid(self, found: re.Match[str]) -> str:
        if not found.group(2).strip("0-"):
            return found.group(0)
        return self._word("card" if found.group(1) else "id", found.group(0))

    def _mail(self, found: re.Match[str]) -> str:
        return self._word("mail", found.group(0).replace("%40", "@"))

    def _login(self, found: re.Match[str]) -> str:
        name = found.group(1)
        keep = name in NOBODYS or _WORD.fullmatch(name)
        return found.group(0) if keep else self._word("user", name) + "@"

    def _home(self, found: re.Match[str]) -> str:
        name = found.group(2)
        return found.group(0) if name in NOBODYS else found.group(1) + self._word("user", name)


def _patterns(kind: str, names: Iterable[str]) -> list[re.Pattern[str]]:
    """Names that are looked for everywhere, and those that are only where such a name stands."""
    flags = re.IGNORECASE if kind == "host" else 0
    longest_first = sorted(names, key=len, reverse=True)
    rare = [name for name in longest_first if len(name) >= SHORTEST_NAME or _stands_alone(name)]
    short = "|".join(re.escape(name) for name in longest_first if name not in rare)
    found = []
    if rare:
        found.append(re.compile(_BEGIN + "(" + "|".join(map(re.escape, rare)) + r")(?![\w-])", flags))
    if short:
        context = _AS_HOST % short if kind == "host" else _AS_USER % (short, short)
        found.append(re.compile(context, flags | re.MULTILINE))
    return found


def _stands_alone(name: str) -> bool:
    return len(name) == SHORTEST_NAME - 1 and name.lower() not in _COMMON and not name.isdigit()


def size_of(value: Any) -> int:
    """Bytes of a value as JSON."""
    return len(json.dumps(value, ensure_ascii=False).encode())
