"""Rules about ports, addresses and names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from boxwright.engines.vllm_names import spelling
from boxwright.planner.case import Case, Host
from boxwright.planner.rules.registry import Note, advice, gate, host_advice, host_gate, note
from boxwright.planner.rules.words import listed, shown

UFW = "https://github.com/moby/moby/issues/22054"
WILDCARDS = ("0.0.0.0", "::", "*", "")


def container_name(deployment: str) -> str:
    """The name that the engine's role gives a deployment's container."""
    return f"boxwright-{deployment}"


@host_gate("port-shared", source="https://docs.docker.com/engine/network/port-publishing/")
def port_shared(host: Host, cases: Sequence[Case]) -> Iterator[Note]:
    """Two deployments cannot publish the same port on the same address."""
    seen: dict[int, Case] = {}
    for case in cases:
        other = seen.setdefault(case.deployment.port, case)
        binds = {case.deployment.bind, other.deployment.bind}
        if other is not case and (len(binds) == 1 or binds & set(WILDCARDS)):
            yield note(
                f"port {case.deployment.port} is declared for {shown(other.deployment.name)} and "
                f"{shown(case.deployment.name)}",
                f"port: {case.deployment.port + 1}",
                at="port",
                place=case.place,
            )


@host_gate("name-shared", source="boxwright/planner/rules/network.py")
def name_shared(host: Host, cases: Sequence[Case]) -> Iterator[Note]:
    """A deployment's name is that of its service, its releases and its model in the API."""
    seen: set[str] = set()
    for case in cases:
        if case.deployment.name in seen:
            yield note(
                f"two deployments are named {shown(case.deployment.name)}",
                "another name for one of them",
                at="name",
                place=case.place,
            )
        seen.add(case.deployment.name)


@gate("port-taken", source="https://docs.docker.com/engine/network/port-publishing/")
def port_taken(case: Case) -> Note | None:
    """A port that another program listens on cannot be published; the release would fail when it starts."""
    deployment = case.deployment
    for listener in case.host.facts.listening:
        same = (
            listener.address in WILDCARDS
            or deployment.bind in WILDCARDS
            or listener.address == deployment.bind
        )
        if listener.port != deployment.port or not same or _is_ours(case, listener.container):
            continue
        owner = (
            f"container {listener.container}" if listener.container else listener.process or "another program"
        )
        return note(f"port {deployment.port} is taken by {owner}", "another port", f"stop {owner}", at="port")
    return None


def _is_ours(case: Case, container: str | None) -> bool:
    """Whether it is of a deployment of this box: a declared one, or one that goes because it is not."""
    host = case.host
    names = {one.name for one in host.box.deployments} | {one.deployment for one in host.facts.releases}
    return container in {container_name(name) for name in names}


@gate("address-not-on-host", source="https://docs.docker.com/engine/network/port-publishing/")
def address_not_on_host(case: Case) -> Note | None:
    """A port is published on an address that the host has; another one fails when the container starts."""
    bind, addresses = case.deployment.bind, case.host.facts.addresses
    if bind in WILDCARDS or not addresses or case.deployment.is_loopback or bind.strip("[]") in addresses:
        return None
    return note(
        f"the host has no address {shown(bind)}; it has {', '.join(addresses)}",
        f"bind: {addresses[0]}",
        "bind: 127.0.0.1",
        at="bind",
    )


@gate("endpoint-without-key", source="https://github.com/OWASP/CheatSheetSeries/pull/2020")
def without_key(case: Case) -> Note | None:
    """An endpoint that others reach asks for a key: the declared one, or one that the box makes and keeps.

    A declaration that would switch it off is refused wherever it listens beyond the host.
    """
    if case.deployment.is_loopback:
        return None
    given = {spelling(name): value for name, value in case.deployment.extra_args.items()}
    off = "api-key" in given and given["api-key"] in ("", None, False, [], ())
    if not off and case.deployment.env.get("VLLM_API_KEY", "x") != "":
        return None
    return note(
        f"the key is switched off, and {shown(case.deployment.bind)} is reached from beyond the host",
        "leave it out: the box makes a key (./invoke key --host …)",
        "bind: 127.0.0.1",
        at="bind",
    )


@advice("endpoint-beyond-host", source=UFW)
def beyond_host(case: Case) -> Note | None:
    """Ports that Docker publishes pass by the host's own firewall rules (ufw), and nothing encrypts them.

    Without the key only /health answers, and what `open_paths` names; SGLang's /metrics does, too.
    box_allow_from names the networks that may connect, by rules in DOCKER-USER, a chain left to others.
    """
    deployment, allowed = case.deployment, case.host.box.allow_from
    if deployment.is_loopback or allowed:
        return None
    return note(
        f"port {deployment.port} is open to everybody who reaches {shown(deployment.bind)}: it "
        "asks for the key, but nothing encrypts it, and ufw does not see it",
        "box_allow_from: [your network, like 192.0.2.0/24]",
        "bind: 127.0.0.1 behind a gateway",
        "a private network's address",
        at="bind",
    )


def _opening(host: Host) -> str:
    return "firewall-cmd --add-port" if "firewalld" in host.facts.firewalls else "ufw allow"


@host_advice("firewall-beside-docker", source=UFW)
def firewall(host: Host, cases: Sequence[Case]) -> Note | None:
    """A firewall of the host (ufw, firewalld) does not cover the ports that Docker publishes.

    They are forwarded to a container before the firewall's rules for the host are asked: `ufw deny 8000`
    closes nothing, and `ufw allow` is not needed. Everything else of the host, SSH among it, stays the
    firewall's. box_allow_from covers the published ports, whether a firewall is on or off, and is kept when
    Docker or the box starts anew. firewalld empties iptables with each reload, start and stop; Docker
    then makes its rules again, and a unit of Boxwright's these.
    """
    open_ports = [str(case.deployment.port) for case in cases if not case.deployment.is_loopback]
    if not host.facts.firewalls or not open_ports:
        return None
    names, ports = listed(host.facts.firewalls), listed(open_ports)
    plural = "s" if len(open_ports) > 1 else ""
    if host.box.allow_from:
        return note(
            f"{names} is on and does not cover published port{plural} {ports}: box_allow_from alone decides "
            "who reaches them",
            f"nothing, where that is meant; `{_opening(host)}` for them is not needed",
            at="box_allow_from",
        )
    return note(
        f"{names} is on, and published port{plural} {ports} pass by it: no rule of its own closes them",
        "box_allow_from: [your network, like 192.0.2.0/24]",
        "bind: 127.0.0.1",
    )


@host_advice("nothing-to-allow", source="boxwright/planner/rules/network.py")
def nothing_to_allow(host: Host, cases: Sequence[Case]) -> Note | None:
    """Sources are named for ports that are published; none reaches one of the loopback address."""
    if not host.box.allow_from or any(not case.deployment.is_loopback for case in cases):
        return None
    return note(
        "box_allow_from names sources, and every endpoint listens on the box itself only",
        "bind: 0.0.0.0 for the deployment that they shall reach",
        at="box_allow_from",
    )
