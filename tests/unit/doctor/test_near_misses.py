"""Lines that a person could meet and no signature must claim for itself; a loose one would."""

import re
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import yaml

from boxwright.doctor import Log, signatures
from boxwright.doctor.matcher import find
from boxwright.doctor.template import Match

ALL = signatures()
TEXTS = {one.id: one for one in ALL if one.texts}
NEAR = {
    name: lines
    for path in sorted((Path(__file__).parent / "near_misses").glob("*.yml"))
    for name, lines in yaml.safe_load(path.read_text(encoding="utf-8")).items()
}
LINES = [(name, line) for name, lines in NEAR.items() for line in lines]


@dataclass(frozen=True)
class Word:
    """A text that was loosened to one word: `.*word.*`."""

    anchor: str
    names = frozenset()

    def match(self, line):
        place = line.find(self.anchor)
        return Match({}, place, place + len(self.anchor), self.anchor) if place >= 0 else None


def claims(signature, line):
    """Whether a signature claims a line for itself, at its own severity, as in a whole diagnosis."""
    known = [signature if one.id == signature.id else one for one in ALL]
    return any(
        one.signature.id == signature.id and one.severity == signature.severity
        for one in find(Log("log", line.encode()), known)
    )


def longest(text):
    return max(re.findall(r"[A-Za-z_]{3,}", text.anchor), key=len)


def test_every_signature_has_near_misses():
    assert set(NEAR) == set(TEXTS)
    assert all(NEAR.values())


@pytest.mark.parametrize("name", NEAR)
def test_a_near_miss_is_not_claimed(name):
    assert [line for line in NEAR[name] if claims(TEXTS[name], line)] == []


@pytest.mark.parametrize("signature", TEXTS.values(), ids=TEXTS)
def test_near_misses_tell_a_loosened_signature(signature):
    """Of each of its texts only the longest word is left: one of the near misses must then be claimed."""
    for text in signature.texts:
        loose = replace(signature, texts=(Word(longest(text)),), only={}, never={})
        assert any(claims(loose, line) for line in NEAR[signature.id]), f"{longest(text)} ({text.text})"


@pytest.mark.parametrize("signature", TEXTS.values(), ids=TEXTS)
def test_an_example_is_found_in_a_log(signature):
    """As it stands in a file, where levels and stamps are taken off before it is looked for."""
    for line in signature.example:
        assert signature.id in [one.signature.id for one in find(Log("log", line.encode()), ALL)], line
