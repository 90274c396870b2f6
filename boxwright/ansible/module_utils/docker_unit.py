"""The command line that systemd gives the Docker daemon: its options, and which file sets each of them."""

from __future__ import annotations

import glob
import os
import re
import shlex
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Tuple

from ansible.module_utils import systemd_texts
from ansible.module_utils.command import Result, read, run

UNIT = "docker.service"
DEFAULT_CONFIG = "/etc/docker/daemon.json"
PROGRAM = "dockerd"
#: Where a running daemon's own command line is; a test has its own.
PROC = "/proc"
_SHOWN = "ExecStart,FragmentPath,DropInPaths,Environment,EnvironmentFiles,MainPID"
_VARIABLE = re.compile(r"\$(?:\{(?P<braced>\w+)\}|(?P<plain>\w+))")
#: Options whose setting in daemon.json has another name: lists are plural there.
_KEYS = {
    "authorization-plugin": "authorization-plugins",
    "cdi-spec-dir": "cdi-spec-dirs",
    "cluster-store-opt": "cluster-store-opts",
    "default-address-pool": "default-address-pools",
    "default-network-opt": "default-network-opts",
    "default-ulimit": "default-ulimits",
    "dns-opt": "dns-opts",
    "exec-opt": "exec-opts",
    "feature": "features",
    "graph": "data-root",
    "host": "hosts",
    "host-gateway-ip": "host-gateway-ips",
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
#: Short options without a value, behind which another may stand in the same word.
_SWITCHES = "Dv"
#: Mappings of the file that are one setting each; of all others the daemon compares what is in them
#: (moby, daemon/config, flatOptions), so that `proxies.http-proxy` clashes with --http-proxy.
_WHOLE = frozenset(
    (
        "builder",
        "cluster-store-opts",
        "default-network-opts",
        "default-ulimits",
        "features",
        "log-opts",
        "runtimes",
    )
)


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
        """Which file the unit has the daemon read: the last that it names."""
        found = DEFAULT_CONFIG
        for place, word in enumerate(self.options):
            name, equals, value = word.partition("=")
            if name == "--config-file":
                found = value if equals else "".join(self.options[place + 1 : place + 2]) or DEFAULT_CONFIG
        return found

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
        keys = dict(_keys(config))
        return [
            Clash(keys[name], flag, self._place(flag))
            for name, flag in dict(_settings(self.others)).items()
            if name in keys
        ]

    def _place(self, flag: str) -> str:
        end = r"(?![\w-])" if flag.startswith("--") else ""
        pattern = re.compile(r"(?<![\w-])%s%s" % (re.escape(flag), end))
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
    tables = [
        path
        for name, value in shown
        if name == "EnvironmentFiles" and value
        for path in _files(value.partition(" (ignore_errors=")[0])
    ]
    variables: Dict[str, str] = {}
    for word in _words(_value(shown, "Environment")):
        variables.update([word.partition("=")[::2]])
    for path in tables:
        variables.update(systemd_texts.variables(read(path) or ""))
    drop_ins = list(reversed(_words(_value(shown, "DropInPaths"))))
    return DaemonUnit(
        _options(shown, variables),
        [*drop_ins, *filter(None, [_value(shown, "FragmentPath")]), *tables],
    )


def _files(pattern: str) -> List[str]:
    """The files that a setting means: systemd takes wildcards there."""
    return sorted(glob.glob(pattern)) if glob.has_magic(pattern) else [pattern]


def _options(shown: List[Tuple[str, ...]], variables: Dict[str, str]) -> List[str]:
    """The daemon's options of a unit's command line; of the daemon that runs, where a script starts it."""
    argv = re.search(r"argv\[\]=(?P<argv>.*?) ; ", _value(shown, "ExecStart"))
    words = _words(argv.group("argv")) if argv else []
    path = re.search(r"path=(?P<path>\S+)", _value(shown, "ExecStart"))
    if words and path and os.path.basename(path.group("path")) == PROGRAM:
        return [one for word in words[1:] for one in _expanded(word, variables)]
    return _after_program(words, variables) or _running(_value(shown, "MainPID"))


def _after_program(words: List[str], variables: Dict[str, str]) -> List[str]:
    """The options behind the daemon's name in another program's arguments: those of env, nice, sh -c."""
    for place, word in enumerate(words):
        if os.path.basename(word) == PROGRAM:
            return [one for later in words[place + 1 :] for one in _expanded(later, variables)]
        if PROGRAM in word:
            lexer = shlex.shlex(_VARIABLE.sub(_put_in(variables), word), posix=True, punctuation_chars=True)
            lexer.whitespace_split = True
            try:
                inner = list(lexer)
            except ValueError:
                continue
            for start, one in enumerate(inner):
                if os.path.basename(one) == PROGRAM:
                    rest = inner[start + 1 :]
                    ends = [end for end, other in enumerate(rest) if set(other) <= set(";&|<>()")]
                    return rest[: ends[0]] if ends else rest
    return []


def _running(pid: str) -> List[str]:
    """The options of a unit's main process, if that is the daemon."""
    words = (read("%s/%s/cmdline" % (PROC, pid)) or "").split("\0") if pid.isdigit() and pid != "0" else []
    return [word for word in words[1:] if word] if os.path.basename("".join(words[:1])) == PROGRAM else []


def _value(shown: List[Tuple[str, ...]], name: str) -> str:
    return next((pair[1] for pair in shown if pair[0] == name), "")


def _words(text: str) -> List[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


def _put_in(variables: Dict[str, str]) -> Callable[["re.Match[str]"], str]:
    """What a variable stands for; an unknown one for nothing."""
    return lambda one: variables.get(one.group("braced") or one.group("plain"), "")


def _expanded(word: str, variables: Dict[str, str]) -> List[str]:
    """A word with its variables: `$NAME` alone becomes several words, `${NAME}` stays one."""
    found = _VARIABLE.fullmatch(word)
    if found and found.group("plain"):
        return _words(variables.get(found.group("plain"), ""))
    return [_VARIABLE.sub(_put_in(variables), word)]


def _keys(config: Dict[str, Any]) -> Iterator[Tuple[str, str]]:
    """What the daemon compares of the file, with where it stands in it."""
    for key, value in config.items():
        if isinstance(value, dict) and key not in _WHOLE:
            yield from ((name, "%s.%s" % (key, name)) for name in value)
        else:
            yield key, key


def _settings(options: List[str]) -> Iterator[Tuple[str, str]]:
    """Setting and flag of each option. Runtimes may stand in both places and are none of them."""
    for word in options:
        if word.startswith("--"):
            flag = word.partition("=")[0]
            name = flag[2:]
            yield _KEYS.get(name, name), flag
        elif word.startswith("-"):
            for letter in word[1:]:
                if letter in _SHORT:
                    yield _SHORT[letter], "-" + letter
                if letter not in _SWITCHES:
                    break
