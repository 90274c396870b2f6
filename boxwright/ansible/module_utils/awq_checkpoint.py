"""What AutoAWQ can make of a checkpoint, and whether what it made is whole. Pure."""

from __future__ import annotations

import re
from typing import Any, Dict, List, NamedTuple, Optional

from ansible.module_utils.checkpoint import Tensor

GROUP_SIZES = (128, 64, 32)
#: Sides of a model's linear layers, in config.json; a group of weights lies along them.
WIDTHS = ("hidden_size", "intermediate_size", "moe_intermediate_size", "shared_expert_intermediate_size")
BITS_OF_WORD = 32
#: What the result depends on by choice, beside what every method has.
RECIPE = {"zero_point": True, "version": "gemm"}
#: A weight of a numbered layer (what AutoAWQ turns into integers), not of the embedding or the head.
_LAYER = re.compile(r"(^|\.)(layers|h|blocks|block)\.(\d+)\.(.*)$")


class Estimate(NamedTuple):
    """Bytes: the result on disk, the loaded source, the largest layer of it, what calibration keeps."""

    result: int
    loaded: int
    layer: int
    calibration: int = 0


def objection(
    config: Dict[str, Any], sides: Dict[str, int], group_size: int, architectures: List[str], tool: str
) -> Optional[str]:
    """Why a model (its config.json) cannot be quantized, with the way out; None when it can.

    sides: of its linear layers, by their name in config.json.
    """
    done = config.get("quantization_config")
    if done:
        method = done.get("quant_method", "another method") if isinstance(done, dict) else done
        return (
            "it is quantized already (%s). Serve it as it is: leave quantize out of the deployment" % method
        )
    kind = str(config.get("model_type", ""))
    if kind not in architectures:
        return (
            "%s does not know the architecture %s. Declare a checkpoint of the model that is published in "
            "INT4 and leave quantize out%s"
            % (
                tool,
                kind or "that config.json leaves unnamed",
                ", or set method: auto (llm-compressor knows newer architectures)"
                if tool.startswith("autoawq")
                else "",
            )
        )
    odd = {name: width for name, width in sides.items() if width % group_size}
    if not odd:
        return None
    fitting = [size for size in GROUP_SIZES if not any(width % size for width in sides.values())]
    return "its %s cannot be cut into groups of %d weights. %s" % (
        " and ".join("%s (%d)" % item for item in odd.items()),
        group_size,
        "Set group_size: %d" % fitting[0]
        if fitting
        else "No usual group size fits; serve a published checkpoint",
    )


def widths(config: Dict[str, Any]) -> Dict[str, int]:
    """The sides of the linear layers by their name in config.json (also in text_config)."""
    text = config["text_config"] if isinstance(config.get("text_config"), dict) else config
    found = {name: int(text[name]) for name in WIDTHS if isinstance(text.get(name), int) and text[name] > 0}
    heads, head = text.get("num_attention_heads"), text.get("head_dim")
    if isinstance(heads, int) and isinstance(head, int):
        found["num_attention_heads * head_dim"] = heads * head
    return found


def numbers(tensor: Tensor) -> int:
    """How many numbers a tensor has."""
    count = 1
    for side in tensor.shape:
        count *= side
    return count


def quantizable(name: str, tensor: Tensor) -> bool:
    """Whether a tensor is a weight of a linear layer inside the numbered layers."""
    return name.endswith(".weight") and len(tensor.shape) == 2 and bool(_LAYER.search(name))


def estimate(tensors: Dict[str, Tensor], bits: int, group_size: int) -> Estimate:
    """How large result, loaded model and largest layer are."""
    result = loaded = 0
    layers: Dict[str, int] = {}
    for name, tensor in tensors.items():
        count = numbers(tensor)
        loaded += 2 * count
        layer = _LAYER.search(name)
        if layer:
            layers[layer.group(3)] = layers.get(layer.group(3), 0) + 2 * count
        if quantizable(name, tensor):
            # Integers, a 16-bit scale and a packed zero point a group.
            result += count * bits // 8 + count // group_size * 2 + count // group_size * bits // 8
        else:
            result += 2 * count
    return Estimate(result, loaded, max(layers.values(), default=loaded))


def flaws(
    source: Dict[str, Tensor], result: Dict[str, Tensor], config: Dict[str, Any], bits: int, group_size: int
) -> List[str]:
    """What is wrong with a finished checkpoint (its tensors and its config.json); empty when it is right."""
    said = config.get("quantization_config")
    wanted = {
        "quant_method": "awq",
        "bits": bits,
        "group_size": group_size,
        "zero_point": True,
        "version": "gemm",
    }
    found = []
    if not isinstance(said, dict) or any(said.get(name) != value for name, value in wanted.items()):
        found.append("config.json says %s where an engine needs %s" % (said, wanted))
    turned = 0
    for name, tensor in source.items():
        if name in result:
            if result[name].shape != tensor.shape:
                found.append("%s has the shape %s instead of %s" % (name, result[name].shape, tensor.shape))
        elif name.endswith(".weight") and name[: -len("weight")] + "qweight" in result:
            turned += 1
            found += _packed_flaws(name[: -len("weight")], tensor, result, bits, group_size)
        elif not (name == "lm_head.weight" and config.get("tie_word_embeddings")):
            found.append("%s is missing" % name)
    if not turned:
        found.append("no layer was quantized")
    return found


def _packed_flaws(
    stem: str, tensor: Tensor, result: Dict[str, Tensor], bits: int, group_size: int
) -> List[str]:
    outputs, inputs = tensor.shape
    packed = outputs * bits // BITS_OF_WORD
    wanted = {
        "qweight": ("I32", (inputs, packed)),
        "qzeros": ("I32", (inputs // group_size, packed)),
        "scales": ("F16", (inputs // group_size, outputs)),
    }
    found = []
    for part, (dtype, shape) in wanted.items():
        there = result.get(stem + part)
        if there is None:
            found.append("%s%s is missing" % (stem, part))
        elif (there.dtype, there.shape) != (dtype, shape):
            found.append(
                "%s%s is %s %s instead of %s %s" % (stem, part, there.dtype, there.shape, dtype, shape)
            )
    return found
