"""What the planner and the hosts need of an engine, and which engines there are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from boxwright.engines import sglang, vllm
from boxwright.engines.command import Command
from boxwright.engines.dialect import SGLANG, VLLM, Dialect
from boxwright.engines.request import Request


@dataclass(frozen=True)
class KeyWay:
    """How the engine gets the key that clients must send: never as an argument.

    variable: from the environment of its process, or option: from a file of options in YAML, which is named
    with file_option and made inside of the container.
    """

    variable: str | None = None
    option: str | None = None
    file_option: str | None = None


@dataclass(frozen=True)
class Probes:
    """What a host asks a running engine. drafts: names of its counters of drafted and accepted tokens, None
    where it has none.
    """

    health: str
    metrics: str
    drafts: tuple[str, str] | None


@dataclass(frozen=True)
class Engine:
    """An engine.

    exact_pool: the plan knows how it divides its memory; pool_line: begins the log line that tells it.
    context_since: the first release that chooses a context by itself. env: variables of every container of
    it, inside of which /cache is the one place to write. parse: Python that has the engine's own parser read
    the arguments that follow the program's name, and ends with 0 where it takes them, 2 where it does not.
    guard_option: loads a piece of middleware, for an engine whose own check of the key leaves paths open.
    """

    dialect: Dialect
    command: Callable[[Request], Command]
    key: KeyWay
    probes: Probes
    exact_pool: bool
    pool_line: str
    context_since: str
    env: Mapping[str, str] = field(default_factory=dict)
    parse: str = ""
    guard_option: str | None = None

    @property
    def title(self) -> str:
        """As messages name it."""
        return self.dialect.title

    def runtime(self) -> dict[str, Any]:
        """What a host must know to run and to ask it, as plain values."""
        key = {"variable": self.key.variable, "option": self.key.option, "file_option": self.key.file_option}
        return {
            "key": {name: value for name, value in key.items() if value},
            "env": dict(self.env),
            "parse": self.parse,
            "guard": self.guard_option,
            "health": self.probes.health,
            "metrics": self.probes.metrics,
            "drafts": list(self.probes.drafts) if self.probes.drafts else None,
        }


ENGINES: Mapping[str, Engine] = {
    "vllm": Engine(
        VLLM,
        vllm.command,
        KeyWay(variable="VLLM_API_KEY"),
        Probes(
            "/health",
            "/metrics",
            ("vllm:spec_decode_num_draft_tokens_total", "vllm:spec_decode_num_accepted_tokens_total"),
        ),
        exact_pool=True,
        pool_line="GPU KV cache size",
        context_since=vllm.AUTO_CONTEXT_SINCE,
        env={"VLLM_CACHE_ROOT": "/cache/vllm", "VLLM_NO_USAGE_STATS": "1"},
        parse=vllm.PARSE,
        guard_option="--middleware",
    ),
    "sglang": Engine(
        SGLANG,
        sglang.command,
        KeyWay(option="api-key", file_option="--config"),
        Probes("/health", "/metrics", None),
        exact_pool=False,
        pool_line="max_total_num_tokens=",
        context_since="0",
        parse=sglang.PARSE,
    ),
}


def of(name: str) -> Engine:
    """An engine by its name; vLLM for a name that is none, which a rule refuses."""
    return ENGINES.get(name, ENGINES["vllm"])
