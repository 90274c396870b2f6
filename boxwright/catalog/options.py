"""An engine's options by release: what exists, since and until when, of which type, with which values."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from boxwright.catalog import reading
from boxwright.catalog.history import NOT_NAMES

#: The parser's type of an option that is switched on by --X and off by --no-X.
SWITCH = "bool (--x/--no-x)"


@dataclass(frozen=True)
class Option:
    """One option in one release.

    name: without dashes. type: as the parser has it. choices: None for any value.

    negation: the option that switches it off, None where there is none. many: it takes several values.
    """

    name: str
    type: str
    choices: tuple[str, ...] | None
    negation: str | None
    many: bool

    @property
    def is_switch(self) -> bool:
        """Whether it takes no value."""
        return self.type in ("store_true", SWITCH)


class OptionTable:
    """The options of an engine in every release that was read."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self.releases: tuple[str, ...] = tuple(data["releases"])
        self._place = {release: place for place, release in enumerate(self.releases)}
        self._options: Mapping[str, Sequence[Mapping[str, Any]]] = data["options"]
        self._names: Mapping[str, Mapping[str, Sequence[Sequence[str]]]] = {
            part: data[part] for part in data if part not in NOT_NAMES
        }

    def nearest(self, release: str | None) -> tuple[str, bool]:
        """The release whose table stands for another, and whether it is that very one.

        That is the newest at or before it, the first for one that is older than all, the last for none.
        """
        if release is None:
            return self.releases[-1], False
        if release in self._place:
            return release, True
        wanted = reading.version(release)
        before = [known for known in self.releases if reading.version(known) <= wanted]
        return (before[-1] if before else self.releases[0]), False

    def names(self) -> tuple[str, ...]:
        """Every option of any release."""
        return tuple(self._options)

    def option(self, name: str, release: str) -> Option | None:
        """An option as a known release has it, also by an alias of its (`no-enable-prefix-caching`, `tp`)."""
        canonical = self.canonical(name, release)
        if canonical is None:
            return None
        form = self._form(canonical, release)
        if form is None:
            return None
        choices = form.get("choices")
        return Option(
            canonical,
            str(form.get("type", "str")),
            tuple(str(choice) for choice in choices if choice is not None) if choices else None,
            self._negation(canonical, form),
            form.get("nargs") in ("+", "*"),
        )

    def canonical(self, name: str, release: str) -> str | None:
        """The option that a name or an alias means in a release, None for none."""
        if self._form(name, release) is not None:
            return name
        for known in self._options:
            form = self._form(known, release)
            if form and name in {alias.lstrip("-") for alias in form.get("aliases", ())}:
                return known
        # The parser takes --no-X of every switch X, though newer releases list another negation beside it.
        plain = name.removeprefix("no-")
        form = self._form(plain, release) if plain != name else None
        return plain if form and form.get("type") == SWITCH else None

    def exists_in(self, name: str) -> tuple[str, ...]:
        """The releases that have an option (by its own name or an alias), oldest first."""
        return tuple(release for release in self.releases if self.canonical(name, release) is not None)

    def known(self, part: str, name: str) -> tuple[str, ...]:
        """The releases that know a name of a part (`tool_parsers`, `env_vars`, `attention_backends`, …)."""
        ranges = self._names.get(part, {}).get(name, ())
        return tuple(
            release
            for release in self.releases
            if any(self._place[first] <= self._place[release] <= self._place[last] for first, last in ranges)
        )

    def part(self, part: str, release: str) -> tuple[str, ...]:
        """The names of a part in a release."""
        return tuple(name for name in self._names.get(part, {}) if release in self.known(part, name))

    def _form(self, name: str, release: str) -> Mapping[str, Any] | None:
        latest = None
        for form in self._options.get(name, ()):
            if self._place[form["since"]] <= self._place[release]:
                latest = form
        return None if latest is None or latest.get("absent") else latest

    def _negation(self, name: str, form: Mapping[str, Any]) -> str | None:
        return f"no-{name}" if form.get("type") == SWITCH else None


def load(engine: str) -> OptionTable:
    """An engine's options."""
    return OptionTable(json.loads(reading.text(f"{engine}.json")))
