"""HAProxy's runtime socket: what its servers do, and taking one out of use and back. Nothing is restarted."""

from __future__ import annotations

import csv
import socket
from typing import Dict, List, NamedTuple, Set, Tuple

#: Seconds for one question.
TIMEOUT_S = 10.0
#: Bits of srv_admin_state by which a person or program takes a server out of use: forced maintenance, forced
#: drain (HAProxy's management guide, section 9.3, "show servers state").
HELD_BITS = 0x01 | 0x08


class GatewayError(Exception):
    """The gateway does not do as it is told; the text says what it said."""


class Server(NamedTuple):
    """A server as HAProxy sees it. status: its own word (`UP`, `DRAIN`, `DOWN 1/2`, `no check`).

    sessions: requests that it works on now. held: it gets no new requests because it was told so; its status
    does not tell while the box is down.
    """

    backend: str
    name: str
    status: str
    sessions: int
    check: str = ""
    held: bool = False

    @property
    def model(self) -> str:
        """The model whose section this is."""
        return self.backend.partition(".")[2]

    @property
    def up(self) -> bool:
        """Whether its last health checks were good and it gets new requests."""
        return self.status.startswith("UP")


def ask(path: str, command: str) -> str:
    """What HAProxy answers to one command. Raises GatewayError, also where no gateway runs."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as channel:
            channel.settimeout(TIMEOUT_S)
            channel.connect(path)
            channel.sendall(command.encode("utf-8") + b"\n")
            parts: List[bytes] = []
            while True:
                part = channel.recv(65536)
                if not part:
                    return b"".join(parts).decode("utf-8", "replace")
                parts.append(part)
    except OSError as error:
        raise GatewayError("%s: %s" % (path, error.strerror or error)) from None


def parsed(text: str) -> List[Server]:
    """The servers of `show stat`: CSV, whose first line names the columns behind `# `."""
    rows = csv.DictReader(text.lstrip("# ").splitlines())
    return [
        Server(
            row["pxname"],
            row["svname"],
            row["status"],
            int(row["scur"] or 0),
            " ".join(row.get(name) or "" for name in ("check_status", "last_chk")).strip(),
        )
        for row in rows
        if row.get("svname") not in ("FRONTEND", "BACKEND", None)
    ]


def held(text: str) -> Set[Tuple[str, str]]:
    """Section and name of the servers that were taken out of use, of `show servers state`.

    Its first line is the format's version, the second names the columns behind `# `.
    """
    lines = text.strip().splitlines()[1:]
    rows = csv.DictReader([line.lstrip("# ") for line in lines], delimiter=" ")
    return {
        (row["be_name"], row["srv_name"]) for row in rows if int(row.get("srv_admin_state") or 0) & HELD_BITS
    }


def servers(path: str, prefix: str) -> List[Server]:
    """The servers of the sections whose name begins so. Raises GatewayError."""
    out = held(ask(path, "show servers state"))
    return [
        one._replace(held=(one.backend, one.name) in out)
        for one in parsed(ask(path, "show stat"))
        if one.backend.startswith(prefix)
    ]


def description(path: str) -> str:
    """What the running configuration calls itself. Raises GatewayError."""
    found: Dict[str, str] = {}
    for line in ask(path, "show info").splitlines():
        name, _, value = line.partition(":")
        found[name.strip()] = value.strip()
    return found.get("description", "")


def set_state(path: str, server: Server, state: str) -> None:
    """`ready` or `drain`. Raises GatewayError with HAProxy's own words where it does not."""
    said = ask(path, "set server %s/%s state %s" % (server.backend, server.name, state)).strip()
    if said:
        raise GatewayError("%s of %s cannot be put to %s: %s" % (server.name, server.backend, state, said))
