"""AutoAWQ's part of quantize.py."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from parts import (
    HELD_OUT_BLOCKS,
    Refused,
    calibration_blocks,
    computing,
    describe,
    held_out,
    load_tokenizer,
    mean_loss,
    measured,
    read_config,
    say,
)


def older_config(config: dict[str, Any]) -> dict[str, Any]:
    """The configuration as transformers 4 reads it; newer releases name rope and number format otherwise."""
    older = dict(config)
    rope = older.pop("rope_parameters", None)
    if rope is not None:
        if not isinstance(rope, dict) or any(isinstance(part, dict) for part in rope.values()):
            raise Refused(
                "unsupported",
                "its layers have different rotary embeddings, which AutoAWQ's transformers cannot read",
            )
        older.setdefault("rope_theta", rope.get("rope_theta", 10000.0))
        scaling = {name: value for name, value in rope.items() if name != "rope_theta"}
        plain = scaling.get("rope_type", "default") == "default"
        older.setdefault("rope_scaling", None if plain else scaling)
    if "dtype" in older:
        older.setdefault("torch_dtype", older.pop("dtype"))
    return older


def make_view(source: Path, view: Path) -> dict[str, Any]:
    """A directory that looks like the source to an older transformers; the source's configuration."""
    config = read_config(source)
    view.mkdir()
    for path in source.iterdir():
        if path.name not in ("config.json", ".boxwright-manifest.json"):
            (view / path.name).symlink_to(path.resolve())
    (view / "config.json").write_text(json.dumps(older_config(config)), encoding="utf-8")
    return config


def telling(layers: Sequence[Any], **_: Any) -> Iterator[Any]:
    """Stands in for AutoAWQ's progress bar."""
    total = len(layers)
    for done, layer in enumerate(layers):
        say(event="layers", done=done, total=total)
        yield layer
    say(event="layers", done=total, total=total)


def loss(model: Any, device: str, blocks: list[list[int]]) -> float:
    """The mean loss of a token of a model, whether its weights are integers by now or not yet.

    AutoAWQ's own way to compute with integers needs a card, and each release of it another kernel.
    """
    import torch
    from awq.modules.linear.gemm import WQLinear_GEMM
    from awq.utils.packing_utils import dequantize_gemm

    def plain(part: Any, device: str) -> Any:
        return part.weight.to(device).t()

    def packed(part: Any, device: str) -> Any:
        numbers, zeros, scales = (tensor.to(device) for tensor in (part.qweight, part.qzeros, part.scales))
        return dequantize_gemm(numbers, zeros, scales.float(), part.w_bit, part.group_size)

    model.to("cpu")
    with computing(model, device, {torch.nn.Linear: plain, WQLinear_GEMM: packed}):
        return mean_loss(model, blocks)


def quantize(job: dict[str, Any], device: str) -> None:
    """Load, measure, quantize, measure again, save."""
    say(event="stage", stage="loading the tools")
    import torch
    from awq import AutoAWQForCausalLM
    from awq.quantize import quantizer

    quantizer.tqdm = telling
    torch.manual_seed(0)
    source, output, view = (Path(job[name]) for name in ("source", "output", "view"))
    config = make_view(source, view)
    say(event="stage", stage="loading the model")
    tokenizer = load_tokenizer(view)
    text, unseen = held_out(Path(job["calibration"]).read_text(encoding="utf-8"))
    blocks = calibration_blocks(tokenizer, text, job["blocks"], job["block_tokens"])
    judging = calibration_blocks(tokenizer, unseen, HELD_OUT_BLOCKS, job["block_tokens"])
    # On the processor at first, layer by layer on a card: the whole model need not fit there.
    model = AutoAWQForCausalLM.from_pretrained(
        str(view), torch_dtype=torch.float16, trust_remote_code=False, safetensors=True, device_map="cpu"
    )
    say(event="stage", stage="measuring the source")
    before = loss(model.model, device, judging)
    say(event="stage", stage="quantizing on the %s" % ("card" if device == "cuda" else "processor"))
    model.quantize(
        tokenizer,
        quant_config={
            "zero_point": True,
            "q_group_size": job["group_size"],
            "w_bit": job["bits"],
            "version": "GEMM",
        },
        calib_data=blocks,
        max_calib_samples=len(blocks),
        max_calib_seq_len=len(blocks[0]),
        n_parallel_calib_samples=8 if device == "cuda" else None,
    )
    say(event="stage", stage="measuring the result")
    measured(before, loss(model.model, device, judging), judging)
    say(event="stage", stage="saving")
    model.save_quantized(str(output), safetensors=True, shard_size="4GB")
    written = json.loads((output / "config.json").read_text(encoding="utf-8"))
    numbers = "dtype" if "dtype" in config else "torch_dtype"
    describe(
        source,
        output,
        config,
        {"quantization_config": written["quantization_config"], numbers: "float16"},
    )
    say(event="calibrated", blocks=len(blocks), block_tokens=len(blocks[0]))
