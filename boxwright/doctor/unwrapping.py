"""Lines as a program wrote them, out of what others put around them.

Docker's and the journal's JSON, marks of a quotation (`> `) and numbers of lines are taken off; how far lines
are indented stays. What a line tells of itself (process, level, stamps) is read by facts.parsers.log_lines.
"""

from __future__ import annotations

import json
import re
from array import array
from collections.abc import Mapping
from typing import Any

#: Something in a log that has to be looked at line by line.
_WRAPPED = re.compile(rb"^[ \t]*(?:>|\{ ?\"|\d{1,7}(?:[:.)|\-\t ]|$))|(?:stdout|stderr) P ", re.MULTILINE)
_QUOTED = re.compile(r"^[ \t]{0,3}(?:> ?)+")
_NUMBERED = re.compile(r"^[ \t]*(\d{1,7})(?=([:.)|\-\t ]|$))[:.)|\-]?")
#: A part of a long line, as Kubernetes' runtimes write it down: the next one of its stream goes on.
_PART = re.compile(r"^(\S+ (stdout|stderr)) ([FP]) ")
#: Keys under which structured logs hold what was said, the surest first: Docker, the journal, others.
_TEXTS = ("log", "MESSAGE", "message", "msg", "line")
_LEVELS = ("level", "levelname", "severity")
_MORE = ("exc_info", "exception", "traceback", "stack_trace", "stacktrace", "stack")
#: Longest line of JSON that is read, in characters.
_LONGEST = 1 << 20


def unwrapped(data: bytes) -> tuple[bytes, array[int] | None]:
    """The log's own lines, and the number in the data of each (None: they are the same)."""
    if not _WRAPPED.search(data):
        return data, None
    told: list[str] = []
    numbers = array("L")
    parts: dict[str, tuple[int, list[str]]] = {}
    for number, line in enumerate(data.decode("utf-8", "replace").split("\n"), 1):
        stream, before, text, whole = _said(_QUOTED.sub("", line, count=1))
        first, begun = parts.pop(stream, (number, [before]))
        begun.append(text if whole else text.removesuffix("\r"))
        if not whole:
            parts[stream] = (first, begun)
            continue
        for one in "".join(begun).split("\n"):
            told.append(one)
            numbers.append(first)
    for first, begun in parts.values():
        told.append("".join(begun))
        numbers.append(first)
    told = _without_numbers(told)
    same = all(place == number for place, number in enumerate(numbers, 1))
    return "\n".join(told).encode("utf-8", "replace"), None if same else numbers


def _said(line: str) -> tuple[str, str, str, bool]:
    """Which stream a line is of, what stands before its text, the text, and whether the line ends with it."""
    part = _PART.match(line)
    if part is not None:
        return part.group(2), part.group(1) + " F ", line[part.end() :], part.group(3) == "F"
    start = line.lstrip()
    if start.startswith("{") and start.rstrip().endswith("}") and len(line) <= _LONGEST:
        try:
            value = json.loads(start)
        except (ValueError, RecursionError):
            value = None
        text = _text(value) if isinstance(value, dict) else None
        if text is not None:
            # Docker cuts lines longer than 16 KiB, and leaves the end of the line to the last part.
            whole = "log" not in value or "stream" not in value or text.endswith("\n")
            return f"json {value.get('stream')}", "", text.removesuffix("\n").removesuffix("\r"), whole
    return "", "", line, True


def _text(value: Mapping[str, Any]) -> str | None:
    for key in _TEXTS:
        found = value.get(key)
        # The journal gives what holds colours as numbers.
        if isinstance(found, list) and all(isinstance(one, int) and 0 <= one < 256 for one in found):
            found = bytes(found).decode("utf-8", "replace")
        if isinstance(found, str):
            break
    else:
        return None
    level = next((value[key] for key in _LEVELS if isinstance(value.get(key), str)), "")
    more = [value[key] for key in _MORE if isinstance(value.get(key), str) and value[key].strip()]
    speaker = _speaker(value)
    said = "\n".join([f"{level.upper()}: {found}" if level else found, *more])
    return "\n".join(speaker + line for line in said.split("\n")) if speaker else said


def _speaker(value: Mapping[str, Any]) -> str:
    """What the journal writes before a line of a program (-o short-unix); nothing where it is none of its."""
    stamp, name = str(value.get("__REALTIME_TIMESTAMP")), value.get("SYSLOG_IDENTIFIER", value.get("_COMM"))
    if not (stamp.isascii() and stamp.isdigit() and len(stamp) in (15, 16, 17)) or not isinstance(name, str):
        return ""
    host, pid = _no_word(str(value.get("_HOSTNAME") or "host")), str(value.get("_PID", ""))
    number = f"[{pid}]" if pid.isascii() and pid.isdigit() and len(pid) <= 10 else ""
    return f"{stamp[:-6]}.{stamp[-6:]} {host[:64]} {_no_word(name)[:80]}{number}: "


def _no_word(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_@.:/-]", "_", name) or "_"


def _without_numbers(lines: list[str]) -> list[str]:
    """Lines without their numbers, where lines beside each other count on."""
    found = [_NUMBERED.match(line) for line in lines]

    def counts(place: int, other: int) -> bool:
        if not 0 <= place < len(lines) or not 0 <= other < len(lines):
            return False
        one, two = found[place], found[other]
        if one is None or two is None:
            return False
        step = int(two.group(1)) - int(one.group(1))
        # `grep -n` leaves lines out.
        gaps = {one.group(2), two.group(2)} <= {":", "-"}
        return step == 1 or (gaps and step > 0)

    return [
        line[match.end() :]
        if match is not None and (counts(place - 1, place) or counts(place, place + 1))
        else line
        for place, (line, match) in enumerate(zip(lines, found, strict=True))
    ]
