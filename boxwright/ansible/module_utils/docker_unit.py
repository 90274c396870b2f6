"""The command line that systemd gives the Docker daemon: its options, and which file sets each of them."""

from __future__ import annotations

import re
import shlex
from typing import Any, Dict, Iterator, List, NamedTuple, Tuple

from ansible.module_utils.command import Result, read, run

UNIT = "docker.service"
DEFAULT_CONFIG = "/etc/docker/daemon.json"
_SHOWN = "ExecStart,FragmentPath,DropInPaths,Environment,EnvironmentFiles"
_WORD = re.compile(r"\$(?:\{(?P<braced>\w+)\}|(?P<plain>\w+))")
#: Options whose setting in daemon.json has another name: lists are plural there.
_KEYS = {
    "allow-nondistributable-artifact": "allow-nondistributable-artifacts",
    "authorization-plugin": "authorization-plugins",
    "cdi-spec-dir": "cdi-spec-dirs",
    "default-address-pool": "default-address-pools",
    "default-network-opt": "default-network-opts",
    "default-ulimit": "default-ulimits",
    "dns-opt": "dns-opts",
    "exec-opt": "exec-opts",
    "graph": "data-root",
    "host": "hosts",
    "insecure-registry": "insecure-registries",
    "label": "labels",
    "log-opt": "log-opts",
    "node-generic-resource": "node-generic-resources",
    "registry-mirror": "registry-mirrors",
    "storage-opt": "storage-opts",
}
_SHORT = {
    "D": "debug",
    "G": "group",
    "H": "hosts",
    "b": "bridge",
    "g": "data-root",
    "l": "log-level",
    "p": "pidfile",
    "s": "storage-driver",
}


class Clash(NamedTuple):
    """A setting that stands in the file and on the command line; Docker starts with one of the two only.

    flag: as written; place: `file:line` where it is set, "" where that cannot be told.
    """

    key: str
    flag: str
    place: str

    def __str__(self) -> str:
        return "%s, which %s sets too%s" % (self.key, self.flag, " in " + self.place if self.place else "")


class DaemonUnit(NamedTuple):
    """The daemon's unit. options: the words after the program's name, variables put in.

    files: those that make it up, the one whose word counts first: drop-ins, unit, files of variables.
    """

    options: List[str]
    files: List[str]

    @property
    def config_path(self) -> str:
        """Which file the unit has the daemon read."""
        for place, word in enumerate(self.options):
            name, equals, value = word.partition("=")
            if name == "--config-file":
                return value if equals else "".join(self.options[place + 1 : place + 2]) or DEFAULT_CONFIG
        return DEFAULT_CONFIG

    @property
    def others(self) -> List[str]:
        """The options without the one that names the file."""
        kept, skip = [], False
        for word in self.options:
            if skip or word.startswith("--config-file"):
                skip = word == "--config-file"
                continue
            kept.append(word)
        return kept

    def clashes(self, config: Dict[str, Any]) -> List[Clash]:
        """What is set in both places, as the daemon compares them."""
        return [
            Clash(key, flag, self._place(flag))
            for key, flag in dict(_settings(self.others)).items()
            if key in config
        ]

    def _place(self, flag: str) -> str:
        pattern = re.compile(r"(?<![\w-])%s(?![\w-])" % re.escape(flag))
        for path in self.files:
            for number, line in enumerate((read(path) or "").splitlines(), start=1):
                if not line.lstrip().startswith(("#", ";")) and pattern.search(line):
                    return "%s:%d" % (path, number)
        return ""


def look() -> DaemonUnit:
    """The unit as systemd has it now; without options where there is none."""
    done: Result = run(["systemctl", "show", "--property", _SHOWN, UNIT])
    lines = [] if done.rc else done.stdout.splitlines()
    shown = [tuple(line.partition("=")[::2]) for line in lines if "=" in line]
    argv = re.search(r"argv\[\]=(?P<argv>.*?) ; ", _value(shown, "ExecStart"))
    tables = [
        value.partition(" (ignore_errors=")[0]
        for name, value in shown
        if name == "EnvironmentFiles" and value
    ]
    variables: Dict[str, str] = {}
    for word in _words(_value(shown, "Environment")):
        variables.update([word.partition("=")[::2]])
    for path in tables:
        variables.update(_assignments(read(path) or ""))
    words = (
        [one for word in _words(argv.group("argv"))[1:] for one in _expanded(word, variables)] if argv else []
    )
    drop_ins = list(reversed(_words(_value(shown, "DropInPaths"))))
    return DaemonUnit(words, [*drop_ins, *filter(None, [_value(shown, "FragmentPath")]), *tables])


def _value(shown: List[Tuple[str, ...]], name: str) -> str:
    return next((pair[1] for pair in shown if pair[0] == name), "")


def _words(text: str) -> List[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


def _assignments(text: str) -> Iterator[Tuple[str, str]]:
    for line in text.splitlines():
        name, equals, value = line.strip().partition("=")
        if equals and re.fullmatch(r"\w+", name):
            yield name, " ".join(_words(value)) if value[:1] in "\"'" else value.strip()


def _expanded(word: str, variables: Dict[str, str]) -> List[str]:
    """A word with its variables: `$NAME` alone becomes several words, `${NAME}` stays one."""
    found = _WORD.fullmatch(word)
    if found and found.group("plain"):
        return _words(variables.get(found.group("plain"), ""))
    return [_WORD.sub(lambda one: variables.get(one.group("braced") or one.group("plain"), ""), word)]


def _settings(options: List[str]) -> Iterator[Tuple[str, str]]:
    """Setting and flag of each option. Runtimes may stand in both places and are none of them."""
    for word in options:
        if word.startswith("--"):
            flag = word.partition("=")[0]
            name = flag[2:]
            yield _KEYS.get(name, name), flag
        elif word.startswith("-") and word[1:2] in _SHORT:
            yield _SHORT[word[1]], word[:2]
