"""Texts that came from elsewhere, made fit to print."""

from __future__ import annotations


def printable(text: str) -> str:
    """The text with everything that a terminal would obey, or not show, written as an escape."""
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
