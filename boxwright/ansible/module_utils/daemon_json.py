"""Docker's daemon.json: our settings put into other people's file, and taken out of it again.

A receipt remembers what was ours, and what stood in its place before: a setting that is declared no more goes
back to that, unless somebody has changed it since.
"""

from __future__ import annotations

import copy
import re
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple

from ansible.module_utils import exact_json

Path = Tuple[str, ...]
#: Lists of `name=value` in which a name may stand once.
NAMED = ("exec-opts", "storage-opts", "labels")


class ConfigError(Exception):
    """The file, or what is to be put into it, cannot be used; the text says where and why."""


class ShapeError(ConfigError):
    """A setting has another shape in the file than what is to go there. meant: the other."""

    def __init__(self, path: Path, value: Any, meant: str) -> None:
        super().__init__("%s is %s, not %s" % (".".join(path), exact_json.kind(value), meant))
        self.path, self.value, self.meant = path, value, meant

    def located(self, name: str, text: Optional[str], secret: bool = False) -> ConfigError:
        """The same with the file's name, the line, and the way out; without the value where it is secret."""
        lines = exact_json.read(text or "{}").lines
        value = "" if secret else ": " + " ".join(exact_json.write(self.value, "").split())[:60]
        return ConfigError(
            "%s:%d: %s is %s there%s. Put in its place is to be %s: make it that, or take it out; the file "
            "was left as it is"
            % (
                name,
                lines.get(self.path, 1),
                ".".join(self.path),
                exact_json.kind(self.value),
                value,
                self.meant,
            )
        )


class Entry(NamedTuple):
    """One setting of ours. value: what we set; before: what stood there, where had is true.

    item: the setting is one element of the list at path, and not the whole of it.
    """

    path: Path
    value: Any
    had: bool
    before: Any
    item: bool

    @property
    def key(self) -> Tuple[Path, Optional[str]]:
        """What makes two entries the same setting."""
        return self.path, _identity(self.path, self.value) if self.item else None


class Receipt(NamedTuple):
    """What in the file is ours. made: mappings and lists that were not there before us."""

    entries: List[Entry]
    made: List[Path]

    def to_json(self) -> Dict[str, Any]:
        """For keeping it."""
        entries = [dict(entry._asdict(), path=list(entry.path)) for entry in self.entries]
        return {"entries": entries, "made": [list(path) for path in self.made]}

    @classmethod
    def from_json(cls, document: Dict[str, Any]) -> Receipt:
        """From where it was kept."""
        entries = [Entry(**dict(entry, path=tuple(entry["path"]))) for entry in document["entries"]]
        return cls(entries, [tuple(path) for path in document["made"]])

    @classmethod
    def load(cls, text: Optional[str], name: str) -> Receipt:
        """From the text of its file; nothing is ours without one. Raises ConfigError."""
        if text is None:
            return cls([], [])
        try:
            receipt = cls.from_json(exact_json.read(text).value)
            if not all(_path(entry.path) and isinstance(entry.item, bool) for entry in receipt.entries):
                raise ValueError("an entry names no setting")
            if not all(isinstance(path, tuple) and all(map(_key, path)) for path in receipt.made):
                raise ValueError("a path is none")
        except (exact_json.NotExact, ValueError, KeyError, TypeError, AttributeError) as error:
            raise ConfigError(
                "%s, which keeps what of the settings is ours, cannot be read (%s): bring it back from a "
                "backup, or remove it - the settings then stay as if they were somebody else's"
                % (name, error)
            ) from error
        return receipt

    def text(self) -> str:
        """For its file."""
        found: str = exact_json.write(self.to_json(), " ")
        return found + "\n"


def _key(value: Any) -> bool:
    return isinstance(value, str)


def _path(path: Any) -> bool:
    return isinstance(path, tuple) and bool(path) and all(map(_key, path))


def parse(text: Optional[str], name: str) -> Dict[str, Any]:
    """The file's content; no file, an empty one and white space are no settings. Raises ConfigError."""
    try:
        found: Dict[str, Any] = exact_json.settings(text)
    except exact_json.NotExact as error:
        raise ConfigError(
            "%s:%d is not valid JSON that can be kept: %s (column %d). Mend that line; the file "
            "was left as it is" % (name, error.line, error, error.column)
        ) from error
    return found


def dump(document: Dict[str, Any], like: Optional[str]) -> str:
    """The file's text, indented as the old one was (four spaces where that cannot be told)."""
    found = re.search(r"^([ \t]+)\S", like or "", re.MULTILINE)
    written: str = exact_json.write(document, found.group(1) if found else "    ")
    return written + "\n"


