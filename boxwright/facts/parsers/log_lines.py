"""Lines of engine logs, as they come out of the journal, Docker, a file or somebody's paste."""

from __future__ import annotations

import re
from typing import NamedTuple, Optional

_ANSI = re.compile(r"\x1b\[[0-9;?]{0,20}[A-Za-z]")
#: What journalctl, Docker, Compose and Kubernetes put before a line.
_STAMP = re.compile(
    r"^(?:"
    r"(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d|\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[\d.,:+Z-]{0,24}"
    r"|\d{9,11}\.\d{3,6})"
    r" (?:[\w.-]{1,64} [\w@.:/-]{1,80}(?:\[\d{1,10}\])?: )?"
    r"|[\w.-]{1,64} {1,40}\| "
    r"|\[ {0,8}\d{1,10}\.\d{6}\] "
    r")"
)
_EPOCH = re.compile(r"^(\d{9,11}\.\d{3,6}) ")
_PREFIX = re.compile(
    # Some releases stack the names of processes, the one that speaks last.
    r"^(?:\([\w.-]{1,64}(?: [\w=.-]{1,64}){0,4}\) ?(?=\()){0,4}"
    r"(?:\((?P<process>[\w.-]{1,64}(?: [\w=.-]{1,64}){0,4})\) ?|\[(?P<rank>rank\d{1,5})\]: ?)?"
    r"(?:(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL):? +"
    r"(?:\d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d+)? )?(?:\[[^\]]*\] ?)?"
    r"|\[(?P<stamp>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)[^\]]*\] ?)?(?P<text>.*)$"
)


class Line(NamedTuple):
    """A log line without what stands before its message.

    process: the one that said it. level: None where not told. time: seconds since 1970, where the journal's
    short-unix format tells it.
    """

    process: str
    level: Optional[str]
    text: str
    time: Optional[float] = None


def parse(line: str) -> Line:
    """Take the prefixes off: `Nov 29 10:00:00 box1 boxwright-q[1]: (EngineCore pid=12) ERROR … text`."""
    # Progress bars rewrite their line; what counts is what stood there last.
    line = line.rstrip("\n").rstrip("\r").rpartition("\r")[2]
    if "\x1b" in line:
        line = _ANSI.sub("", line)
    epoch = _EPOCH.match(line)
    stamp = _STAMP.match(line)
    if stamp is not None:
        line = line[stamp.end() :]
    found = _PREFIX.match(line)
    time = float(epoch.group(1)) if epoch else None
    if found is None:
        return Line("", None, line, time)
    process = found.group("process") or found.group("rank") or ""
    return Line(process, found.group("level"), found.group("text"), time)
