"""vLLM: the command and the environment of a deployment, for the release in its image."""

from __future__ import annotations

import json
from collections.abc import Mapping

from boxwright.catalog.purpose import EMBEDDINGS, RERANKING, TEXT
from boxwright.engines.command import DRAFTER_PATH, MODEL_PATH, Command
from boxwright.engines.request import Request
from boxwright.engines.settings import newer
from boxwright.engines.vllm_names import spelling
from boxwright.engines.vllm_options import Checked, Checker, merged
from boxwright.engines.writer import Writer
from boxwright.spec.box import Deployment

#: The declared names of KV formats that the engine calls otherwise.
_KV_NAMES = {"bf16": "bfloat16", "fp16": "float16"}
#: The engine's own way to its options, with the server's start taken out (every release from 0.11).
PARSE = """\
import sys
from vllm.entrypoints.cli import main, serve
serve.ServeSubcommand.cmd = staticmethod(lambda args: sys.exit(0))
sys.argv = ["vllm", *sys.argv[1:]]
main.main()
"""
#: Variables that every engine gets: nothing is fetched or reported once the weights are here.
QUIET = {"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1"}
#: The first release that chooses a context by itself, and the first with an option for the attention backend.
AUTO_CONTEXT_SINCE = "0.14.1"
BACKEND_OPTION_SINCE = "0.13.0"
#: How long running requests may go on after SIGTERM, by the releases that can drain (since 0.18.1).
DRAIN = "shutdown-timeout"


def command(request: Request) -> Command:
    """The command for the release, with only options that it has."""
    deployment, settings = request.deployment, request.settings
    checker = Checker(request.table, settings.release, settings.exact)
    own = Writer(checker)
    own.write("", "served-model-name", deployment.name)
    _serving(own, request)
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
    _drain(own, request)
    extra, env = _extra(checker, request)
    if not request.reduces_by_copies and "--disable-custom-all-reduce" not in extra.argv:
        own.switch("disable-custom-all-reduce")
    argv = ("vllm", "serve", MODEL_PATH, *own.argv, *extra.argv)
    return Command(argv, env.env, (*own.problems, *merged((extra, env))))


#: What releases without the option `runner` call what a deployment serves.
_TASKS = {EMBEDDINGS: "embed", RERANKING: "score"}


def _serving(own: Writer, request: Request) -> None:
    """What it serves, where that is no text, by whichever way the release has (`--task` until 0.10)."""
    settings, entry = request.settings, request.entry
    if settings.serves == TEXT:
        return
    if request.table.option("runner", settings.release):
        own.write("serves", "runner", "pooling")
        if settings.convert:
            own.write("serves", "convert", settings.convert)
    else:
        own.write("serves", "task", _TASKS[settings.serves])
    given = {spelling(str(name).partition(".")[0]) for name in request.deployment.extra_args}
    if entry and entry.overrides and "hf-overrides" not in given:
        own.write("serves", "hf-overrides", json.dumps(entry.overrides, separators=(",", ":")))


def _context(own: Writer, request: Request) -> None:
    if request.context is not None:
        own.write("context", "max-model-len", str(request.context))
    elif newer(request.settings.release, AUTO_CONTEXT_SINCE) and not request.settings.encoder:
        own.write("context", "max-model-len", "auto")


def _caching(own: Writer, request: Request) -> None:
    if request.deployment.prefix_caching is not None:
        own.switch(
            "enable-prefix-caching" if request.deployment.prefix_caching else "no-enable-prefix-caching"
        )


def _speculation(own: Writer, request: Request) -> None:
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


def _parsers(own: Writer, request: Request) -> None:
    entry, given = request.entry, {str(name).replace("_", "-") for name in request.deployment.extra_args}
    if entry is None or request.settings.serves != TEXT:
        return
    tool = entry.tool_parser(request.settings.release)
    if tool and "tool-call-parser" not in given:
        own.switch("enable-auto-tool-choice")
        own.write("", "tool-call-parser", tool)
    if entry.reasoning_parser and "reasoning-parser" not in given:
        own.write("", "reasoning-parser", entry.reasoning_parser)


def _drain(own: Writer, request: Request) -> None:
    """Without it, the requests that run when the engine is to end are broken off at once."""
    given = {spelling(str(name)) for name in request.deployment.extra_args}
    drains = request.table.option(DRAIN, request.settings.release) is not None
    if request.drain_s and drains and DRAIN not in given:
        own.write("", DRAIN, str(request.drain_s))


def _extra(checker: Checker, request: Request) -> tuple[Checked, Checked]:
    """extra_args and env, with the attention backend by whichever way the release has."""
    options = dict(request.deployment.extra_args)
    own = dict(QUIET)
    if not newer(request.settings.release, BACKEND_OPTION_SINCE):
        backend = _take(options, "attention-backend")
        if isinstance(backend, str):
            own["VLLM_ATTENTION_BACKEND"] = backend
    return checker.options(options), checker.variables(request.variables(own))


def _take(options: dict[str, object], wanted: str) -> object:
    name = next((name for name in options if spelling(name) == wanted), None)
    return options.pop(name) if name is not None else None


def backend(deployment: Deployment, env: Mapping[str, str]) -> str | None:
    """The attention backend that a deployment names: by option, in attention-config, or by variable."""
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
