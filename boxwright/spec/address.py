"""The address under which SSH reaches a box: `you@192.0.2.17:2222`, as a person types it."""

from __future__ import annotations

import ipaddress
import re
import shlex
from dataclasses import dataclass

from boxwright.errors import EXIT_BAD_INPUT, UserError
from boxwright.texts import printable

#: Names that sshd lets in and that no shell, option parser or template takes for something else.
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")
#: A host's name or the name of a section of ssh's configuration.
_HOST = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,251}[A-Za-z0-9_])?")
_PORT = re.compile(r"[1-9][0-9]{0,4}")
_FORMS = ("you@192.0.2.17", "you@box.example.org:2222", "the name of a Host in ~/.ssh/config")


@dataclass(frozen=True)
class Address:
    """Where a box is. user, port: None is what ssh's own configuration says; config: a file of it, by -F."""

    host: str
    user: str | None = None
    port: int | None = None
    config: str | None = None

    @property
    def is_numeric(self) -> bool:
        """Whether the host is an IP address."""
        return _numeric(self.host)

    def variables(self) -> dict[str, object]:
        """The variables by which Ansible reaches the box."""
        said: dict[str, object] = {"ansible_host": self.host}
        if self.user:
            said["ansible_user"] = self.user
        if self.port:
            said["ansible_port"] = self.port
        if self.config:
            said["ansible_ssh_common_args"] = f"-F {shlex.quote(self.config)}"
        return said

    def ssh(self) -> str:
        """The command line that a person tries by hand; every part of it is a plain word."""
        config = f"-F {shlex.quote(self.config)} " if self.config else ""
        port = f"-p {self.port} " if self.port else ""
        return f"ssh {config}{port}{self.user + '@' if self.user else ''}{self.host}"


def parse_address(text: str) -> Address:
    """The address that a person typed: [user@]host[:port], IPv6 with a port in brackets.

    Raises UserError for everything else, options (`-oProxyCommand=…`) among it.
    """
    user, at, rest = text.rpartition("@")
    if (at and not _USER.fullmatch(user)) or not rest:
        raise _wrong(text, "the user's name is not one" if at and rest else "it names no host")
    host, port = _split_port(rest)
    if port is not None and (not _PORT.fullmatch(port) or int(port) > 65535):
        raise _wrong(text, "a port is a number from 1 to 65535")
    if not _numeric(host) and not _HOST.fullmatch(host):
        raise _wrong(text, "the host is neither a name nor an IP address")
    return Address(host, user or None, int(port) if port else None)


def _split_port(rest: str) -> tuple[str, str | None]:
    """Host and port; a bare IPv6 address has colons and no port."""
    if rest.startswith("["):
        host, bracket, tail = rest[1:].partition("]")
        if bracket and not tail:
            return host, None
        return (host, tail[1:]) if bracket and tail.startswith(":") else (rest, None)
    if rest.count(":") == 1:
        host, _, port = rest.partition(":")
        return host, port
    return rest, None


def _numeric(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return "%" not in host or re.fullmatch(r"[0-9A-Fa-f:.]+%[A-Za-z0-9._-]{1,15}", host) is not None


def _wrong(text: str, why: str) -> UserError:
    shown = printable(text)
    return UserError(
        f'"{shown if len(shown) <= 80 else shown[:80] + "…"}" is no address of a box',
        why=why,
        status=EXIT_BAD_INPUT,
        ways_out=_FORMS,
    )
