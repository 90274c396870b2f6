"""What an engine's log says: how far its start has come, and the cause when it died."""

from __future__ import annotations

import re
from typing import Iterable, List, NamedTuple, Optional, Sequence, Tuple

#: Stages of a start in order, each with the line that begins it (vLLM 0.11 to 0.33, SGLang 0.5).
STAGES: Sequence[Tuple[str, "re.Pattern[str]"]] = (
    ("starting", re.compile(r"(?!)")),
    (
        "loading",
        re.compile(
            r"Initializing a V\d LLM engine|Starting to load model|Loading (safetensors|weights|model)"
            r"|Load weight begin"
        ),
    ),
    (
        "compiling",
        re.compile(
            r"Using cache directory: .*torch_compile_cache|Dynamo bytecode transform"
            r"|Compiling a graph|Cache the graph|Start compil|torch\.compile"
        ),
    ),
    (
        "capturing",
        re.compile(r"Capturing (CUDA|cuda) ?graph|Capture cuda graph|Capturing graphs|Profiling CUDA graph"),
    ),
    ("warming", re.compile(r"Warming up|Graph capturing finished|init engine \(profile")),
    ("listening", re.compile(r"Application startup complete|Uvicorn running on|The server is fired up")),
)
_PREFIX = re.compile(
    r"^(?:\((?P<process>[\w.-]+(?: [\w=.-]+)*)\) ?)?"
    r"(?:(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL):? +"
    r"(?:\d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d+)? )?(?:\[[^\]]*\] ?)?"
    r"|\[(?P<stamp>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)[^\]]*\] ?)?(?P<text>.*)$"
)
_SHARDS = re.compile(r"checkpoint shards:.*\| *(?P<done>\d+)/(?P<total>\d+)")
_TRACEBACK = "Traceback (most recent call last):"
_EXCEPTION = re.compile(r"^(?:[A-Za-z_]\w*\.)*(?P<name>[A-Z]\w*)(?:: (?P<message>.*))?$")
_CHAINED = re.compile(r"^(The above exception was the direct cause|During handling of the above exception)")
#: Exceptions that only say that another one happened elsewhere.
_WRAPPER = re.compile(
    r"Engine core initialization failed|WorkerProc initialization failed|Engine process failed to start"
    r"|EngineDeadError|EngineCore encountered an issue|^(SystemExit|KeyboardInterrupt|CancelledError)"
    r"|cancelled by|ChildFailedError|^EOFError$|^BrokenPipeError"
)
#: Lines that name a cause without a traceback, the surest first.
_PLAIN_CAUSES = (
    re.compile(r"^docker: "),
    re.compile(
        r"\berror: (unrecognized arguments|argument |ambiguous option|the following arguments|invalid choice)"
    ),
    re.compile(r"(not found|Permission denied|No such file or directory|Exec format error)$"),
    re.compile(
        r"died unexpectedly|exit code: -?\d+|Illegal instruction|Segmentation fault|core dumped|^Killed$"
    ),
    re.compile(r"(?i)out of memory|no space left on device"),
    re.compile(r"^no /dev/nvidia-uvm"),
)
#: What the unit's own calls of docker say when there is nothing to remove or to stop.
_NOISE = re.compile(r"^(Error response from daemon: No such container: boxwright-|boxwright-[\w.-]+$)")
_MOST_LINES = 8
_LONGEST = 600


class Line(NamedTuple):
    """A log line without the engine's prefix. process: the one that said it; level: None where not told."""

    process: str
    level: Optional[str]
    text: str


def parse(line: str) -> Line:
    """Take the prefix off a line: `(EngineCore pid=12) ERROR 11-29 10:00:00 [core.py:9] text`."""
    # Progress bars rewrite their line; what counts is what stood there last.
    line = line.rstrip("\n").rstrip("\r").rpartition("\r")[2]
    found = _PREFIX.match(line)
    if found is None:
        return Line("", None, line)
    return Line(found.group("process") or "", found.group("level"), found.group("text"))


