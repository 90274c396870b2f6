#!/usr/bin/python3
"""Let only declared sources reach the ports that Boxwright's deployments publish.

    port-access.py apply CONFIG STATE     at boot, after Docker, and whenever the declaration changed
    port-access.py check CONFIG STATE     says what is not as it was applied; exit status 1 if anything
    port-access.py remove CONFIG STATE    takes all of it away
    port-access.py watch CONFIG STATE     applies it again when firewalld reloads, comes or goes; does not end

Installed by Boxwright's role engine. Ports that Docker publishes pass by the host's own firewall: they are
forwarded, and DOCKER-USER is the chain that Docker leaves to others. Where Docker has no rules (IPv6 in older
releases) its proxy listens like any program, so that INPUT is guarded, too. Only chains of our own and the
jumps to them are ever written: no policy, and nothing about any other port, SSH's among them.
"""

from __future__ import annotations

import hashlib
import ipaddress
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

CHAIN, SOURCES = "BOXWRIGHT-ACCESS", "BOXWRIGHT-FROM"
JUMP = ["-j", CHAIN]
#: Where Docker's forwarded traffic passes, the better one first; and what its proxy listens behind.
FORWARDED, PROXIED = ("DOCKER-USER", "FORWARD"), "INPUT"
PROGRAMS = {4: "iptables", 6: "ip6tables"}
#: Seconds for one call, and for the lock that another program may hold.
CALL, LOCK = 60, "20"
#: What firewalld says once it has reloaded, and the bus when it comes or goes: all of iptables is empty then,
#: whichever backend it has. Docker makes its own chains again on the same words.
SIGNALS = {
    "Reloaded": "type='signal',interface='org.fedoraproject.FirewallD1',member='Reloaded'",
    "NameOwnerChanged": "type='signal',sender='org.freedesktop.DBus',interface='org.freedesktop.DBus',"
    "member='NameOwnerChanged',arg0='org.fedoraproject.FirewallD1'",
}
#: Seconds after it, each after the one before, at which the rules are looked at: at once, and when Docker is
#: through. One that starts has its name a moment before it empties them.
LOOKS = (0, 1, 3, 10, 30)


class Refused(Exception):
    """A program refused; the text says what it said."""


def call(argv: list[str], given: str = "") -> str:
    """Run a program; its output. Raises Refused."""
    try:
        done = subprocess.run(
            argv, input=given, capture_output=True, text=True, timeout=CALL, check=False, errors="replace"
        )
    except FileNotFoundError:
        raise Refused(f"{argv[0]} is not installed") from None
    except subprocess.TimeoutExpired:
        raise Refused(f"{argv[0]} gave no answer within {CALL} s") from None
    if done.returncode:
        said = " ".join((done.stderr or done.stdout).split())
        raise Refused(f"{' '.join(argv)} ended with status {done.returncode}: {said}")
    return done.stdout


class Family:
    """The rules of one IP version, as they are."""

    def __init__(self, version: int) -> None:
        self.version, self.program = version, PROGRAMS[version]
        self.rules = [line.split() for line in call([self.program, "-w", LOCK, "-S"]).splitlines()]

    def has(self, chain: str) -> bool:
        """Whether there is such a chain."""
        return any(words[0] in ("-N", "-P") and words[1] == chain for words in self.rules)

    @property
    def parents(self) -> list[str]:
        """The chains that jump to ours."""
        return [next(name for name in FORWARDED if self.has(name)), PROXIED]

    def jumps(self) -> list[str]:
        """Every chain that jumps to ours now, once for each jump."""
        return [words[1] for words in self.rules if words[0] == "-A" and words[2:] == JUMP]

    def reached(self, parent: str) -> bool:
        """Whether a chain jumps to ours once, before it lets everything through."""
        rules = [words[2:] for words in self.rules if words[:2] == ["-A", parent]]
        ends = [at for at, rule in enumerate(rules) if rule in (["-j", "RETURN"], ["-j", "ACCEPT"])]
        return rules.count(JUMP) == 1 and rules.index(JUMP) < min(ends, default=len(rules))

    def own(self) -> list[str]:
        """The rules of our own chains."""
        return [" ".join(words) for words in self.rules if words[1] in (CHAIN, SOURCES)]

    def restore(self, lines: list[str]) -> None:
        """Change all at once or nothing."""
        if lines:
            text = "\n".join(["*filter", *lines, "COMMIT", ""])
            call([self.program + "-restore", "--noflush", "-w", LOCK], text)


def families() -> Iterator[Family]:
    """IPv4, and IPv6 where the kernel has it."""
    for version in PROGRAMS:
        if version == 4 or Path("/proc/net/if_inet6").exists():
            yield Family(version)


