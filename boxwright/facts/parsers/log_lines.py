"""Lines of engine logs, as they come out of the journal, Docker, a file or somebody's paste."""

from __future__ import annotations

import re
from typing import NamedTuple, Optional

#: Colours and titles of a terminal; also as pastes have them, with the escape written out or lost.
_ANSI = re.compile(
    r"\x1b\][^\x07\x1b]{0,200}(?:\x07|\x1b\\)|\x1b[()][0-9A-B]"
    r"|(?:\x1b|\\x1b|\\033|\\u001b|\\e|\^\[|\u241b)\[[0-9;?]{0,20}[A-Za-z]|\[\d{1,3}(?:;\d{1,3}){0,5}m(?!\])"
)
#: A host and the program that speaks there, as syslog has it; without a number only where it is surely one.
_SPEAKER = r"[\w.-]{1,64} (?P<%s>[\w@.:/-]{1,80}\[\d{1,10}\]|kernel|systemd|boxwright-[\w.-]{1,80}): "
#: What journalctl, syslog, dmesg, Docker, Compose and Kubernetes put before a line.
_STAMP = re.compile(
    r"[ \t]{0,40}(?:"
    r"(?:<\d{1,3}>(?:1 )?)?(?:"
    r"(?:(?:[A-Z]\w{2} )?[A-Z]\w{2} [ \d]\d \d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?: \d{4})?|\d{9,11}\.\d{3,6})"
    r" (?:[\w.-]{1,64} (?P<program>[\w@.:/-]{1,80}(?:\[\d{1,10}\])?): )?"
    r"|(?:[A-Z]\w{2} )?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[\d.,:+Z-]{0,24}(?: (?!INFO |WARN )[A-Z]{3,4}(?= ))?"
    r" (?:(?:stdout|stderr) [FP] |" + _SPEAKER % "unit" + r")?)"
    r"|\[ {0,8}\d{1,10}\.\d{6}\] (?:" + _SPEAKER % "speaker" + r")?"
    r"|\[[A-Z]\w{2} [A-Z]\w{2} [ \d]\d \d\d:\d\d:\d\d \d{4}\] "
    r"|(?P<service>[A-Za-z][\w.-]{0,63}) {0,40}\| "
    r"|\[(?P<pod>pod/[\w./-]{1,200})\] "
    r")"
)
#: Prefixes that may stand before each other: Compose's before a stamp, a stamp before another.
_MOST_STAMPS = 4
_EPOCH = re.compile(r"^(\d{9,11}\.\d{3,6}) ")
_LEVEL = r"(?:DEBUG|TRACE|INFO|WARNING|WARN|ERROR|CRITICAL|FATAL)"
_PREFIX = re.compile(
    # Some releases stack the names of processes, the one that speaks last.
    r"^(?:\([\w.-]{1,64}(?:,? [\w=.:-]{1,64}){0,4}\) ?(?=\()){0,4}"
    r"(?:\((?P<process>[\w.-]{1,64}(?:,? [\w=.:-]{1,64}){0,4})\) ?|\[(?P<rank>rank\d{1,5})\]: ?)?"
    r"(?:(?P<level>" + _LEVEL + r"):? +"
    r"(?P<at>\d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d+)? )?(?:\[[^\]]*\] ?)?"
    # As Python's logging has it by itself, and as others shape it: WARNING:name:, - name - WARNING -.
    r"|(?P<named>" + _LEVEL + r"):[\w.]{1,80}:"
    r"|(?:- )?(?:[\w.]{1,80} - )?(?P<dashed>" + _LEVEL + r") - |\[(?P<boxed>" + _LEVEL + r")\] ?"
    r"|\[(?P<stamp>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)[^\]]*\] ?)?(?P<text>.*)$"
)
#: How C++ and Go programs tell a level; the text stays whole.
_LETTER = re.compile(r"^\[?(?P<letter>[IWEF])\d{3,4} \d\d:\d\d:\d\d")
_LETTERS = {"I": "INFO", "W": "WARNING", "E": "ERROR", "F": "CRITICAL"}
_FIELD = re.compile(r"(?:^|\s)level=\"?(?P<level>[a-z]{4,8})\b")
_SAME = {"TRACE": "DEBUG", "WARN": "WARNING", "FATAL": "CRITICAL", "PANIC": "CRITICAL"}
_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")


class Line(NamedTuple):
    """A log line without what stands before its message.

    process: the one that said it. level: None where not told. time: seconds since 1970, where the journal's
    short-unix format tells it. program: whose line it is by what stands before it: a program of a journal, a
    service of Compose's, a pod; empty where nothing does.
    """

    process: str
    level: Optional[str]
    text: str
    time: Optional[float] = None
    program: str = ""


def parse(line: str) -> Line:
    """Take the prefixes off: `Nov 29 10:00:00 box1 boxwright-q[1]: (EngineCore pid=12) ERROR … text`."""
    # Progress bars rewrite their line; what counts is what stood there last.
    line = line.rstrip("\n").rstrip("\r").rpartition("\r")[2]
    if "[" in line or "\x1b" in line:
        line = _ANSI.sub("", line)
    epoch = _EPOCH.match(line)
    speaker = said_by = ""
    for _ in range(_MOST_STAMPS):
        stamp = _STAMP.match(line)
        if stamp is None:
            break
        line = line[stamp.end() :]
        program = stamp.group("program") or stamp.group("unit") or stamp.group("speaker") or ""
        group = stamp.group("service") or stamp.group("pod")
        said_by = group or program.partition("[")[0] or said_by
        # A program without a number is no process: the kernel has many voices.
        speaker = group or (program if "[" in program else speaker)
    time = float(epoch.group(1)) if epoch else None
    found = _prefix(line)
    if found is None:
        return Line(speaker, None, line, time, said_by)
    text = found.group("text")
    told = found.group("level") or found.group("named") or found.group("dashed") or found.group("boxed")
    return Line(
        found.group("process") or found.group("rank") or speaker,
        _SAME.get(told, told) if told else _level_within(text),
        text,
        time,
        said_by,
    )


def _prefix(line: str) -> Optional["re.Match[str]"]:
    """What stands before the message. Of an indented line only what is sure to be no text of a program's."""
    found = _PREFIX.match(line)
    if line[:1] in (" ", "\t"):
        within = _PREFIX.match(line.lstrip())
        if within is not None and any(within.group(name) for name in ("process", "rank", "at", "stamp")):
            return within
    return found


def _level_within(text: str) -> Optional[str]:
    letter = _LETTER.match(text)
    if letter is not None:
        return _LETTERS[letter.group("letter")]
    field = _FIELD.search(text[:200]) if "level=" in text else None
    if field is None:
        return None
    told = field.group("level").upper()
    told = _SAME.get(told, told)
    return told if told in _LEVELS else None
