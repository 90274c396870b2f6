"""How a rule is written and found: a function with a decorator, whose docstring is its story."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from boxwright.planner.case import Case, Host
from boxwright.planner.finding import Finding
from boxwright.texts import printable

GATE, ADVICE = "gate", "advice"


@dataclass(frozen=True)
class Note:
    """What a rule has to say. at: the variable below the deployment, or the whole path of a host's rule.

    place: of the deployment that a host's rule is about. soft: only advice, though the rule is a gate.
    """

    message: str
    fix: tuple[str, ...]
    at: str = ""
    place: int | None = None
    soft: bool = False


Notes = Note | Iterable[Note] | None


@dataclass(frozen=True)
class Story:
    """A rule as `invoke explain` tells it. kind: gate or advice."""

    kind: str
    text: str
    source: str


@dataclass(frozen=True)
class Rule:
    """One rule. of_host: it looks at the box with all its deployments, not at each.

    engine: the one engine whose deployments it is about, None for all.
    """

    id: str
    kind: str
    source: str
    text: str
    of_host: bool
    find: Callable[..., Notes]
    engine: str | None = None


_RULES: dict[str, Rule] = {}

CaseRule = Callable[[Case], Notes]
HostRule = Callable[[Host, Sequence[Case]], Notes]


def note(message: str, *fix: str, at: str = "", place: int | None = None, soft: bool = False) -> Note:
    """What is wrong and why, and the ways out."""
    return Note(message, fix, at, place, soft)


def gate(identity: str, *, source: str, engine: str | None = None) -> Callable[[CaseRule], CaseRule]:
    """A rule about one deployment that refuses; engine: about those of one engine only."""
    return _register(identity, GATE, source, of_host=False, engine=engine)


def advice(identity: str, *, source: str, engine: str | None = None) -> Callable[[CaseRule], CaseRule]:
    """A rule about one deployment that warns; engine: about those of one engine only."""
    return _register(identity, ADVICE, source, of_host=False, engine=engine)


def host_gate(identity: str, *, source: str) -> Callable[[HostRule], HostRule]:
    """A rule about the box that refuses."""
    return _register(identity, GATE, source, of_host=True)


def host_advice(identity: str, *, source: str) -> Callable[[HostRule], HostRule]:
    """A rule about the box that warns."""
    return _register(identity, ADVICE, source, of_host=True)


def _register(
    identity: str, kind: str, source: str, *, of_host: bool, engine: str | None = None
) -> Callable[..., Callable[..., Notes]]:
    def add(function: Callable[..., Notes]) -> Callable[..., Notes]:
        text = inspect.getdoc(function) or ""
        add_rule(identity, kind, source, text, function, of_host=of_host, engine=engine)
        return function

    return add


def add_rule(
    identity: str,
    kind: str,
    source: str,
    text: str,
    function: Callable[..., Notes],
    *,
    of_host: bool = False,
    engine: str | None = None,
) -> None:
    """Register a rule. Raises ValueError for an id that is taken, or a rule without a story."""
    if identity in _RULES or not text:
        raise ValueError(f"rule {identity}: {'its id is taken' if text else 'it has no story'}")
    _RULES[identity] = Rule(identity, kind, source, text, of_host, function, engine)


def registered() -> tuple[Rule, ...]:
    """All rules, by id."""
    return tuple(_RULES[identity] for identity in sorted(_RULES))


def apply(host: Host, cases: Sequence[Case]) -> tuple[list[Finding], list[Finding]]:
    """Gates and advice, in the order of the deployments, the host's own first."""
    gates: list[Finding] = []
    warnings: list[Finding] = []
    for rule in registered():
        for case, said in _say(rule, host, cases):
            found = _finding(rule, case, said, cases)
            (gates if rule.kind == GATE and not said.soft else warnings).append(found)
    order = {None: -1} | {case.deployment.name: case.place for case in cases}
    for found_list in (gates, warnings):
        found_list.sort(key=lambda one: (order.get(one.deployment, -1), one.id))
    return gates, warnings


def _say(rule: Rule, host: Host, cases: Sequence[Case]) -> Iterator[tuple[Case | None, Note]]:
    if rule.of_host:
        yield from ((None, said) for said in _notes(rule.find(host, cases)))
        return
    for case in cases:
        if rule.engine not in (None, case.engine.dialect.engine):
            continue
        yield from ((case, said) for said in _notes(rule.find(case)))


def _notes(said: Notes) -> Iterable[Note]:
    if said is None:
        return ()
    return (said,) if isinstance(said, Note) else said


def _finding(rule: Rule, case: Case | None, said: Note, cases: Sequence[Case]) -> Finding:
    if case is None and said.place is not None:
        case = cases[said.place]
    path = said.at if case is None else f"{case.path}.{said.at}" if said.at else case.path
    name = case.deployment.name if case else None
    fix = tuple(printable(way) for way in said.fix)
    return Finding(rule.id, name, printable(said.message), fix, rule.source, path)
