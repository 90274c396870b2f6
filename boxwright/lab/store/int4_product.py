"""A plug-in of the lab's engine: stands in for instructions that this machine's processor may lack.

vLLM's CPU build multiplies by 4-bit weights (AWQ, GPTQ, compressed-tensors W4A16) in one operator,
`cpu_gemm_wna16`, and has that for processors with AVX-512 alone. On another processor it is registered here,
after csrc/cpu/cpu_wna16.cpp, in torch's own operations; all else is the real vLLM: the kernel that is chosen,
how weights are read, repacked and handed over. Where the operator is there, nothing happens.

The lab puts this file into its engine's packages (environment.py). Real boxes get the official images.
"""

from __future__ import annotations

import inspect

import torch

#: What is subtracted from the numbers of a weight that comes without zero points.
MIDDLE = 8
_LIBRARY = torch.library.Library("_C", "FRAGMENT")


def register() -> None:
    """Have the operator, with the arguments that this release gives it; vLLM's processes call this."""
    from vllm import _custom_ops  # loads the compiled operators

    if hasattr(torch.ops._C, "cpu_gemm_wna16"):
        return
    ordered = "g_idx" in inspect.signature(_custom_ops.cpu_gemm_wna16).parameters
    _LIBRARY.define(
        "cpu_gemm_wna16(Tensor input, Tensor q_weight, Tensor(a2!) output, Tensor scales, Tensor? zeros, "
        f"{'Tensor? g_idx, ' if ordered else ''}Tensor? bias, SymInt pack_factor, str isa_hint) -> ()"
    )
    _LIBRARY.impl("cpu_gemm_wna16", multiply_in_order if ordered else multiply, "CPU")


def multiply(
    input: torch.Tensor,
    q_weight: torch.Tensor,
    output: torch.Tensor,
    scales: torch.Tensor,
    zeros: torch.Tensor | None,
    bias: torch.Tensor | None,
    pack_factor: int,
    isa_hint: str,
) -> None:
    """The operator of releases that know no order of groups."""
    multiply_in_order(input, q_weight, output, scales, zeros, None, bias, pack_factor, isa_hint)


def multiply_in_order(
    input: torch.Tensor,
    q_weight: torch.Tensor,
    output: torch.Tensor,
    scales: torch.Tensor,
    zeros: torch.Tensor | None,
    g_idx: torch.Tensor | None,
    bias: torch.Tensor | None,
    pack_factor: int,
    isa_hint: str,
) -> None:
    """output (M, N) = input (M, K) times the weight, plus bias (N).

    Weights are rounded to the input's type as the real operator does; the sums are of 32 bits, as there.
    Raises RuntimeError for what the real operator refuses.
    """
    if pack_factor != 8 or isa_hint != "vec":
        raise RuntimeError(f"cpu_gemm_wna16 knows no pack_factor {pack_factor} with isa_hint {isa_hint!r}")
    if zeros is not None and g_idx is not None:
        raise RuntimeError("cpu_gemm_wna16: zero points and an order of groups exclude each other")
    weight = dequantized(q_weight, scales, zeros, g_idx).to(input.dtype).float()
    product = input.float() @ weight
    if bias is not None:
        product += bias.float()
    output.copy_(product)


def dequantized(
    q_weight: torch.Tensor, scales: torch.Tensor, zeros: torch.Tensor | None, g_idx: torch.Tensor | None
) -> torch.Tensor:
    """The weight (K, N) in 32 bits.

    q_weight: (N / 16, K * 2) integers of 32 bits, a row for 16 outputs, two integers for each input; scales:
    (groups, N); zeros: (groups, N / 8) integers of 32 bits; g_idx: (K) the group of each input, else they
    follow one another.
    """
    inputs = q_weight.size(1) // 2
    numbers = unpacked(q_weight).view(-1, inputs, 16).transpose(0, 1).reshape(inputs, -1).float()
    if g_idx is not None:
        return (numbers - MIDDLE) * scales.float()[g_idx.long()]
    groups = numbers.view(scales.size(0), -1, scales.size(1))
    groups -= MIDDLE if zeros is None else unpacked(zeros).float().unsqueeze(1)
    groups *= scales.float().unsqueeze(1)
    return numbers


def unpacked(packed: torch.Tensor) -> torch.Tensor:
    """The eight 4-bit numbers of each integer of 32 bits, from the lowest on, along the last dimension."""
    octets = packed.contiguous().view(torch.uint8)
    return torch.stack((octets & 15, octets >> 4), dim=-1).flatten(-2)
