"""The lab's verbs. The lab itself is imported where it is used: most verbs of a day have no need of it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from boxwright.cli.console import say, say_aside, show_json, table
from boxwright.errors import EXIT_BAD_INPUT, UserError
from boxwright.spec.inventory import Inventory
from boxwright.texts import printable

MOST_HOSTS = 20
#: Hosts of this inventory group are simulated; they are started before a verb visits them.
GROUP = "lab"


def up(*, rig: str | None = None, hosts: str = "1", suite: str = "trixie") -> None:
    """Start lab1 … labN with the cards of `rig`; `hosts` is N as it was typed."""
    if hosts not in {str(number) for number in range(1, MOST_HOSTS + 1)}:
        raise UserError(
            f"--hosts {printable(hosts)}: the lab has 1 to {MOST_HOSTS} hosts", status=EXIT_BAD_INPUT
        )
    from boxwright import lab

    # Before the engine is asked for anything.
    lab.HostRequest("lab1", **{"rig": rig} if rig else {}, suite=suite).check()
    ensure([f"lab{number}" for number in range(1, int(hosts) + 1)], rig=rig, suite=suite)
    status()


def ensure(
    names: Sequence[str], *, rig: str | None = None, suite: str | None = None, as_json: bool = False
) -> None:
    """See that the named simulated hosts run; those that exist keep their cards unless a rig is asked for.

    as_json: the output is a program's, and how far the work is goes beside it.
    """
    options = {key: value for key, value in (("rig", rig), ("suite", suite)) if value is not None}
    from boxwright import lab

    existing = {host.name: host for host in lab.status().hosts}
    requests = []
    for name in names:
        kept = existing.get(name)
        own = {"rig": kept.rig, "suite": kept.suite} if kept else {}
        requests.append(lab.HostRequest(name=name, **{**own, **options}))
    lab.up(requests, report=say_aside if as_json else say)


def ensure_simulated(inventory: Inventory, names: Sequence[str], *, as_json: bool = False) -> None:
    """See that those of the named hosts run that the inventory says are simulated."""
    simulated = [name for name in names if GROUP in inventory.groups(name)]
    if simulated:
        ensure(simulated, as_json=as_json)


def status(*, as_json: bool = False) -> None:
    """Show the simulated hosts."""
    from boxwright import lab

    found = lab.status()
    if as_json:
        show_json(found.to_json())
        return
    if not found.hosts:
        say("the lab is not up: ./invoke lab.up")
        return
    table(
        ["host", "cards", "system", "address", "state"],
        [[host.name, host.rig, host.suite, host.address, host.state] for host in found.hosts],
    )
    say(f"to log in: {shlex.join(['ssh', '-F', found.ssh_config, found.hosts[0].name])}")


def down(*, cache: bool = False) -> None:
    """Remove everything the lab made."""
    from boxwright import lab

    lab.down(report=say, cache=cache)
