"""vLLM: the command and the environment of a deployment, for the release in its image."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from boxwright.catalog import Drafter, ModelEntry, OptionTable
from boxwright.engines.command import MODEL_PATH, Command, OptionProblem
from boxwright.engines.settings import Settings, newer
from boxwright.engines.vllm_names import spelling
from boxwright.engines.vllm_options import Checked, Checker, merged, unsafe
from boxwright.spec.box import Deployment

#: Where the container has the draft model's directory.
DRAFTER_PATH = "/drafter"
#: The declared names of KV formats that the engine calls otherwise.
_KV_NAMES = {"bf16": "bfloat16", "fp16": "float16"}
#: Variables that every engine gets: nothing is fetched or reported once the weights are here.
QUIET = {"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1"}
#: The first release that chooses a context by itself, and the first with an option for the attention backend.
AUTO_CONTEXT_SINCE = "0.14.1"
BACKEND_OPTION_SINCE = "0.13.0"


@dataclass(frozen=True)
class Request:
    """What a command is made of.

    context: tokens, None to let the engine choose. peer_to_peer: between the cards.
    """

    deployment: Deployment
    settings: Settings
    entry: ModelEntry | None
    drafter: Drafter | None
    table: OptionTable
    context: int | None
    peer_to_peer: bool


def command(request: Request) -> Command:
    """The command for the release, with only options that it has."""
    deployment, settings = request.deployment, request.settings
    checker = Checker(request.table, settings.release, settings.exact)
    own = _Writer(checker)
    own.write("", "served-model-name", deployment.name)
    _context(own, request)
    own.write("concurrency", "max-num-seqs", str(settings.concurrency))
    own.write("max_batched_tokens", "max-num-batched-tokens", str(settings.batched_tokens))
    if settings.tensor_parallel > 1:
        own.write("tensor_parallel", "tensor-parallel-size", str(settings.tensor_parallel))
    if settings.pipeline_parallel > 1:
        own.write("pipeline_parallel", "pipeline-parallel-size", str(settings.pipeline_parallel))
    if settings.pool_bytes is not None:
        own.write("kv_cache_memory_bytes", "kv-cache-memory-bytes", str(settings.pool_bytes))
    else:
        own.write("gpu_memory_utilization", "gpu-memory-utilization", f"{settings.utilization:g}")
    if settings.kv_format != "auto":
        own.write("kv_cache", "kv-cache-dtype", _KV_NAMES.get(settings.kv_format, settings.kv_format))
    _caching(own, request)
    _speculation(own, request)
    _parsers(own, request)
    extra, env = _extra(checker, request)
    copies = request.peer_to_peer or deployment.env.get("NCCL_P2P_DISABLE") == "0"
    if not copies and settings.tensor_parallel > 1 and "--disable-custom-all-reduce" not in extra.argv:
        own.switch("disable-custom-all-reduce")
    argv = ("vllm", "serve", MODEL_PATH, *own.argv, *extra.argv)
    return Command(argv, env.env, (*own.problems, *merged((extra, env))))


class _Writer:
    """The plan's own options, checked like everybody's."""

    def __init__(self, checker: Checker) -> None:
        self._checker = checker
        self.argv: list[str] = []
        self.problems: list[OptionProblem] = []

    def write(self, key: str, option: str, value: str) -> None:
        """An option with its value; what the release does not take becomes a problem of the declared key."""
        known = self._checker.table.option(option, self._checker.release)
        if known is None:
            have = self._checker.table.exists_in(option)
            since = f"since vLLM {have[0]}" if have else "in no release of vLLM"
            self._refuse(
                key,
                "option-not-yet",
                f"{key} needs the option {option}, which exists {since}; the "
                f"image has {self._checker.release}",
                (f"an image of vLLM {have[0]} or newer" if have else "another image", f"leave {key} out"),
            )
            return
        if known.choices and not known.many and value not in known.choices:
            self._refuse(
                key,
                "option-value",
                f"vLLM {self._checker.release} knows no {option} {value}",
                ("one of " + ", ".join(known.choices),),
            )
            return
        harm = unsafe(value)
        if harm:
            self._refuse(
                key or "name", "option-value", f"the value {value[:60]!r} {harm}", ("write it plainly",)
            )
            return
        self.argv += [f"--{option}", value]

    def switch(self, option: str) -> None:
        """An option without a value, left out where the release has none."""
        if self._checker.table.option(option, self._checker.release):
            self.argv.append(f"--{option}")

    def _refuse(self, key: str, rule: str, message: str, fix: tuple[str, ...]) -> None:
        self.problems.append(OptionProblem(rule, key, message, fix, sure=self._checker.exact))


def _context(own: _Writer, request: Request) -> None:
    if request.context is not None:
        own.write("context", "max-model-len", str(request.context))
    elif newer(request.settings.release, AUTO_CONTEXT_SINCE):
        own.write("context", "max-model-len", "auto")


def _caching(own: _Writer, request: Request) -> None:
    if request.deployment.prefix_caching is not None:
        own.switch(
            "enable-prefix-caching" if request.deployment.prefix_caching else "no-enable-prefix-caching"
        )


def _speculation(own: _Writer, request: Request) -> None:
    settings = request.settings
    if settings.draft_method == "none" or not settings.draft_tokens:
        return
    config: dict[str, object] = {
        "method": "dflash" if settings.draft_method == "dflash2" else settings.draft_method
    }
    if settings.draft_method == "dflash2":
        config["model"] = DRAFTER_PATH
    if settings.draft_method == "ngram":
        config |= {"prompt_lookup_max": 4, "prompt_lookup_min": 2}
    config["num_speculative_tokens"] = settings.draft_tokens
    own.write("speculative", "speculative-config", json.dumps(config, separators=(",", ":")))


def _parsers(own: _Writer, request: Request) -> None:
    entry, given = request.entry, {str(name).replace("_", "-") for name in request.deployment.extra_args}
    if entry is None:
        return
    tool = entry.tool_parser(request.settings.release)
    if tool and "tool-call-parser" not in given:
        own.switch("enable-auto-tool-choice")
        own.write("", "tool-call-parser", tool)
    if entry.reasoning_parser and "reasoning-parser" not in given:
        own.write("", "reasoning-parser", entry.reasoning_parser)


def _extra(checker: Checker, request: Request) -> tuple[Checked, Checked]:
    """extra_args and env, with the attention backend by whichever way the release has."""
    options = dict(request.deployment.extra_args)
    variables: dict[str, str] = dict(QUIET)
    if not newer(request.settings.release, BACKEND_OPTION_SINCE):
        backend = _take(options, "attention-backend")
        if isinstance(backend, str):
            variables["VLLM_ATTENTION_BACKEND"] = backend
    if not request.peer_to_peer and request.settings.tensor_parallel > 1:
        variables["NCCL_P2P_DISABLE"] = "1"
    variables |= {str(name): str(value) for name, value in request.deployment.env.items()}
    return checker.options(options), checker.variables(variables)


def _take(options: dict[str, object], wanted: str) -> object:
    name = next((name for name in options if spelling(name) == wanted), None)
    return options.pop(name) if name is not None else None


def backend(deployment: Deployment, env: Mapping[str, str]) -> str | None:
    """The attention backend that a deployment names: by the option, in attention-config, or by the "
    "variable."""
    for name, value in deployment.extra_args.items():
        option, _, key = str(name).lstrip("-").partition(".")
        option = spelling(option)
        if option == "attention-config" and not key:
            value = _mapping(value).get("backend")
        elif option != "attention-backend" and (option, key) != ("attention-config", "backend"):
            continue
        if isinstance(value, str) and value:
            return value.upper()
    named = env.get("VLLM_ATTENTION_BACKEND")
    return named.upper() if named else None


def _mapping(value: object) -> Mapping[object, object]:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return {}
    return value if isinstance(value, Mapping) else {}