def merge(
    current: Dict[str, Any], wanted: Dict[str, Any], receipt: Receipt
) -> Tuple[Dict[str, Any], Receipt]:
    """Put `wanted` into `current` and take out what the receipt has and `wanted` has not any more.

    Mappings are merged, lists get what they lack, everything else is replaced; other keys and the order of
    all of them stay. Returns the new content and the new receipt. Raises ConfigError where the shapes clash.
    """
    result, made = copy.deepcopy(current), list(receipt.made)
    leaves = [Entry(path, value, False, None, item) for path, value, item in _leaves(wanted)]
    meant = {leaf.key for leaf in leaves}
    for entry in reversed(receipt.entries):
        if entry.key not in meant:
            _take_out(result, entry, made)
    known = {entry.key: entry for entry in receipt.entries}
    entries = []
    for leaf in leaves:
        put = _put(result, leaf, made)
        before = known.get(leaf.key)
        if before is not None:
            # Ours already: what stood there before us stays what it was.
            entries.append(before._replace(value=leaf.value))
        elif put is not None:
            entries.append(put)
    return result, Receipt(entries, [path for path in made if _exists(result, path)])


def _leaves(wanted: Dict[str, Any], path: Path = ()) -> Iterator[Tuple[Path, Any, bool]]:
    """Every single setting: (path, value, whether it is an element of a list)."""
    for key, value in wanted.items():
        here = (*path, str(key))
        if isinstance(value, dict) and value:
            yield from _leaves(value, here)
        elif isinstance(value, list):
            for element in value:
                yield here, element, True
        else:
            yield here, value, False


def _identity(path: Path, element: Any) -> str:
    """What makes two elements of a list the same setting: its name where there are names, else all of it."""
    if path[-1] in NAMED and isinstance(element, str) and "=" in element:
        return element.partition("=")[0] + "="
    return str(exact_json.write(exact_json.ordered(element), ""))


def _put(document: Dict[str, Any], leaf: Entry, made: List[Path]) -> Optional[Entry]:
    """Have the setting in the document; the entry for the receipt, None where it was there already."""
    here = document
    for depth, key in enumerate(leaf.path[:-1], start=1):
        if key not in here:
            here[key] = {}
            made.append(leaf.path[:depth])
        here = _shaped(here[key], dict, leaf.path[:depth], "a mapping")
    key, value = leaf.path[-1], copy.deepcopy(leaf.value)
    if leaf.item:
        if key not in here:
            here[key] = []
            made.append(leaf.path)
        return _put_element(_shaped(here[key], list, leaf.path, "a list"), leaf)
    had, before = key in here, here.get(key)
    if isinstance(value, dict) and isinstance(before, dict):
        return None  # an empty mapping, merged into what is there
    if had and before == value and type(before) is type(value):
        return None
    if had and isinstance(before, (dict, list)) and before and not isinstance(value, type(before)):
        raise ShapeError(leaf.path, before, exact_json.kind(value))
    here[key] = value
    return leaf._replace(had=had, before=before)


def _put_element(elements: List[Any], leaf: Entry) -> Optional[Entry]:
    if leaf.value in elements:
        return None
    for place, element in enumerate(elements):
        if _identity(leaf.path, element) == _identity(leaf.path, leaf.value):
            elements[place] = copy.deepcopy(leaf.value)
            return leaf._replace(had=True, before=element)
    elements.append(copy.deepcopy(leaf.value))
    return leaf


def _take_out(document: Dict[str, Any], entry: Entry, made: List[Path]) -> None:
    """Undo a setting of ours, if it still is as we set it; what we made for it goes once it is empty."""
    parents: List[Dict[str, Any]] = []
    here: Any = document
    for key in entry.path:
        if not isinstance(here, dict) or key not in here:
            return
        parents.append(here)
        here = here[key]
    key = entry.path[-1]
    if entry.item:
        if not isinstance(here, list) or entry.value not in here:
            return
        place = here.index(entry.value)
        here[place : place + 1] = [copy.deepcopy(entry.before)] if entry.had else []
    elif here != entry.value:
        return
    elif entry.had:
        parents[-1][key] = copy.deepcopy(entry.before)
    else:
        del parents[-1][key]
    for depth in range(len(entry.path), 0, -1):
        parent, path = parents[depth - 1], entry.path[:depth]
        if path in made and parent.get(path[-1]) in ({}, []):
            del parent[path[-1]]


def _exists(document: Dict[str, Any], path: Path) -> bool:
    here: Any = document
    for key in path:
        if not isinstance(here, dict) or key not in here:
            return False
        here = here[key]
    return True


def _shaped(value: Any, shape: type, path: Path, meant: str) -> Any:
    if not isinstance(value, shape):
        raise ShapeError(path, value, meant)
    return value
