"""Multiplies by 4-bit weights as the engine does; runs among its packages.

Says, for each kind of checkpoint and each type of numbers, how far the products are from those with the
weights that the checkpoint stands for, in parts of what rounding may make of them.
"""

import inspect
import json
import tempfile

import torch
from vllm import _custom_ops as operators
from vllm.config import VllmConfig, set_current_vllm_config
from vllm.distributed import ensure_model_parallel_initialized, init_distributed_environment
from vllm.model_executor.kernels.linear.mixed_precision.cpu import CPUWNA16LinearKernel
from vllm.model_executor.kernels.linear.mixed_precision.MPLinearKernel import MPLinearLayerConfig
from vllm.model_executor.layers.quantization import auto_awq
from vllm.model_executor.parameter import GroupQuantScaleParameter, PackedvLLMParameter
from vllm.plugins import load_general_plugins
from vllm.scalar_type import scalar_types

#: Inputs, outputs and rows of the products; inputs that share a scale.
INPUTS, OUTPUTS, ROWS, GROUP = 192, 96, 5, 64
GROUPS = INPUTS // GROUP
#: Where AutoAWQ puts eight neighbouring outputs in an integer, from the lowest four bits on
#: (awq/modules/linear/gemm.py, WQLinear_GEMM.from_linear).
AWQ_ORDER = (0, 2, 4, 6, 1, 3, 5, 7)


def packed(numbers, order=range(8)):
    """Rows of 4-bit numbers, eight in each integer of 32 bits."""
    eights = numbers.reshape(len(numbers), -1, 8).long()
    total = sum(eights[:, :, place] << 4 * nibble for nibble, place in enumerate(order))
    return torch.where(total < 2**31, total, total - 2**32).int()


def layer_of(qweight, scales, qzeros=None, *, outputs_first):
    """A layer with a checkpoint's tensors; outputs_first: a row for each output, as llm-compressor has it."""
    layer, inputs, outputs = torch.nn.Module(), int(outputs_first), int(not outputs_first)
    loader = {"weight_loader": lambda *_: None, "input_dim": inputs, "output_dim": outputs}
    layer.register_parameter(
        "qweight", PackedvLLMParameter(data=qweight, packed_dim=1, packed_factor=8, **loader)
    )
    layer.register_parameter("scales", GroupQuantScaleParameter(data=scales, **loader))
    if qzeros is not None:
        zeros = PackedvLLMParameter(data=qzeros, packed_dim=1, packed_factor=8, **loader)
        layer.register_parameter("qzeros", zeros)
    return layer


def product(layer, given, bias, *, zeros):
    """What the engine makes of a layer whose tensors are as its kernels take them."""
    about = {
        "full_weight_shape": (INPUTS, OUTPUTS),
        "partition_weight_shape": (INPUTS, OUTPUTS),
        "weight_type": scalar_types.uint4 if zeros else scalar_types.uint4b8,
        "act_type": given.dtype,
        "group_size": GROUP,
        "zero_points": zeros,
    }
    if "has_g_idx" in inspect.signature(MPLinearLayerConfig).parameters:
        about["has_g_idx"] = False
    kernel = CPUWNA16LinearKernel(MPLinearLayerConfig(**about), "qweight", "scales", "qzeros")
    kernel.process_weights_after_loading(layer)
    return kernel.apply_weights(layer, given, bias)


def distance(found, given, weight, bias):
    """How far a product is from the right one, in parts of what rounding it may do."""
    right = given.double() @ weight.to(given.dtype).double()
    if bias is not None:
        right += bias.double()
    room = torch.finfo(given.dtype).eps * right.abs() + 1e-4 * (given.double().abs() @ weight.double().abs())
    return float(((found.double() - right).abs() / room).max())


def distances(numbers_type):
    """By kind of checkpoint, the distance of its products."""
    codes = torch.randint(0, 16, (INPUTS, OUTPUTS))
    middles = torch.randint(0, 16, (GROUPS, OUTPUTS))
    scales = (torch.rand(GROUPS, OUTPUTS) / 50 + 0.001).to(numbers_type)
    given = torch.randn(ROWS, INPUTS).to(numbers_type)
    bias = torch.randn(OUTPUTS).to(numbers_type)
    spread = scales.double().repeat_interleave(GROUP, 0)
    shifted = (codes - middles.repeat_interleave(GROUP, 0)).double() * spread
    centred = (codes - 8).double() * spread

    awq = layer_of(packed(codes, AWQ_ORDER), scales.clone(), packed(middles, AWQ_ORDER), outputs_first=False)
    auto_awq._convert_awq_to_standard_format(awq, "qweight", "qzeros", 4)
    tensors = layer_of(packed(codes.t()), scales.t().contiguous(), outputs_first=True)
    found = {
        "awq": distance(product(awq, given, None, zeros=True), given, shifted, None),
        "compressed-tensors": distance(product(tensors, given, bias, zeros=False), given, centred, bias),
    }
    if "g_idx" in inspect.signature(operators.cpu_gemm_wna16).parameters:
        order = torch.randperm(INPUTS) % GROUPS
        weight = (codes - 8).double() * scales.double()[order]
        made = operators.cpu_gemm_wna16(
            input=given,
            q_weight=packed(codes.reshape(INPUTS, -1, 16).transpose(0, 1).reshape(-1, INPUTS * 16)),
            scales=scales,
            zeros=None,
            g_idx=order.int(),
            bias=bias,
            pack_factor=8,
            isa_hint="vec",
        )
        found["gptq in order of activity"] = distance(made, given, weight, bias)
    return found


load_general_plugins()
torch.manual_seed(7)
with tempfile.NamedTemporaryFile() as meeting, set_current_vllm_config(VllmConfig()):
    init_distributed_environment(1, 0, f"file://{meeting.name}", 0, "gloo")
    ensure_model_parallel_initialized(1, 1)
    said = {str(kind): distances(kind) for kind in (torch.bfloat16, torch.float16)}
print(json.dumps(said))