class Stages:
    """Follows a start through its stages; never goes back to an earlier one."""

    def __init__(self) -> None:
        self._index = 0
        #: Parts of the weights that are loaded, and how many there are, while the engine says so.
        self.shards: Optional[Tuple[int, int]] = None

    @property
    def stage(self) -> str:
        """The stage that was reached."""
        return STAGES[self._index][0]

    def feed(self, lines: Iterable[str]) -> None:
        """Read further lines of the log."""
        for line in lines:
            text = parse(line).text
            for index in range(len(STAGES) - 1, self._index, -1):
                if STAGES[index][1].match(text):
                    self._index = index
                    break
            shards = _SHARDS.search(text)
            if shards:
                self.shards = (int(shards.group("done")), int(shards.group("total")))


class _Exception(NamedTuple):
    lines: Tuple[str, ...]
    chained: bool

    @property
    def wrapper(self) -> bool:
        return bool(_WRAPPER.search(self.lines[0]))


def root_cause(log: Iterable[str], last: int = 5) -> List[str]:
    """The lines that say why an engine ended; its `last` ones when nothing in it looks like a cause.

    vLLM's server process ends with "Engine core initialization failed. See root cause above": the cause is
    the first exception of another process, hundreds of lines earlier. Of exceptions raised from one another
    the last is what its author meant a person to read; the first is given beside it.
    """
    lines = [parse(line) for line in log]
    lines = [line for line in lines if line.text.strip() and not _NOISE.match(line.text)]
    chains = _chains(lines)
    for chain in chains:
        real = [exception for exception in chain if not exception.wrapper]
        if real:
            said = list(real[-1].lines)
            if real[0] is not real[-1]:
                said.append("raised from " + real[0].lines[0])
            return _short(said)
    for pattern in _PLAIN_CAUSES:
        found = [line.text for line in lines if pattern.search(line.text)]
        if found:
            return _short(found[:2])
    if chains:
        return _short(chains[0][-1].lines)
    errors = [line.text for line in lines if line.level in ("ERROR", "CRITICAL")]
    if errors:
        return _short(errors[:3])
    return _short([line.text for line in lines[-last:]]) if last else []


def _chains(lines: Sequence[Line]) -> List[List[_Exception]]:
    """Tracebacks in the order they began, those that were raised from one another together."""
    found: List[Tuple[int, List[_Exception]]] = []
    for process in dict.fromkeys(line.process for line in lines):
        own = [(place, line) for place, line in enumerate(lines) if line.process == process]
        position = 0
        while position < len(own):
            place, line = own[position]
            if not line.text.rstrip().endswith(_TRACEBACK):
                position += 1
                continue
            exception, position = _exception(own, position + 1)
            if exception is None:
                continue
            if exception.chained and found and found[-1][1][-1].lines:
                found[-1][1].append(exception)
            else:
                found.append((place, [exception]))
    return [chain for _, chain in sorted(found, key=lambda item: item[0])]


def _exception(own: Sequence[Tuple[int, Line]], position: int) -> Tuple[Optional[_Exception], int]:
    """The exception at the end of the traceback whose frames begin at `position`, and where to read on."""
    chained = any(_CHAINED.match(line.text) for _, line in own[max(0, position - 3) : position])
    while position < len(own) and own[position][1].text.startswith((" ", "\t")):
        position += 1
    if position == len(own) or not _EXCEPTION.match(own[position][1].text):
        return None, position
    first = own[position][1]
    said = [first.text]
    position += 1
    while position < len(own):
        line = own[position][1]
        if (
            line.level != first.level
            or _CHAINED.match(line.text)
            or _TRACEBACK in line.text
            or _EXCEPTION.match(line.text)
            or len(said) == _MOST_LINES
        ):
            break
        said.append(line.text)
        position += 1
    return _Exception(tuple(said), chained), position


def _short(lines: Iterable[str]) -> List[str]:
    return [line if len(line) <= _LONGEST else line[:_LONGEST] + " …" for line in list(lines)[:_MOST_LINES]]
