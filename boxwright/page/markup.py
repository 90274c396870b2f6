"""HTML out of values: what is no markup already is escaped, whatever it is."""

from __future__ import annotations

from html import escape

#: Elements that hold nothing; the shapes of a drawing have to say so themselves.
VOID = frozenset({"meta", "rect", "line", "br"})


class Markup(str):
    """A text that is HTML, made by this module."""


def tag(element: str, /, *children: object, **attributes: object) -> Markup:
    """An element. Attributes: `class_` is class, `_` in names is `-`; None leaves one out."""
    said = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    inner = join(*children)
    return Markup(f"<{element}{said}/>" if element in VOID else f"<{element}{said}>{inner}</{element}>")


def join(*children: object) -> Markup:
    """Children one behind the other; lists are taken apart, None is nothing."""
    parts: list[str] = []
    for child in children:
        if isinstance(child, (list, tuple)):
            parts.append(join(*child))
        elif child is not None:
            parts.append(child if isinstance(child, Markup) else escape(_visible(str(child))))
    return Markup("".join(parts))


def _visible(text: str) -> str:
    """What turns the direction of writing, or shows as nothing, written as an escape."""
    return "".join(one if one.isprintable() or one in "\n\t" else repr(one)[1:-1] for one in text)
