"""A deployment's numbers, all of them: what was declared, and what the plan chooses where nothing was."""

from __future__ import annotations

from fractions import Fraction

from boxwright.catalog import OptionTable
from boxwright.catalog.architecture import Architecture
from boxwright.catalog.images import ImageInfo
from boxwright.catalog.purpose import EMBEDDINGS, RERANKING, TEXT
from boxwright.engines.settings import Settings
from boxwright.planner.cards import PlannedCard
from boxwright.planner.kv_pool import KV_BYTES, prefix_caching_default
from boxwright.planner.sharing import most_ranks
from boxwright.spec.box import Box, Deployment

#: Share of a card that the engine may fill when nobody says: room for the peak that profiling does not see,
#: up to 2.9 GiB with linear attention (vllm-project/vllm#44209).
UTILIZATION = 0.90
#: Tokens of one step when nobody says: the engine's own default on cards below 70 GiB.
BATCHED_TOKENS = 2048
#: Seconds that running requests have to finish when nobody says: the default of the role's
#: engine_drain_seconds.
DRAIN_SECONDS = 60
#: Draft tokens that one step may verify.
MOST_DRAFTS = 64
#: Options that change how the cache is cut or shared in ways that the plan does not count.
_UNCOUNTED = (
    "decode-context-parallel-size",
    "prefill-context-parallel-size",
    "kv-cache-dtype-skip-layers",
    "num-gpu-blocks-override",
    "mamba-cache-mode",
    "mamba-block-size",
)
#: Bytes of the formats in which linear attention's state can be kept.
_STATE_BYTES = {"float32": 4, "float16": 2, "bfloat16": 2}
#: KV formats whose bytes are only known about: bits of a number, a 4-byte scale a head where there is one.
_ABOUT_BYTES = {
    "fp8_per_token_head": Fraction(33, 32),
    "int8_per_token_head": Fraction(33, 32),
    "int4_per_token_head": Fraction(17, 32),
    "nvfp4_4over6": Fraction(9, 16),
    "turboquant_k8v4": Fraction(3, 4),
    "turboquant_4bit_nc": Fraction(1, 2),
    "turboquant_k3v4_nc": Fraction(7, 16),
    "turboquant_3bit_nc": Fraction(3, 8),
}


def drain_seconds(box: Box) -> int:
    """How long an engine that is to end goes on with the requests that it has."""
    declared = box.settings.get("engine_drain_seconds")
    return declared if isinstance(declared, int) and declared >= 0 else DRAIN_SECONDS


def resolve(
    deployment: Deployment,
    architecture: Architecture | None,
    cards: tuple[PlannedCard, ...],
    image: ImageInfo,
    table: OptionTable,
    kv_scheme: bool,
    block: tuple[int, int] | None,
    serves: str = TEXT,
) -> Settings:
    """The numbers as declared, with the plan's choices; the context stays open where it is `auto`.

    kv_scheme: the checkpoint brings scales for an 8-bit cache, which the format `auto` then uses. block: of
    weights that have one scale. serves: as resolved.
    """
    release, exact = table.nearest(image.release)
    pipeline = max(1, deployment.pipeline_parallel)
    method = deployment.speculative.method
    drafts = min(max(0, deployment.speculative.tokens or 0), MOST_DRAFTS) if method != "none" else 0
    kv_format = deployment.kv_cache
    known = kv_format in KV_BYTES or kv_format == "auto"
    kv_bytes = (
        KV_BYTES["fp8" if kv_scheme else "bf16"]
        if kv_format == "auto"
        else KV_BYTES.get(kv_format) or _ABOUT_BYTES.get(kv_format, Fraction(2))
    )
    caching = deployment.prefix_caching
    if caching is None:
        caching = prefix_caching_default(architecture, release) if architecture else True
    pool = deployment.kv_cache_memory_bytes
    encoder = serves != TEXT and architecture is not None and architecture.encoder
    return Settings(
        release=release,
        exact=exact,
        tensor_parallel=_tensor_parallel(
            deployment, architecture, block, len(deployment.gpus or cards) // pipeline
        ),
        pipeline_parallel=pipeline,
        context=deployment.context
        if isinstance(deployment.context, int) and deployment.context > 0
        else None,
        concurrency=max(1, deployment.concurrency),
        kv_format=kv_format,
        kv_bytes=kv_bytes,
        kv_bytes_exact=known,
        utilization=None if pool else deployment.gpu_memory_utilization or UTILIZATION,
        pool_bytes=pool,
        batched_tokens=max(1, deployment.max_batched_tokens or _step(deployment, architecture, encoder)),
        prefix_caching=caching,
        draft_method=method,
        draft_tokens=drafts,
        block_size=_whole(deployment, "block-size"),
        eager=_given(deployment, "enforce-eager") is True,
        vision=_given(deployment, "language-model-only") is not True,
        windows=_given(deployment, "disable-hybrid-kv-cache-manager") is not True,
        asynchronous=method != "ngram" and _given(deployment, "async-scheduling") is not False,
        state_bytes=_STATE_BYTES.get(str(_given(deployment, "mamba-ssm-cache-dtype"))),
        backend=_backend(deployment),
        serves=serves,
        encoder=encoder,
        convert=_convert(serves, architecture),
        uncounted=next(
            (name for name in _UNCOUNTED if _given(deployment, name) not in (None, False, 1)), None
        ),
    )


def _step(deployment: Deployment, architecture: Architecture | None, encoder: bool) -> int:
    """Tokens of a step where nobody says: an encoder reads the longest text in one."""
    if not encoder or architecture is None:
        return BATCHED_TOKENS
    longest = deployment.context if isinstance(deployment.context, int) else architecture.context
    return max(BATCHED_TOKENS, longest)


def _convert(serves: str, architecture: Architecture | None) -> str | None:
    """What the engine makes of a class that writes text when it is to serve something else."""
    if serves == TEXT or architecture is None or architecture.headless or architecture.encoder:
        return None
    return {EMBEDDINGS: "embed", RERANKING: "classify"}.get(serves)


def _tensor_parallel(
    deployment: Deployment, architecture: Architecture | None, block: tuple[int, int] | None, cards: int
) -> int:
    """The declared number; without one, as many of the cards as can share the model."""
    if deployment.tensor_parallel is not None:
        return max(1, deployment.tensor_parallel)
    if architecture is None or deployment.gpus is not None:
        return max(1, cards)
    return most_ranks(architecture, cards, block, deployment.extra_args)


def _given(deployment: Deployment, option: str) -> object:
    """A value of extra_args under any spelling of the option's name."""
    for name, value in deployment.extra_args.items():
        if str(name).lstrip("-").replace("_", "-") == option:
            return value
    return None


def _backend(deployment: Deployment) -> str | None:
    """The attention backend that was asked for, by the option or by the variable of older releases."""
    value = _given(deployment, "attention-backend") or deployment.env.get("VLLM_ATTENTION_BACKEND")
    return value.upper() if isinstance(value, str) and value not in ("", "auto") else None


def _whole(deployment: Deployment, option: str) -> int | None:
    value = _given(deployment, option)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
