"""SGLang: the command and the environment of a deployment, for the release in its image."""

from __future__ import annotations

from boxwright.catalog.purpose import TEXT
from boxwright.engines.command import DRAFTER_PATH, LISTEN_PORT, MODEL_PATH, Command, OptionProblem
from boxwright.engines.dialect import SGLANG
from boxwright.engines.request import Request
from boxwright.engines.vllm_names import spelling
from boxwright.engines.vllm_options import Checked, Checker, merged
from boxwright.engines.writer import Writer

#: The declared names of KV formats that the engine calls otherwise (it has no plain `fp8`).
_KV_NAMES = {"fp8": "fp8_e4m3", "bf16": "bf16"}
#: Declared method of drafting -> the engine's. Drafting with the model's own layers goes by EAGLE's name.
_ALGORITHMS = {"mtp": "EAGLE", "dflash2": "DFLASH", "ngram": "NGRAM"}
#: The engine's own options, and nothing done with them; the words before are how Python finds the server.
PARSE = """\
import argparse, sys
from sglang.srt.server_args import ServerArgs
parser = argparse.ArgumentParser()
ServerArgs.add_cli_args(parser)
first = next(place for place, word in enumerate(sys.argv) if word.startswith("--"))
parser.parse_args(sys.argv[first:])
"""
#: Nothing is fetched once the weights are here.
QUIET = {"HF_HUB_OFFLINE": "1"}


def command(request: Request) -> Command:
    """The command for the release, with only options that it has."""
    deployment, settings = request.deployment, request.settings
    checker = Checker(request.table, settings.release, settings.exact, SGLANG)
    own = Writer(checker)
    own.write("", "model-path", MODEL_PATH)
    own.write("", "served-model-name", deployment.name)
    # Its own default is the container's loopback address, which a published port does not reach.
    own.write("", "host", "0.0.0.0")
    own.write("", "port", str(LISTEN_PORT))
    if request.context is not None:
        own.write("context", "context-length", str(request.context))
    own.write("concurrency", "max-running-requests", str(settings.concurrency))
    # An encoder reads a text in one step, whatever its length.
    step = -1 if settings.encoder else settings.batched_tokens
    own.write("max_batched_tokens", "chunked-prefill-size", str(step))
    if settings.tensor_parallel > 1:
        own.write("tensor_parallel", "tp-size", str(settings.tensor_parallel))
    if settings.pipeline_parallel > 1:
        own.write("pipeline_parallel", "pp-size", str(settings.pipeline_parallel))
    if deployment.gpu_memory_utilization is not None:
        share = f"{deployment.gpu_memory_utilization:g}"
        own.write("gpu_memory_utilization", "mem-fraction-static", share)
    if settings.kv_format != "auto":
        own.write("kv_cache", "kv-cache-dtype", _KV_NAMES.get(settings.kv_format, settings.kv_format))
    if deployment.prefix_caching is False or settings.encoder:
        own.switch("disable-radix-cache")
    if settings.serves != TEXT:
        _serving(own, request)
    _speculation(own, request)
    _parsers(own, request)
    own.switch("enable-metrics")
    extra, env = _extra(checker, request)
    if not request.reduces_by_copies and "--disable-custom-all-reduce" not in extra.argv:
        own.switch("disable-custom-all-reduce")
    argv = ("python3", "-m", "sglang.launch_server", *own.argv, *extra.argv)
    return Command(argv, env.env, (*own.problems, *_without(request), *merged((extra, env))))


def _serving(own: Writer, request: Request) -> None:
    """That it serves no text; an encoder gets the attention that SGLang's documentation names for it."""
    own.switch("is-embedding")
    given = {spelling(name) for name in request.deployment.extra_args}
    if request.settings.encoder and "attention-backend" not in given:
        own.write("serves", "attention-backend", "triton")
    if request.entry and request.entry.overrides:
        own.refuse(
            "serves",
            "option-in-no-release",
            f"{request.entry.title} ranks by the probabilities of two words, which SGLang does only with the "
            "answers of a chat",
            ("engine: vllm", "a checkpoint of it that was made a classifier (…ForSequenceClassification)"),
        )


def _speculation(own: Writer, request: Request) -> None:
    """Drafting: the engine counts a step's tokens with the one that is sure, so one more than are drafted."""
    settings = request.settings
    algorithm = _ALGORITHMS.get(settings.draft_method)
    if algorithm is None or not settings.draft_tokens:
        return
    table, release = request.table, settings.release
    if algorithm not in table.part("speculative_methods", release):
        have = table.known("speculative_methods", algorithm)
        own.refuse(
            "speculative.method",
            "option-not-yet",
            f"SGLang drafts by {algorithm} {f'since {have[0]}' if have else 'in no release'}; the image has "
            f"{release}",
            (f"an image of SGLang {have[0]} or newer" if have else "another method",),
        )
        return
    own.write("speculative", "speculative-algorithm", algorithm)
    if settings.draft_method == "mtp":
        own.write("speculative", "speculative-num-steps", str(settings.draft_tokens))
        own.write("speculative", "speculative-eagle-topk", "1")
    if settings.draft_method == "dflash2":
        own.write("speculative", "speculative-draft-model-path", DRAFTER_PATH)
    own.write("speculative", "speculative-num-draft-tokens", str(settings.draft_tokens + 1))


def _parsers(own: Writer, request: Request) -> None:
    """The parsers of the model's tool calls and reasoning, by the engine's names, where it has them."""
    entry, given = request.entry, {spelling(name) for name in request.deployment.extra_args}
    if entry is None or request.settings.serves != TEXT:
        return
    newest = max((since for since, _ in entry.tool_parsers), default="0")
    tool = SGLANG.notes["tool_parsers"].get(entry.tool_parser(newest) or "")
    for option, name in (("tool-call-parser", tool), ("reasoning-parser", entry.reasoning_parser)):
        known = request.table.option(option, request.settings.release)
        if name and option not in given and known and (not known.choices or name in known.choices):
            own.write("", option, name)


def _extra(checker: Checker, request: Request) -> tuple[Checked, Checked]:
    """extra_args and env."""
    return checker.options(request.deployment.extra_args), checker.variables(request.variables(QUIET))


def _without(request: Request) -> tuple[OptionProblem, ...]:
    """What a deployment declares and the engine has no option for."""
    if request.deployment.kv_cache_memory_bytes is None:
        return ()
    return (
        OptionProblem(
            "option-in-no-release",
            "kv_cache_memory_bytes",
            "SGLang takes no number of bytes for its cache, only a number of tokens or a share of the card",
            ("extra_args: {max-total-tokens: …}", "gpu_memory_utilization: … (weights and cache together)"),
        ),
    )
