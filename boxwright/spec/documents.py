"""YAML files of an inventory, composed but not yet merged, with everything that is wrong in their form."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

from boxwright.spec.places import MERGE_TAG, line_of, shown_path
from boxwright.spec.problem import Problem
from boxwright.spec.suggestions import nearest

YAML_SUFFIXES = (".yml", ".yaml", ".json")
VAULT_HEADER = "$ANSIBLE_VAULT;"
_STANDARD = "tag:yaml.org,2002:"
_TAGS = {
    f"{_STANDARD}{kind}"
    for kind in (
        "str",
        "int",
        "float",
        "bool",
        "null",
        "seq",
        "map",
        "timestamp",
        "binary",
        "set",
        "omap",
        "pairs",
        "merge",
        "value",
    )
}
_ANSIBLE_TAGS = {"!vault", "!vault-encrypted", "!unsafe"}
#: Kinds of scalars that not every text is one of.
_KINDS = {"int": "whole number", "float": "number", "binary": "binary value (base64)"}
_ALIAS = "found undefined alias"
#: Aliases can make a small file stand for more values than any memory holds.
_MOST_VALUES = 200_000


@dataclass(frozen=True)
class Document:
    """A file's content. root: None for an empty file. broken: what it says cannot be relied on."""

    file: Path
    root: yaml.Node | None
    problems: tuple[Problem, ...] = ()
    broken: bool = False
    encrypted: bool = False


