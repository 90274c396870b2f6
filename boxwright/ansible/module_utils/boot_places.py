"""Places beside rc.local from which a system runs commands by itself: units, crontabs, rules of devices."""

from __future__ import annotations

import glob
import os
import re
from typing import Callable, Iterator, List, Optional, Set, Tuple

from ansible.module_utils import boot_scripts, systemd_texts
from ansible.module_utils.boot_scripts import Call, Reading
from ansible.module_utils.systemd_texts import Setting

#: Where systemd looks for units, a person's own place first.
FOLDERS = (
    "/etc/systemd/system",
    "/run/systemd/system",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
)
#: Settings whose commands run when a unit starts.
_STARTS = ("ExecStart", "ExecStartPre", "ExecStartPost", "ExecCondition")
#: What a unit's start may hang on beside itself.
_STARTERS = ("service", "timer", "path", "socket")
_LINKS = ("wants", "requires", "upholds")
_LINKED = ("WantedBy", "RequiredBy", "UpheldBy", "Alias")
SCRIPTS = (
    "/etc/cron.hourly/*",
    "/etc/cron.daily/*",
    "/etc/cron.weekly/*",
    "/etc/cron.monthly/*",
    "/etc/init.d/*",
    "/etc/rc.d/init.d/*",
)
_TIME = r"(?:@\w+|[\d*][^\s]*(?:\s+[\w*][^\s]*){4})\s+"


def _after(pattern: str) -> Callable[[str], Optional[str]]:
    """What a line of a file has run, None for a line that has nothing run."""
    compiled = re.compile(pattern)

    def command(line: str) -> Optional[str]:
        found = compiled.search(line.strip())
        return found.group(1) if found else None

    return command


#: Files of lines, with what of a line is a command.
TABLES: Tuple[Tuple[Tuple[str, ...], Callable[[str], Optional[str]]], ...] = (
    (("/etc/crontab", "/etc/cron.d/*"), _after("^%s\\S+\\s+(.*)$" % _TIME)),
    (("/var/spool/cron/crontabs/*", "/var/spool/cron/*"), _after("^%s(.*)$" % _TIME)),
    (("/etc/anacrontab",), _after(r"^[\d@]\S*\s+\d+\s+\S+\s+(.*)$")),
    (("/etc/udev/rules.d/*.rules",), _after(r'^[^#].*?RUN(?:\{program\})?\s*\+?:?=\s*"([^"]*)"')),
    (("/etc/modprobe.d/*.conf",), _after(r"^install\s+\S+\s+(.*)$")),
)


def calls(reading: Reading) -> Iterator[Call]:
    """What all of them set."""
    root = reading.root
    yield from _units(reading)
    for patterns, command_of in TABLES:
        for path in boot_scripts.files(root, patterns):
            for number, line in enumerate((boot_scripts.text_of(root + path) or "").split("\n"), 1):
                command = command_of(line)
                if command:
                    yield from reading.shell(path, command, at=(number, line.strip()))
    for path in boot_scripts.files(root, SCRIPTS):
        if os.access(root + path, os.X_OK):
            yield from reading.script(path)


def _units(reading: Reading) -> Iterator[Call]:
    root, linked = reading.root, _linked(reading.root)
    for place, folder in enumerate(FOLDERS):
        patterns = ["%s/%s" % (folder, end) for end in ("*.service", "*.service.d/*.conf")]
        for path in boot_scripts.files(root, patterns):
            # One of the same name in a place that comes before stands for it, also where it is masked there.
            others = [root + before + path[len(folder) :] for before in FOLDERS[:place]]
            if not any(map(os.path.lexists, others)):
                yield from _unit(reading, path, linked)


def _unit(reading: Reading, path: str, linked: Set[str]) -> Iterator[Call]:
    settings = list(systemd_texts.settings(boot_scripts.text_of(reading.root + path) or ""))
    commands = [one for one in settings if one.section == "Service" and one.name in _STARTS]
    if commands and _starts(path, settings, linked):
        for one in commands:
            shown = "%s=%s" % (one.name, one.value)
            yield from reading.shell(path, one.value.lstrip("-@+!:|"), at=(one.line, shown))


def _linked(root: str) -> Set[str]:
    """Names by which units are started with others; of an instance (`a@b.service`) its template's too."""
    places = [glob.escape(root) + folder for folder in FOLDERS]
    ends = ["*"] + ["*.%s/*" % link for link in _LINKS]
    paths = [path for place in places for end in ends for path in glob.glob("%s/%s" % (place, end))]
    names = {os.path.basename(path) for path in paths if os.path.islink(path)}
    return names | {re.sub("@[^.]*", "@", name) for name in names}


def _starts(path: str, settings: List[Setting], linked: Set[str]) -> bool:
    """Whether a unit starts by itself: one with an [Install] that nothing links to does not."""
    install = [one for one in settings if one.section == "Install" and one.name in _LINKED]
    if path.endswith(".conf") or not install:
        return True
    stem = os.path.basename(path)[: -len(".service")]
    names = {"%s.%s" % (stem, kind) for kind in _STARTERS}
    names.update(word for one in install if one.name == "Alias" for word in one.value.split())
    return bool(names & linked)
