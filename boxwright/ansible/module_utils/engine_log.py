"""How far the start of an engine has come, by its log. Why one ended is told by boxwright.doctor."""

from __future__ import annotations

import re
from typing import Iterable, Optional, Sequence, Tuple

from ansible.module_utils.log_lines import parse

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
_SHARDS = re.compile(r"checkpoint shards:.*\| *(?P<done>\d+)/(?P<total>\d+)")


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
