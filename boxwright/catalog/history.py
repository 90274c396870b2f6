"""An engine's table by release: taken apart, a release added, put together again; what changed between two.

A table keeps one entry an option: its form from a release on (`since`), or that it is gone (`absent`). The
other parts keep, for each name, the ranges of releases that know it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

from boxwright.catalog import reading

Form = Mapping[str, Any]
#: Parts of a table that are no names by release.
NOT_NAMES = frozenset({"source", "releases", "options", "builds"})
#: The order of a form's keys in the file.
_KEYS = ("type", "choices", "default", "nargs", "aliases")
#: Names as alike as this may be one option that was renamed, if the rest is the same.
_ALIKE = 0.75


@dataclass(frozen=True)
class Release:
    """What one release takes. options: name -> form. names: part -> names. build: torch, cuda, or empty."""

    options: Mapping[str, Form]
    names: Mapping[str, frozenset[str]]
    build: Mapping[str, str]


@dataclass(frozen=True)
class Change:
    """One difference between two releases. kind: added, removed, renamed, or the key of the form."""

    part: str
    name: str
    kind: str
    before: Any = None
    after: Any = None

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "part": self.part,
            "name": self.name,
            "kind": self.kind,
            "before": self.before,
            "after": self.after,
        }


def releases(table: Mapping[str, Any]) -> dict[str, Release]:
    """Every release of a table, whole, oldest first."""
    known: Sequence[str] = table["releases"]
    place = {release: number for number, release in enumerate(known)}
    options: dict[str, dict[str, Form]] = {release: {} for release in known}
    for name, forms in table["options"].items():
        for number, form in enumerate(forms):
            until = place[forms[number + 1]["since"]] if number + 1 < len(forms) else len(known)
            if form.get("absent"):
                continue
            plain = {key: form[key] for key in _KEYS if key in form}
            for release in known[place[form["since"]] : until]:
                options[release][name] = plain
    found = {}
    for release in known:
        names = {
            part: frozenset(name for name, spans in table[part].items() if _within(spans, release, place))
            for part in table
            if part not in NOT_NAMES
        }
        found[release] = Release(options[release], names, table.get("builds", {}).get(release, {}))
    return found


def _within(spans: Iterable[Sequence[str]], release: str, place: Mapping[str, int]) -> bool:
    return any(place[first] <= place[release] <= place[last] for first, last in spans)


def table(source: str, known: Mapping[str, Release]) -> dict[str, Any]:
    """The compact table of releases: sorted, each option's history without repetitions."""
    order = sorted(known, key=reading.version)
    made: dict[str, Any] = {"source": source, "releases": order}
    names = sorted({name for release in known.values() for name in release.options})
    made["options"] = {
        name: _history([(one, known[one].options.get(name)) for one in order]) for name in names
    }
    parts = list(dict.fromkeys(part for one in order for part in known[one].names))
    for part in parts:
        everything = sorted({name for one in order for name in known[one].names.get(part, ())})
        made[part] = {
            name: _spans([name in known[one].names.get(part, ()) for one in order], order)
            for name in everything
        }
    builds = {one: dict(sorted(known[one].build.items())) for one in order if known[one].build}
    if builds:
        made["builds"] = builds
    return made


def _history(forms: Iterable[tuple[str, Form | None]]) -> list[dict[str, Any]]:
    history: list[dict[str, Any]] = []
    before: Form | None = None
    for release, form in forms:
        if form == before:
            continue
        if form is None:
            history.append({"since": release, "absent": True})
        else:
            history.append({"since": release, **{key: form[key] for key in _KEYS if key in form}})
        before = form
    return history


def _spans(have: Sequence[bool], order: Sequence[str]) -> list[list[str]]:
    spans: list[list[str]] = []
    for number, release in enumerate(order):
        if have[number] and number and have[number - 1]:
            spans[-1][1] = release
        elif have[number]:
            spans.append([release, release])
    return spans


def added(old: Mapping[str, Any], name: str, release: Release) -> dict[str, Any]:
    """The table with a release, which replaces the one of that name."""
    return table(str(old["source"]), {**releases(old), name: release})


def before(table_: Mapping[str, Any], name: str) -> str | None:
    """The newest release of a table that is older than another."""
    older = [one for one in table_["releases"] if reading.version(one) < reading.version(name)]
    return older[-1] if older else None


def differences(old: Release, new: Release) -> list[Change]:
    """What a person must know who goes from one release to the other."""
    gone = sorted(set(old.options) - set(new.options))
    come = sorted(set(new.options) - set(old.options))
    changes: list[Change] = []
    for name in list(gone):
        heir = _heir(name, old.options[name], {one: new.options[one] for one in come})
        if heir:
            changes.append(Change("options", name, "renamed", name, heir))
            gone.remove(name)
            come.remove(heir)
    changes += [Change("options", name, "removed", dict(old.options[name])) for name in gone]
    changes += [Change("options", name, "added", None, dict(new.options[name])) for name in come]
    for name in sorted(set(old.options) & set(new.options)):
        was, now = old.options[name], new.options[name]
        changes += [
            Change("options", name, key, was.get(key), now.get(key))
            for key in _KEYS
            if was.get(key) != now.get(key)
        ]
    for part in dict.fromkeys((*old.names, *new.names)):
        had, has = old.names.get(part, frozenset()), new.names.get(part, frozenset())
        changes += [Change(part, name, "removed", name) for name in sorted(had - has)]
        changes += [Change(part, name, "added", None, name) for name in sorted(has - had)]
    return changes


def _heir(name: str, form: Form, come: Mapping[str, Form]) -> str | None:
    """The new name of an option that is gone: it lists the old one, or is alike in name and same in form."""
    for one, other in come.items():
        if f"--{name}" in other.get("aliases", ()) or f"--{one}" in form.get("aliases", ()):
            return one
    same = [one for one, other in come.items() if _meaning(other) == _meaning(form)]
    ranked = sorted(((SequenceMatcher(None, name, one).ratio(), one) for one in same), reverse=True)
    return ranked[0][1] if ranked and ranked[0][0] >= _ALIKE else None


def _meaning(form: Form) -> dict[str, Any]:
    return {key: value for key, value in form.items() if key != "aliases"}