def parse(file: Path, text: str, *, encrypted: bool = False) -> Document:
    """Compose a file's text and find what is wrong in its form: syntax, repeated keys, tags, aliases."""
    try:
        root = _composed(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        what = ", ".join(part for part in (error.context, error.problem) if part)
        if _ALIAS in what:
            # Not its name: a password may begin with `*`.
            what = "an alias (*…) of what is nowhere; a text that begins with * needs quotation marks"
        last = max(1, text.rstrip("\n").count("\n") + 1)
        return failed(
            file,
            min(mark.line + 1, last) if mark else None,
            f"not valid YAML: {what}" + (f" (column {mark.column + 1})" if mark else ""),
        )
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1 if isinstance(error.position, int) else None
        return failed(file, line, f"not valid YAML: character U+{ord_of(error):04X} is not allowed")
    except RecursionError:
        return failed(file, None, "not usable YAML: nested too deeply")
    problems = list(_form(file, root)) if root is not None else []
    broken = any(fatal for fatal, _ in problems)
    return Document(file, root, tuple(problem for _, problem in problems), broken, encrypted)


def _composed(text: str) -> yaml.Node | None:
    """The text as nodes: by libyaml, as Ansible reads it, and where that fails by PyYAML, which tells why."""
    if not hasattr(yaml, "CSafeLoader"):
        return yaml.compose(text, Loader=yaml.SafeLoader)
    try:
        # What was decrypted is a str of Ansible's own, and libyaml takes none but Python's.
        return yaml.compose(str(text), Loader=yaml.CSafeLoader)
    except yaml.YAMLError as error:
        yaml.compose(text, Loader=yaml.SafeLoader)
        raise error


def failed(file: Path, line: int | None, message: str, allowed: str = "") -> Document:
    """A document that could not be read, with the reason."""
    problem = Problem(shown_path(file), line, None, "", "", message, allowed)
    return Document(file, None, (problem,), broken=True)


def ord_of(error: yaml.reader.ReaderError) -> int:
    """The character that a reader error is about, as a number."""
    character = error.character
    return character if isinstance(character, int) else ord(character[:1] or "\0")


def _form(file: Path, root: yaml.Node) -> Iterator[tuple[bool, Problem]]:
    """Mistakes of form with whether they are fatal."""

    def problem(node: yaml.Node, message: str, variable: str = "", allowed: str = "") -> Problem:
        return Problem(shown_path(file), line_of(node), None, variable, "", message, allowed)

    seen: set[int] = set()
    for node in _nodes(root):
        if id(node) in seen:
            continue
        seen.add(id(node))
        if node.tag not in _TAGS | _ANSIBLE_TAGS:
            yield (
                True,
                problem(
                    node,
                    f"{_tag_told(node.tag)} is not known",
                    allowed="plain values, !vault, !unsafe; a text that begins with ! needs quotation marks",
                ),
            )
        elif isinstance(node, yaml.ScalarNode):
            reason = _unreadable(node)
            if reason:
                yield True, problem(node, f"not usable YAML: {reason}")
        elif isinstance(node, yaml.MappingNode):
            for fatal, key, message in _keys(node):
                yield fatal, problem(key, message, str(key.value) if isinstance(key, yaml.ScalarNode) else "")
    if _size(root, {}, set()) > _MOST_VALUES:
        yield True, problem(root, "not usable YAML: aliases refer to themselves, or stand for too much")


def _tag_told(tag: str) -> str:
    """A tag as a message names it; not one that may be a password that begins with `!`."""
    short = tag.replace(_STANDARD, "!!")
    known = short.startswith(("!!", "tag:")) or nearest(short, _ANSIBLE_TAGS) is not None
    return f"the tag {short}" if known else "its tag (a word that begins with !)"


def _nodes(root: yaml.Node) -> Iterator[yaml.Node]:
    pending, seen = [root], {id(root)}
    while pending:
        node = pending.pop()
        yield node
        inner: list[yaml.Node] = []
        if isinstance(node, yaml.MappingNode):
            inner = [part for pair in node.value for part in pair]
        elif isinstance(node, yaml.SequenceNode):
            inner = list(node.value)
        for part in inner:
            if id(part) not in seen:
                seen.add(id(part))
                pending.append(part)


def _keys(node: yaml.MappingNode) -> Iterator[tuple[bool, yaml.Node, str]]:
    first: dict[tuple[str, str], yaml.Node] = {}
    for key, value in node.value:
        if not isinstance(key, yaml.ScalarNode):
            yield True, key, "not usable YAML: a key must be a plain word, not a list or mapping"
            continue
        if key.tag == MERGE_TAG:
            sources = value.value if isinstance(value, yaml.SequenceNode) else [value]
            if not all(isinstance(source, yaml.MappingNode) for source in sources):
                yield True, key, "not usable YAML: `<<` merges mappings only"
            continue
        before = first.setdefault((key.tag, key.value), key)
        if before is not key:
            yield (
                False,
                key,
                (
                    f"is given twice, on line {line_of(before)} and on line {line_of(key)}; "
                    "only one of them can count"
                ),
            )


def _unreadable(node: yaml.ScalarNode) -> str | None:
    """Why a scalar cannot become a value: a month 13, a number beyond what Python reads."""
    kind = node.tag.removeprefix(_STANDARD)
    if kind != "timestamp" and kind not in _KINDS:
        return None
    loader = yaml.SafeLoader("")
    try:
        loader.construct_object(node)
    except (ValueError, OverflowError, yaml.YAMLError, KeyError) as error:
        if kind == "timestamp":
            return f"{node.value[:40]}: {str(error).splitlines()[0][:120]}"
        # Not the value: a password that is all digits is a number to YAML.
        return (
            f"a value of {len(node.value)} characters makes no {_KINDS[kind]}; a text needs quotation marks"
        )
    return None


def _size(node: yaml.Node, known: dict[int, int], above: set[int]) -> int:
    """Number of values that a node stands for once aliases are followed; more than allowed for a cycle."""
    if id(node) in known:
        return known[id(node)]
    if id(node) in above:
        return _MOST_VALUES + 1
    inner: list[yaml.Node] = []
    if isinstance(node, yaml.MappingNode):
        inner = [part for pair in node.value for part in pair]
    elif isinstance(node, yaml.SequenceNode):
        inner = list(node.value)
    above.add(id(node))
    size = 1
    for part in inner:
        size += _size(part, known, above)
        if size > _MOST_VALUES:
            break
    above.discard(id(node))
    known[id(node)] = size
    return size
