"""What went wrong between this machine and a box, and what to do about it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from boxwright.ansible.runs import cause
from boxwright.cli.ansible_run import HostReport
from boxwright.cli.console import say, say_aside, wrapped
from boxwright.cli.ssh_route import Route, route, ssh_words
from boxwright.errors import UserError
from boxwright.spec.address import Address
from boxwright.spec.inventory import Inventory
from boxwright.texts import printable, unframed

_RETRY = "then run the same command again"


@dataclass(frozen=True)
class _Trouble:
    """match: in what ssh, sudo or Ansible say.

    In the ways out, ssh stands for the box's command line; user, port_word and root for where they are said.
    """

    match: re.Pattern[str]
    what: str
    ways_out: tuple[str, ...]


def _trouble(match: str, what: str, *ways_out: str) -> _Trouble:
    return _Trouble(re.compile(match, re.IGNORECASE), what, ways_out)


#: Where ssh names the machine that it speaks of: the box, or a jump host before it.
_NAMED = re.compile(
    r"connect to host (?P<a>\S+) port|Could not resolve hostname (?P<b>[^\s:]+)"
    r"|(?:^|\s)(?:[^\s@:]+@)(?P<c>\S+): Permission denied|host key is known for (?P<d>\S+)"
    r"|authenticity of host '(?P<e>[^' ]+)|Host key for (?P<f>\S+) has changed",
    re.IGNORECASE,
)
#: All that ssh may say of a pipe to a jump host that ended: only with a jump host is it this.
_THROUGH = _trouble(
    r"^(?!.*(?:connect to host|resolve hostname|Permission denied|[Hh]ost key)).*"
    "(?:kex_exchange_identification|UNKNOWN port)",
    "the connection through {jump} ended before the box was reached",
    "see that the jump host {jump_word} is on and lets you in, by ssh",
    "see that the box is on, and that the jump host reaches its port {port}",
)
_NO_ANSWER = "the box does not answer", "see that it is on and that this works: {ssh} true"
_TROUBLES = (
    _trouble(
        "stdio forwarding failed|open failed: (?:connect failed|administratively prohibited)",
        "{jump} lets ssh in, and cannot reach the box from there",
        "see that the box is on, and that the jump host reaches its port {port}",
        "its sshd may forbid forwarding: AllowTcpForwarding there",
    ),
    _THROUGH,
    _trouble(
        "REMOTE HOST IDENTIFICATION HAS CHANGED|host key .* has changed",
        "the box shows another host key than it did before",
        "find out why: a new installation has a new key, and so has somebody in between",
        "where the new key is right: ssh-keygen -R {known}, " + _RETRY,
    ),
    _trouble(
        "Host key verification failed|authenticity of host .* can't be established|No .* host key is known",
        "ssh does not know the box's host key",
        "{ssh} true, compare the fingerprint it shows, answer yes, " + _RETRY,
    ),
    _trouble(
        "Permission denied",
        "the box lets nobody in with these keys",
        "ssh-copy-id for this user, or the right user: {user}",
        "an IdentityFile for it in ~/.ssh/config, or the key in the agent (ssh-add)",
    ),
    _trouble(
        "Could not resolve hostname",
        "there is no host of this name",
        "see that it is spelt right, or give its IP address",
    ),
    _trouble(
        "Connection refused",
        "nothing answers on its SSH port",
        "see that sshd runs there, and on which port: {port_word}",
    ),
    _trouble(
        "timed out|No route to host|Network is unreachable",
        *_NO_ANSWER,
    ),
    _trouble(
        "kex_exchange_identification|banner exchange|Connection (?:closed|reset) by",
        "what answers on its SSH port ends the connection before anybody is let in",
        "see that it is sshd that listens there, and on which port: {port_word}",
        "sshd may refuse this machine (MaxStartups, fail2ban, a firewall): wait, or look at its journal",
    ),
    _trouble(
        "Incorrect sudo password|incorrect password attempt|Sorry, try again",
        "the password is not the one that sudo wants there",
        "--ask-become-pass, and the password of the user on the box",
        "look at ansible_become_password in the inventory, or what ANSIBLE_BECOME_PASSWORD_FILE names",
    ),
    _trouble(
        "sudo password|password is required|a terminal is required|Timeout .*for privilege escalation",
        "sudo asks for a password there",
        "--ask-become-pass, to be asked for it here",
        "ansible_become_password in a vault of the inventory",
        "ANSIBLE_BECOME_PASSWORD_FILE=… in the environment",
        "let the user use sudo without one: NOPASSWD in /etc/sudoers.d",
    ),
    _trouble(
        r"not in the sudoers file|may not run sudo|not allowed to (?:run|execute)",
        "the user may not use sudo there",
        "as root: usermod -aG sudo USER (the group is wheel on RHEL, Rocky Linux and AlmaLinux)",
        "{root}, where root may log in",
    ),
    _trouble(
        r"sudo:? .*(?:command )?not found|No such file or directory.*sudo",
        "there is no sudo on the box",
        "install it there, as root: apt-get install sudo, or dnf install sudo",
        "{root}, where root may log in",
    ),
    _trouble(
        r"module interpreter .* was not found|python3?: (?:command )?not found|/python3: No such file",
        "there is no Python on the box, or it is no Linux",
        "install it there: apt-get install python3, or dnf install python3",
    ),
    # All that Ansible says where ssh takes nothing any more and has not yet ended, so has not said why.
    _trouble("Data could not be sent to remote host", *_NO_ANSWER),
)


def trouble(
    host: str,
    failure: Mapping[str, Any] | None,
    address: Address | None = None,
    otherwise: tuple[str, ...] = (),
    variables: Mapping[str, object] | None = None,
) -> UserError:
    """The error for a host that a playbook could not visit.

    failure: of the run's report. address: of the box; where it is not known, its name stands in the ways out.
    otherwise: ways out where what was said is no trouble with the connection. variables: of the host; ssh is
    asked what it makes of them, whether a jump host is between.
    """
    if failure is None:
        return UserError("the host was not visited", where=host, ways_out=otherwise)
    said = unframed(printable(str(failure.get("message") or "")))
    known = {**(variables or {}), **(address.variables() if address else {})}
    to = route(ssh_words(host, known)) if known else None
    error = recognized(host, said, address, to) or UserError(
        said or "it failed without a message",
        where=host,
        ways_out=otherwise or tuple(failure.get("next") or ()),
    )
    return replace(error, left=tuple(failure.get("left") or ()))


def recognized(host: str, said: str, address: Address | None, to: Route | None) -> UserError | None:
    """The error for what ssh, sudo or Ansible said; None where it is no trouble with the way to the box."""
    jumps = bool(to and to.jump)
    found = next(
        (one for one in _TROUBLES if (one is not _THROUGH or jumps) and one.match.search(said)), None
    )
    if found is None:
        return None
    jump = to.jump.rpartition(",")[2] if to else ""
    place = {
        "host": host,
        "ssh": f"ssh {host}",
        "known": host,
        "port": str(to.port if to else 22),
        "jump": f"the jump host {jump}" if jump else "a jump host",
        "jump_word": jump,
        "user": "its ansible_user in the inventory",
        "port_word": "its ansible_port in the inventory",
        "root": "ansible_user: root in the inventory",
    }
    if address is not None:
        known = f"'[{address.host}]:{address.port}'" if address.port else address.host
        shown = f"[{address.host}]" if ":" in address.host else address.host
        place |= {"host": shown, "ssh": address.ssh(), "known": known}
        place |= {"user": f"--host USER@{shown}", "port_word": f"--host {shown}:PORT"}
        place |= {"root": f"--host root@{shown}"}
    culprit = None if "{jump}" in found.what else _jump_host(said, to, {host, place["host"].strip("[]")})
    if culprit:
        place |= {"host": culprit, "ssh": f"ssh {culprit}", "known": culprit}
        place |= {"user": "its User in ~/.ssh/config", "port_word": "its Port in ~/.ssh/config"}
    what = found.what.format(**place)
    if culprit:
        what = f"the way to it leads through the jump host {culprit}, and there: {what}"
    ways = tuple(way.format(**place) for way in found.ways_out)
    return UserError(what, where=host, why=said, ways_out=ways)


def _jump_host(said: str, to: Route | None, own: set[str]) -> str | None:
    """The machine between that ssh complains of; None where it is the box itself."""
    if to is None or not to.jump:
        return None
    named = _NAMED.search(said)
    if named:
        name = next(value for value in named.groups() if value).strip("[]").partition("]")[0]
        return None if name in {*own, to.host} else name
    # What ssh says of the other end of a pipe to a jump host that ended before the box was reached.
    return to.jump if re.search("UNKNOWN port|kex_exchange_identification", said) else None


def answers(
    hosts: Mapping[str, HostReport],
    names: Sequence[str],
    module: str,
    inventory: Inventory,
    otherwise: str = "",
) -> tuple[dict[str, Mapping[str, Any]], dict[str, UserError]]:
    """What a module found on each of the named hosts, and of the others why it did not.

    otherwise: the way out, with {host} in it, where a box answers and has nothing for the module.
    """
    reports = {name: hosts.get(name, HostReport(name)) for name in names}
    found = {name: one.results[module][0] for name, one in reports.items() if one.results.get(module)}
    return found, {
        name: trouble(
            name,
            one.failure,
            otherwise=(otherwise.format(host=name),) if otherwise else (),
            variables=inventory.variables(name),
        )
        for name, one in reports.items()
        if name not in found
    }


def reason(name: str, failure: Mapping[str, Any] | None) -> str:
    """Why a box could not be looked at, in one line, for a verb that goes on with the others."""
    return in_one_line(trouble(name, failure))


def explain(name: str, failure: dict[str, Any] | None, inventory: Inventory) -> None:
    """Give a failure its cause in a sentence, and its ways out; what ssh and sudo say has its own."""
    if failure is None:
        return
    error = trouble(name, failure, variables=inventory.variables(name))
    what = error.what
    if error.why is None:
        where = failure.get("role") or failure.get("task")
        what = cause(str(failure.get("message") or ""), str(failure.get("kind"))) or what
        what = f"{failure.get('kind') or 'failed'}{f' at {where}' if where else ''}: {printable(what)}"
    failure.update(what=what, left=list(error.left), ways_out=list(error.ways_out))
    failure.pop("next", None)


def tell_end(name: str, failure: Mapping[str, Any]) -> None:
    """Say how a run ended on a host on which it failed: the cause was told at length where it happened."""
    say()
    ways, left = tuple(failure.get("ways_out") or ()), tuple(failure.get("left") or ())
    say(wrapped_error(UserError(str(failure["what"]), where=name, left=left, ways_out=ways)))


def wrapped_error(error: UserError) -> str:
    """The error with its long lines broken; no command among its ways out is."""
    lines = []
    for line in str(error).splitlines():
        indent = len(line) - len(line.lstrip())
        lines.append(
            line if "./invoke" in line else wrapped(line.strip(), indent, 8 - indent if indent else 2)
        )
    return "\n".join(lines)


def tell_missed(missed: Mapping[str, UserError], *, alone: bool, what: str = "could not be read") -> None:
    """Say of the boxes that did not answer why, after the others. Raises the error of one that was alone."""
    for name, error in missed.items():
        if alone:
            raise error
        say_aside(wrapped(f"{name}: {what}: {in_one_line(error)}", hang=2))


def told_of(value: Mapping[str, Any], failure: str | None = None) -> dict[str, Any]:
    """A box in what a verb tells a program. failure: why there is nothing else to tell of it, None otherwise.

    Every verb says it by this word, of a box that is off as of one on which something went wrong.
    """
    return {**value, "failure": failure}


def by_host(
    found: Mapping[str, Mapping[str, Any]],
    missed: Mapping[str, UserError],
    *,
    alone: bool = False,
    empty: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """What a verb tells a program: a host's value by its name, or why there is none.

    alone: of the one host that was named, the value itself. Raises the error of one that did not answer.
    empty: what stands in the place of a value, so that its keys are there.
    """
    if alone:
        for error in missed.values():
            raise error
        return dict(next(iter(found.values())))
    failures = {name: told_of(empty or {}, in_one_line(error)) for name, error in missed.items()}
    return {name: told_of(one) for name, one in found.items()} | failures


def in_one_line(error: UserError) -> str:
    """What went wrong and why, without the ways out."""
    return f"{error.what}: {error.why}" if error.why else error.what
