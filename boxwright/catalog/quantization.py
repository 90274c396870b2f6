"""How a checkpoint's numbers are stored, from the quantization_config of its config.json.

Forms: vLLM model_executor/layers/quantization and transformers_utils/model_arch_config_convertor.py
(_normalize_quantization_config) of 0.32; compressed-tensors quantization/quant_config.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

#: Bits of a weight, and weights that share a scale, of methods and formats that do not say them.
_BITS = {
    "fp8": 8,
    "fbgemm_fp8": 8,
    "modelopt": 8,
    "mxfp8": 8,
    "mxfp4": 4,
    "nvfp4": 4,
    "modelopt_fp4": 4,
    "w4a8_awq": 4,
    "int8": 8,
    "int4": 4,
}
_GROUPS = {"mxfp4": 32, "mxfp8": 32, "nvfp4": 16, "modelopt_fp4": 16}
_UNKNOWN_BITS = 4


@dataclass(frozen=True)
class Quantization:
    """How a checkpoint's numbers are stored.

    method: of its quantization_config, None for 16-bit. bits: a weight of the body, the fewest where layers
    differ (mixed). group_size: weights that share a scale; None where there are blocks, channels or tensors
    instead. block: rows and columns of weights that share a scale, None where there are no blocks.
    """

    method: str | None
    bits: int
    group_size: int | None = None
    mixed: bool = False
    block: tuple[int, int] | None = None


def quantization_config(config: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """What a config.json says of its numbers; None when it says nothing."""
    text = config.get("text_config")
    for place in (config, text if isinstance(text, Mapping) else {}):
        for name in ("quantization_config", "compression_config"):
            said = place.get(name)
            if isinstance(said, Mapping):
                # ModelOpt's own file has another mapping inside.
                inner = said.get("quantization")
                return {**inner, **said} if isinstance(inner, Mapping) else said
    return None


def of_config(config: Mapping[str, Any]) -> Quantization:
    """The quantization that a config.json names; 16-bit where it names none."""
    said = quantization_config(config)
    if said is None:
        return Quantization(None, 16)
    method = _method(said)
    weights = list(_weights(said))
    bits = [bits for one in weights if (bits := _whole(one, "num_bits", "bits", "w_bit", "weight_bits"))]
    groups = [size for one in weights if (size := _whole(one, "group_size", "q_group_size"))]
    algorithm = str(said.get("quant_algo") or said.get("format") or "").lower()
    by_name = next((name for name in (*_words(algorithm), method) if name in _BITS), None)
    if said.get("load_in_8bit") is True:
        bits = [8]
    fewest = min(bits, default=_BITS[by_name] if by_name else _UNKNOWN_BITS)
    mixed = len(set(bits)) > 1 or "mixed" in algorithm
    group = min(groups, default=_GROUPS.get(by_name or "", 0)) or None
    return Quantization(method, fewest, group, mixed, _block(said, weights))


def _block(said: Mapping[str, Any], weights: Sequence[Mapping[str, Any]]) -> tuple[int, int] | None:
    """A block's rows and columns: weight_block_size of fp8, block_structure of compressed-tensors."""
    for sides in (said.get("weight_block_size"), *(one.get("block_structure") for one in weights)):
        if (
            isinstance(sides, Sequence)
            and len(sides) == 2
            and all(type(side) is int and side > 0 for side in sides)
        ):
            return sides[0], sides[1]
    return None


def _method(said: Mapping[str, Any]) -> str:
    named = str(said.get("quant_method") or "").lower().replace("compressed_tensors", "compressed-tensors")
    if named:
        return named[:40]
    if said.get("quant_algo"):
        return "modelopt_fp4" if "nvfp4" in str(said["quant_algo"]).lower() else "modelopt"
    if said.get("load_in_4bit") is True or said.get("load_in_8bit") is True:
        return "bitsandbytes"
    return "compressed-tensors" if said.get("config_groups") else "unknown"


def _words(algorithm: str) -> Iterator[str]:
    """The format names in an algorithm: `nvfp4-pack-quantized` has nvfp4, `W4A8_AWQ` itself."""
    yield algorithm
    yield from algorithm.replace("_", "-").split("-")


def _weights(said: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Each group's weights; the mapping itself where it has no groups."""
    groups = said.get("config_groups")
    listed = list(groups.values()) if isinstance(groups, Mapping) else []
    found = [
        one["weights"]
        for one in listed
        if isinstance(one, Mapping) and isinstance(one.get("weights"), Mapping)
    ]
    yield from found or [said]


def _whole(place: Mapping[str, Any], *names: str) -> int | None:
    for name in names:
        value = place.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= 1 << 16:
            return value
    return None
