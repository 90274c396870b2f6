"""What llm-compressor makes of a checkpoint (compressed-tensors, W4A16), and whether it is whole. Pure."""

from __future__ import annotations

import re
from typing import Any, Dict, List

from ansible.module_utils import awq_checkpoint
from ansible.module_utils.awq_checkpoint import BITS_OF_WORD, Estimate
from ansible.module_utils.checkpoint import Tensor

#: Modules that stay at 16 bits, as patterns of llm-compressor: head and embedding, what sees and drafts,
#: routers, and the narrow projections of linear attention, which engines keep together.
#: https://github.com/vllm-project/llm-compressor/tree/main/examples/quantization_w4a16
KEPT = (
    "re:.*lm_head",
    "re:.*embed_tokens$",
    r"re:(.*\.)?(visual|vision_tower|vision_model|multi_modal_projector)\..*",
    r"re:(.*\.)?mtp\..*",
    r"re:.*\.mlp\.gate$",
    r"re:.*shared_expert_gate$",
    r"re:.*router$",
    r"re:.*linear_attn\.in_proj_(a|b|ba)$",
)
#: What the result depends on by choice, beside what every method has.
RECIPE = {"scheme": "W4A16", "symmetric": True, "duo_scaling": "both", "kept": list(KEPT)}
#: Types of numbers that a scale may have.
SCALES = ("BF16", "F16", "F32")


def widths(config: Dict[str, Any]) -> Dict[str, int]:
    """The sides of the linear layers by their name in config.json; linear attention's among them."""
    found: Dict[str, int] = awq_checkpoint.widths(config)
    text = config["text_config"] if isinstance(config.get("text_config"), dict) else config
    heads, head = text.get("linear_num_value_heads"), text.get("linear_value_head_dim")
    if isinstance(heads, int) and isinstance(head, int):
        found["linear_num_value_heads * linear_value_head_dim"] = heads * head
    return found


def quantizable(name: str, tensor: Tensor) -> bool:
    """Whether a tensor is a weight of a linear layer that is turned into integers."""
    inside: bool = awq_checkpoint.quantizable(name, tensor)
    return inside and not named(name[: -len(".weight")], KEPT)


def named(module: str, patterns: Any) -> bool:
    """Whether patterns of compressed-tensors (names, or `re:` and an expression) name a module."""
    return any(
        re.match(str(one)[3:], module) if str(one).startswith("re:") else str(one) == module
        for one in patterns
    )


def estimate(tensors: Dict[str, Tensor], bits: int, group_size: int) -> Estimate:
    """How large result, loaded model and largest layer are."""
    result = 0
    for name, tensor in tensors.items():
        count = awq_checkpoint.numbers(tensor)
        # Integers and a 16-bit scale a group; the shape of each is kept beside them.
        result += count * bits // 8 + count // group_size * 2 + 16 if quantizable(name, tensor) else 2 * count
    plain: Estimate = awq_checkpoint.estimate(tensors, bits, group_size)
    return plain._replace(result=result)


def flaws(
    source: Dict[str, Tensor], result: Dict[str, Tensor], config: Dict[str, Any], bits: int, group_size: int
) -> List[str]:
    """What is wrong with a finished checkpoint (its tensors and its config.json); empty when it is right."""
    said = config.get("quantization_config")
    said = said if isinstance(said, dict) else {}
    found = _config_flaws(said, bits, group_size)
    kept = said.get("ignore") or []
    turned = 0
    for name, tensor in source.items():
        stem = name[: -len("weight")] if name.endswith(".weight") else None
        if name in result:
            if result[name].shape != tensor.shape:
                found.append("%s has the shape %s instead of %s" % (name, result[name].shape, tensor.shape))
            if stem and awq_checkpoint.quantizable(name, tensor) and not named(stem[:-1], kept):
                found.append("%s has 16 bits, and config.json does not say so" % name)
        elif stem and stem + "weight_packed" in result:
            turned += 1
            found += _packed_flaws(stem, tensor, result, bits, group_size)
            if named(stem[:-1], kept):
                found.append("%s is made of integers, and config.json says that it has 16 bits" % name)
        elif not (name == "lm_head.weight" and config.get("tie_word_embeddings")):
            found.append("%s is missing" % name)
    if not turned:
        found.append("no layer was quantized")
    return found


def _config_flaws(said: Dict[str, Any], bits: int, group_size: int) -> List[str]:
    wanted = {
        "num_bits": bits,
        "group_size": group_size,
        "strategy": "group",
        "symmetric": True,
        "type": "int",
    }
    groups = said.get("config_groups")
    weights = [
        one.get("weights") for one in groups.values() if isinstance(one, dict)
    ] if isinstance(groups, dict) else []  # fmt: skip
    right = (
        (said.get("quant_method"), said.get("format")) == ("compressed-tensors", "pack-quantized")
        and len(weights) == 1
        and isinstance(weights[0], dict)
        and all(weights[0].get(name) == value for name, value in wanted.items())
    )
    if right:
        return []
    return [
        "config.json says %s where an engine needs compressed-tensors, pack-quantized, %s"
        % ({**said, "ignore": "…"} if said else None, wanted)
    ]


def _packed_flaws(
    stem: str, tensor: Tensor, result: Dict[str, Tensor], bits: int, group_size: int
) -> List[str]:
    outputs, inputs = tensor.shape
    wanted = {
        "weight_packed": (("I32",), (outputs, -(-inputs * bits // BITS_OF_WORD))),
        "weight_scale": (SCALES, (outputs, inputs // group_size)),
        "weight_shape": (("I64", "I32"), (2,)),
    }
    found = []
    for part, (dtypes, shape) in wanted.items():
        there = result.get(stem + part)
        if there is None:
            found.append("%s%s is missing" % (stem, part))
        elif there.dtype not in dtypes or there.shape != shape:
            found.append(
                "%s%s is %s %s instead of %s %s"
                % (stem, part, there.dtype, there.shape, " or ".join(dtypes), shape)
            )
    return found
