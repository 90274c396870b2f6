"""The verb explain: the story of what a plan refuses or advises, and of what the doctor finds."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Mapping
from typing import Any

from boxwright.cli.console import say, show_json, table
from boxwright.doctor import Signature, signatures
from boxwright.doctor.telling import wrapped
from boxwright.errors import EXIT_BAD_INPUT, UserError
from boxwright.planner import rules
from boxwright.planner.rules import Story
from boxwright.spec.suggestions import nearest
from boxwright.texts import printable


def explain(word: str, *, as_json: bool = False) -> None:
    """Tell the story of one id, or list them all."""
    stories = rules.stories()
    faults = {one.id: one for one in signatures()}
    if word:
        if word not in stories and word not in faults:
            raise _unknown(word, {**stories, **faults})
        if as_json:
            show_json({"id": word, **_json(stories.get(word), faults.get(word))})
        else:
            _tell(word, stories.get(word), faults.get(word))
        return
    told = {name: _json(stories.get(name), faults.get(name)) for name in {**stories, **faults}}
    if as_json:
        show_json(told)
        return
    rows = [
        *sorted((name, story.kind, inspect.cleandoc(story.text)) for name, story in stories.items()),
        *sorted((name, one.severity, one.explained()[0]) for name, one in faults.items()),
    ]
    table(["id", "kind", "what"], [[name, kind, first_sentence(what)] for name, kind, what in rows])


def _unknown(word: str, known: Mapping[str, Any]) -> UserError:
    guess = nearest(word, known)
    return UserError(
        f'no gate, advice or fault is named "{printable(word)}"',
        status=EXIT_BAD_INPUT,
        ways_out=(*([f"./invoke explain {guess}"] if guess else []), "./invoke explain lists them"),
    )


def _json(story: Story | None, fault: Signature | None) -> dict[str, Any]:
    """By stable keys: what the plan says, and under `doctor` what the doctor does."""
    told: dict[str, Any] = {}
    if fault is not None:
        cause, fix = fault.explained()
        told = {"kind": fault.severity, "story": _sentence(cause), "source": fault.source}
        told["doctor"] = {
            "severity": fault.severity,
            "cause": cause,
            "fix": list(fix),
            "example": list(fault.example),
            "source": fault.source,
        }
    if story is not None:
        told |= {"kind": story.kind, "story": inspect.cleandoc(story.text), "source": story.source}
    return told


def _tell(word: str, story: Story | None, fault: Signature | None) -> None:
    if story is not None:
        say(f"{word} ({story.kind})")
        say(textwrap.indent(inspect.cleandoc(story.text), "  "))
        say(f"  source: {story.source}")
    if fault is None:
        return
    if story is not None:
        say()
    say(f"{word} (the doctor: {fault.severity})")
    cause, fix = fault.explained()
    lines = wrapped(cause, "  ")
    for number, way in enumerate(fix):
        lines += wrapped(way, f"    {'or' if number else 'do'}    ", " " * 10)
    if fault.texts:
        lines += wrapped(str(fault.example[0]), "    seen  ", " " * 10, broken=True)
    for line in [*lines, f"  source: {fault.source}"]:
        say(line)


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."


def first_sentence(text: str) -> str:
    """The first sentence, whole: up to a full stop (or another end) with a space and a capital behind it."""
    flowing = " ".join(text.split("\n\n")[0].split())
    end = re.search(r"[.!?]\"?(?=\s[A-Z\"`])", flowing)
    return flowing[: end.end()] if end else flowing
