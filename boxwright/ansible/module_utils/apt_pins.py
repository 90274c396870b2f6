"""A group's apt preferences: tried before they are written, so that a refused change leaves no trace."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from typing import Iterator, Optional

from ansible.module_utils.command import read, write


class Pins:
    """A group's file /etc/apt/preferences.d/boxwright-held-NAME.pref. text: what it holds, or None."""

    def __init__(self, root: str, name: str) -> None:
        self.directory = "%s/etc/apt/preferences.d" % root
        self.name = "boxwright-held-%s.pref" % name
        self.path = self.directory + "/" + self.name
        self.text = read(self.path)

    @contextlib.contextmanager
    def tried(self, text: Optional[str]) -> "Iterator[Optional[str]]":
        """The directory for apt's Dir::Etc::PreferencesParts with `text` in it; None for the host's own."""
        if text == self.text:
            yield None
            return
        place = tempfile.mkdtemp(prefix="boxwright-pins-")
        try:
            for entry in os.listdir(self.directory) if os.path.isdir(self.directory) else []:
                if entry != self.name:
                    shutil.copy(os.path.join(self.directory, entry), place)
            if text is not None:
                write(os.path.join(place, self.name), text)
            yield place
        finally:
            shutil.rmtree(place, ignore_errors=True)

    def write(self, text: Optional[str]) -> None:
        """Make the file hold `text`, or be gone."""
        if text == self.text:
            return
        if text is None:
            os.unlink(self.path)
        else:
            write(self.path, text)
        self.text = text