def wanted(config: dict[str, Any], version: int) -> list[str]:
    """The lines that make our chains, none where no port of that version is published."""
    ports = []
    for one in config["ports"]:
        bind, port = ipaddress.ip_address(one["bind"]), str(int(one["port"]))
        # Docker takes "every address" of either version for its own only; guarding both costs nothing.
        if not bind.is_unspecified and bind.version != version:
            continue
        before, now = ([], []) if bind.is_unspecified else (["--ctorigdst", str(bind)], ["-d", str(bind)])
        # Address and port before Docker translated them: what is forwarded untranslated is somebody else's.
        forwarded = ["--ctstate", "DNAT", *before, "--ctorigdstport", port, "--ctdir", "ORIGINAL"]
        proxied = ["-m", "tcp", "--dport", port, "-m", "addrtype", "--dst-type", "LOCAL"]
        ports.append(["-A", CHAIN, "-p", "tcp", "-m", "conntrack", *forwarded, "-j", SOURCES])
        ports.append(["-A", CHAIN, *now, "-p", "tcp", *proxied, "-j", SOURCES])
    if not ports:
        return []
    sources = [ipaddress.ip_network(text) for text in config["allow_from"]]
    rules = [
        ["-A", CHAIN, "-i", "lo", "-j", "RETURN"],
        ["-A", CHAIN, "-m", "conntrack", "--ctstate", "RELATED,ESTABLISHED", "-j", "RETURN"],
        *ports,
        *(["-A", SOURCES, "-s", str(one), "-j", "RETURN"] for one in sources if one.version == version),
        ["-A", SOURCES, "-j", "DROP"],
    ]
    # A chain that is named here is emptied first.
    return [f":{CHAIN} - [0:0]", f":{SOURCES} - [0:0]", *map(" ".join, rules)]


def apply(config: dict[str, Any], state: Path) -> None:
    """Make the rules of either version and remember how they read."""
    kept: dict[str, Any] = {"config": digest(config)}
    for family in families():
        lines = wanted(config, family.version)
        if not lines:
            take_away(family)
            continue
        good = [parent for parent in family.parents if family.reached(parent)]
        lines += [f"-D {parent} {' '.join(JUMP)}" for parent in family.jumps() if parent not in good]
        lines += [f"-I {parent} 1 {' '.join(JUMP)}" for parent in family.parents if parent not in good]
        family.restore(lines)
        kept[str(family.version)] = Family(family.version).own()
    state.parent.mkdir(parents=True, exist_ok=True)
    state.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


def take_away(family: Family) -> None:
    """Remove our jumps and chains."""
    lines = [f"-D {parent} {' '.join(JUMP)}" for parent in family.jumps()]
    there = [chain for chain in (CHAIN, SOURCES) if family.has(chain)]
    family.restore([*lines, *(f"-F {chain}" for chain in there), *(f"-X {chain}" for chain in there)])


def differences(config: dict[str, Any], state: Path) -> list[str]:
    """What is not as it was applied."""
    kept = read(state)
    if kept.get("config") != digest(config):
        return ["the rules are not those of the declaration"]
    found = []
    for family in families():
        name = f"IPv{family.version}"
        if family.own() != kept.get(str(family.version), []):
            found.append(f"the {name} rules were changed by somebody else")
        if wanted(config, family.version):
            missing = [parent for parent in family.parents if not family.reached(parent)]
            found += [f"{name} traffic of chain {parent} passes by the rules" for parent in missing]
    return found


def watch(config: Path, state: Path) -> None:
    """Mend the rules now and when firewalld reloads, comes or goes, as long as its messages can be read."""
    matches = [f"--match={one}" for one in SIGNALS.values()]
    argv = ["busctl", "--system", "--quiet", "monitor", "--json=short", *matches]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, errors="replace") as bus:
        # Before its messages are read: a reload from now on waits in the pipe.
        mend(config, state)
        for line in bus.stdout or ():
            if any(f'"{member}"' in line for member in SIGNALS):
                for pause in LOOKS:
                    time.sleep(pause)
                    mend(config, state)
    raise Refused(f"busctl ended with status {bus.returncode}: the messages of firewalld cannot be read")


def mend(config: Path, state: Path) -> None:
    """Apply the rules where they are not as they were applied."""
    declared = read(config)
    found = differences(declared, state) if declared else []
    if found:
        print("applied again: " + "; ".join(found), flush=True)
        apply(declared, state)


def digest(config: dict[str, Any]) -> str:
    """A text that differs where the declaration does."""
    return hashlib.sha256(json.dumps(config, sort_keys=True).encode()).hexdigest()


def read(path: Path) -> dict[str, Any]:
    """A JSON object, or {} where there is none."""
    try:
        value: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return {}
    return value


def main() -> int:
    """Run the command line; the exit status."""
    if len(sys.argv) != 4 or sys.argv[1] not in ("apply", "check", "remove", "watch"):
        print(__doc__, file=sys.stderr)
        return 2
    verb, config, state = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    try:
        if verb == "remove":
            for family in families():
                take_away(family)
            state.unlink(missing_ok=True)
        elif verb == "watch":
            watch(config, state)
        elif verb == "apply":
            apply(json.loads(config.read_text(encoding="utf-8")), state)
        else:
            found = differences(read(config), state)
            print("\n".join(found))
            return 1 if found else 0
    except (Refused, OSError, ValueError, KeyError) as error:
        print(error, file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
