"""llm-compressor's part of quantize.py: its AWQ, then rounding to integers with a scale a group."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from parts import (
    HELD_OUT_BLOCKS,
    Refused,
    calibration_blocks,
    describe,
    held_out,
    load_tokenizer,
    mean_loss,
    measured,
    read_config,
    say,
)

#: Tensors of draft layers: transformers does not load them, so they are carried over.
DRAFTING = "mtp"
_PASS = re.compile(r"\((\d+)/(\d+)\): Calibrating")


def telling(items: Iterable[Any], *arguments: Any, desc: str = "", **_: Any) -> Iterator[Any]:
    """Stands in for llm-compressor's progress bars, of which one for each layer says where it is."""
    place = _PASS.match(desc)
    if place:
        # The last part is the head, which is not quantized.
        say(event="layers", done=int(place[1]) - 1, total=int(place[2]))
    yield from items


def load_model(source: Path, config: dict[str, Any]) -> Any:
    """The model as the class that its configuration names, in bfloat16.

    In float16 the sums overflow by which scales are judged (0.14.0.1: "No finite loss was found").
    """
    import torch
    import transformers

    names = config.get("architectures") or []
    kind = getattr(transformers, str(names[0]), None) if names else None
    if kind is None:
        raise Refused(
            "unsupported",
            f"transformers {transformers.__version__} has no class {names[0] if names else 'for it'}",
        )
    return kind.from_pretrained(str(source), dtype=torch.bfloat16, trust_remote_code=False).eval()


def recipe(bits: int, group_size: int, kept: list[str]) -> list[Any]:
    """What llm-compressor does, in order. kept: modules that stay at 16 bits."""
    from compressed_tensors.quantization import QuantizationArgs, QuantizationScheme
    from llmcompressor.modifiers.quantization import QuantizationModifier
    from llmcompressor.modifiers.transform.awq import AWQModifier

    weights = QuantizationArgs(
        num_bits=bits, type="int", strategy="group", group_size=group_size, symmetric=True, dynamic=False
    )
    scheme = QuantizationScheme(targets=["Linear"], weights=weights)
    return [
        AWQModifier(duo_scaling="both"),
        QuantizationModifier(config_groups={"group_0": scheme}, ignore=kept),
    ]


def carry_over(source: Path, output: Path) -> None:
    """Take the draft layers' tensors to the result where saving has not."""
    from compressed_tensors.utils import save_mtp_tensors_to_checkpoint
    from safetensors import safe_open

    def names(directory: Path) -> set[str]:
        found: set[str] = set()
        for path in directory.glob("*.safetensors"):
            with safe_open(str(path), framework="pt") as stream:
                found.update(stream.keys())
        return found

    drafting = {name for name in names(source) if name.startswith(DRAFTING + ".")}
    if drafting - names(output):
        save_mtp_tensors_to_checkpoint(str(source), str(output), mtp_prefix=DRAFTING)


def quantize(job: dict[str, Any], device: str) -> None:
    """Load, measure, quantize, measure again, save."""
    say(event="stage", stage="loading the tools")
    import torch
    from llmcompressor import oneshot
    from llmcompressor.pipelines.sequential import pipeline

    pipeline.tqdm = telling
    if device == "cpu":
        # 0.14.0.1 pins memory whether or not there is a card to copy it to; torch then fails.
        torch.Tensor.pin_memory = lambda self, *_, **__: self
    torch.manual_seed(0)
    source, output = Path(job["source"]), Path(job["output"])
    config = read_config(source)
    say(event="stage", stage="loading the model")
    tokenizer = load_tokenizer(source)
    text, unseen = held_out(Path(job["calibration"]).read_text(encoding="utf-8"))
    blocks = calibration_blocks(tokenizer, text, job["blocks"], job["block_tokens"])
    judging = calibration_blocks(tokenizer, unseen, HELD_OUT_BLOCKS, job["block_tokens"])
    model = load_model(source, config)
    say(event="stage", stage="measuring the source")
    before = mean_loss(model, judging)
    say(event="stage", stage="quantizing on the %s" % ("card" if device == "cuda" else "processor"))
    batches = [
        {
            "input_ids": torch.tensor([block], dtype=torch.long),
            "attention_mask": torch.ones(1, len(block), dtype=torch.long),
        }
        for block in blocks
    ]
    loader = torch.utils.data.DataLoader(batches, batch_size=None)
    oneshot(
        model=model,
        processor=tokenizer,
        dataset=loader,
        recipe=recipe(job["bits"], job["group_size"], job["kept"]),
        max_seq_length=len(blocks[0]),
        num_calibration_samples=len(blocks),
        pipeline="sequential",
    )
    say(event="stage", stage="measuring the result")
    after = mean_loss(model, judging)
    measured(before, after, judging)
    say(event="stage", stage="saving")
    model.save_pretrained(str(output), save_compressed=True, max_shard_size="4GB")
    carry_over(source, output)
    written = json.loads((output / "config.json").read_text(encoding="utf-8"))
    numbers = [name for name in ("dtype", "torch_dtype") if name in config]
    changed = {"quantization_config": written["quantization_config"], **dict.fromkeys(numbers, "bfloat16")}
    describe(source, output, config, changed)
    say(event="calibrated", blocks=len(blocks), block_tokens=len(blocks[0]))
