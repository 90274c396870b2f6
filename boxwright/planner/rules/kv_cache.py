"""Rules about the KV cache's number format and blocks."""

from __future__ import annotations

from boxwright.engines import vllm
from boxwright.engines.dialect import VLLM
from boxwright.planner.case import Case
from boxwright.planner.rules.registry import Note, advice, gate, note

FIELD_REPORT = "https://github.com/vllm-project/vllm/blob/v0.29.0/vllm/v1/attention/backends/flash_attn.py"


def _eight_bits(case: Case) -> bool:
    """Whether the cache has 8-bit floats: as declared, or as the checkpoint says where that is left to it."""
    settings = case.settings
    return settings.kv_format.startswith("fp8") or (settings.kv_format == "auto" and settings.kv_bytes == 1)


#: Head sizes for which FLASHINFER has kernels.
FLASHINFER_HEADS = (64, 128, 256, 512)


def _least(case: Case) -> tuple[int, ...] | None:
    known = [card.capability for card in case.cards if card.capability]
    return min(known) if known else None


@gate("fp8-kv-with-flash-attn", source=FIELD_REPORT, engine="vllm")
def fp8_with_flash_attn(case: Case) -> Note | None:
    """FLASH_ATTN reads an 8-bit KV cache only on Hopper and data-centre Blackwell (FA3, FA4).

    On RTX 3090, 4090 and 5090 the engine picks FLASHINFER by itself; naming FLASH_ATTN ends in "FP8 KV cache
    requires FA3 on SM90 or FA4 on SM100". Going to 16 bits to keep FLASH_ATTN halved decoding with MTP.
    """
    least = _least(case)
    backend = vllm.backend(case.deployment, case.command.env)
    if (
        backend is None
        or not backend.startswith("FLASH_ATTN")
        or not _eight_bits(case)
        or least is None
        or least[0] in (9, 10)
    ):
        return None
    return note(
        f"FLASH_ATTN cannot read an fp8 KV cache on {case.cards[0].title}",
        "leave attention-backend out: FLASHINFER is picked",
        "kv_cache: bf16, with half the tokens",
        at="extra_args",
    )


@gate("fp8-kv-with-triton", source="https://github.com/vllm-project/vllm/issues/26431", engine="vllm")
def fp8_with_triton(case: Case) -> Note | None:
    """Triton's attention needs native 8-bit floats, which cards have from compute capability 8.9 on.

    vLLM 0.11.0 picks it by itself for an 8-bit cache; later releases pick FLASHINFER.
    """
    least, release = _least(case), case.image.release or ""
    named = vllm.backend(case.deployment, case.command.env)
    picked = None if named else VLLM.notes["fp8_cache_backend"].get(release)
    if (named or picked) != "TRITON_ATTN" or not _eight_bits(case) or least is None or least >= (8, 9):
        return None
    if picked:
        return note(
            f"vLLM {release} picks TRITON_ATTN for an fp8 KV cache, and that cannot read it on "
            f"{case.cards[0].title}",
            "env: {VLLM_ATTENTION_BACKEND: FLASHINFER}",
            "a newer image, which picks FLASHINFER by itself",
            "kv_cache: bf16, with half the tokens",
            at="kv_cache",
        )
    return note(
        f"TRITON_ATTN cannot read an fp8 KV cache on {case.cards[0].title}",
        "leave attention-backend out: FLASHINFER is picked",
        "kv_cache: bf16",
        at="extra_args",
    )


@gate("fp8-kv-without-kernel", source="https://github.com/vllm-project/vllm/issues/26431", engine="vllm")
def fp8_without_kernel(case: Case) -> Note | None:
    """Before compute capability 8.9 an 8-bit KV cache is only stored, and FLASHINFER alone reads it.

    It has kernels for heads of 64, 128, 256 and 512 numbers, on cards from 8.0 on. For others the engine
    falls to Triton and ends in "type fp8e4nv not supported in this architecture".
    """
    least, architecture = _least(case), case.architecture
    if not _eight_bits(case) or least is None or least >= (8, 9) or architecture is None:
        return None
    size = architecture.attention.head_dim
    if least >= (8, 0) and size in FLASHINFER_HEADS:
        return None
    why = f"heads of {size} numbers" if least >= (8, 0) else f"{case.cards[0].title}"
    return note(
        f"no kernel reads an fp8 KV cache for {why} on a card of compute capability "
        f"{'.'.join(map(str, least))}",
        "kv_cache: bf16, with half the tokens",
        at="kv_cache",
    )


@gate(
    "fp8-e5m2-with-fp8-weights",
    source="https://github.com/vllm-project/vllm/blob/v0.29.0/vllm/model_executor/layers/attention/attention.py",
)
def e5m2_with_fp8(case: Case) -> Note | None:
    """vLLM refuses an fp8_e5m2 cache beside 8-bit weights: "fp8_e5m2 kv-cache is not supported with fp8
    checkpoints".
    """
    method = case.model.quantization.method or ""
    if case.settings.kv_format != "fp8_e5m2" or not method.startswith("fp8"):
        return None
    return note(
        f"kv_cache fp8_e5m2 cannot be used with {case.model.name}, whose weights are fp8",
        "kv_cache: fp8",
        at="kv_cache",
    )


@gate("nvfp4-kv-needs-blackwell", source="https://github.com/vllm-project/vllm/issues/43562", engine="vllm")
def nvfp4_needs_blackwell(case: Case) -> Note | None:
    """A 4-bit KV cache is read by kernels of data-centre Blackwell; GeForce Blackwell crashes with stock
    builds.
    """
    least = _least(case)
    if not case.settings.kv_format.startswith("nvfp4") or least is None or least[0] == 10:
        return None
    soft = least[0] >= 12
    what = "has crashed with unpatched builds of vLLM" if soft else "has no 4-bit floating point"
    return note(
        f"kv_cache {case.settings.kv_format}: {case.cards[0].title} {what}",
        "kv_cache: fp8",
        at="kv_cache",
        soft=soft,
    )


@advice(
    "block-size-has-no-effect",
    source="https://github.com/vllm-project/vllm/blob/v0.29.0/vllm/platforms/interface.py",
    engine="vllm",
)
def block_size_without_effect(case: Case) -> Note | None:
    """A hybrid model's attention blocks are as large as its state, whatever block-size says.

    Field report 000 measured 7 % from `--block-size 32`; the engine uses 784 tokens or more either way.
    """
    pool, asked = case.pool, case.settings.block_size
    if pool is None or asked is None or not pool.state_blocks or pool.block_tokens == asked:
        return None
    return note(
        f"block-size {asked} has no effect: the engine takes blocks of {pool.block_tokens} tokens, as large "
        f"as "
        "a sequence's state",
        "leave block-size out",
        at="extra_args.block-size",
    )


@advice("kv-format-size-unknown", source="boxwright/planner/settings.py")
def size_unknown(case: Case) -> Note | None:
    """Some formats' exact bytes depend on the kernel that packs them; the plan uses their nominal bits."""
    if case.settings.kv_bytes_exact:
        return None
    return note(
        f"the tokens that a {case.settings.kv_format} cache holds are an estimate by its nominal bits",
        "kv_cache: fp8 or bf16, whose tokens are known exactly",
        at="kv_cache",
    )
