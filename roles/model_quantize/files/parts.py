"""What the quantizers share: events, the tokenizer, calibration, the result's description."""

from __future__ import annotations

import functools
import json
import math
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

#: The events have this stream for themselves: the libraries print what they like, which goes to the other
#: one.
EVENTS = os.fdopen(os.dup(1), "w", encoding="utf-8")

#: Names that hold the model's description, copied unchanged to the result.
DESCRIBING = (".json", ".model", ".tiktoken", ".jinja", ".txt")
#: Blocks of held-out text, at most, by which source and result are compared.
HELD_OUT_BLOCKS = 4
WRITTEN_HERE = ("config.json", "model.safetensors.index.json", ".boxwright-manifest.json")


class Refused(Exception):
    """Something that cannot work, said in one sentence. kind: one word."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind


def say(**event: Any) -> None:
    """One event for the module."""
    EVENTS.write(json.dumps(event) + "\n")
    EVENTS.flush()


def load_tokenizer(directory: Path) -> Any:
    """The tokenizer; read from its own file where there is one, whatever class its configuration names."""
    from transformers import AutoTokenizer, PreTrainedTokenizerFast

    fast = directory / "tokenizer.json"
    if fast.exists():
        return PreTrainedTokenizerFast(tokenizer_file=str(fast))
    return AutoTokenizer.from_pretrained(directory, trust_remote_code=False)


def held_out(text: str) -> tuple[str, str]:
    """The text without every tenth paragraph, and those: what a result is judged by, it is not made with.

    Of a text with few paragraphs, every tenth line; where these are too few or too short to judge by, its
    last tenth.
    """
    for between in ("\n\n", "\n"):
        parts = [part for part in text.split(between) if part.strip()]
        kept_back = between.join(parts[9::10])
        if 20 * len(kept_back) >= len(text):
            return between.join(part for number, part in enumerate(parts, 1) if number % 10), kept_back
    end = len(text) - len(text) // 10
    return text[:end], text[end:]


def calibration_blocks(tokenizer: Any, text: str, most: int, length: int) -> list[list[int]]:
    """The calibration text in blocks of `length` tokens, each begun as the model's prompts begin.

    Cut here, because AutoAWQ leaves out every sample that is longer than a block.
    """
    bare = tokenizer.encode("a", add_special_tokens=False)
    full = tokenizer.encode("a")
    prefix = full[: full.index(bare[0])] if bare and bare[0] in full else []
    tokens: list[int] = []
    length -= len(prefix)
    for part in text.split("\n\n"):
        tokens += tokenizer.encode(part + "\n\n", add_special_tokens=False)
        if len(tokens) >= most * length:
            break
    length = min(length, len(tokens))
    if length < 32:
        raise Refused(
            "calibration", f"the calibration text has only {len(tokens)} tokens; give at least some pages"
        )
    count = min(len(tokens) // length, most)
    return [prefix + tokens[n * length : (n + 1) * length] for n in range(count)]


def describe(source: Path, output: Path, config: dict[str, Any], changed: dict[str, Any]) -> None:
    """Give the result the source's description: its configuration plus what changed, its tokenizer as is.

    What another release of transformers writes would lose what it does not know.
    """
    for path in output.iterdir():
        if not (path.suffix == ".safetensors" or path.name == "model.safetensors.index.json"):
            path.unlink()
    for path in source.iterdir():
        if path.suffix in DESCRIBING and path.name not in WRITTEN_HERE and path.is_file():
            (output / path.name).write_bytes(path.read_bytes())
    merged = {**config, **changed}
    (output / "config.json").write_text(json.dumps(merged, indent=2) + "\n", encoding="utf-8")


def read_config(directory: Path) -> dict[str, Any]:
    """The config.json of a checkpoint."""
    config: dict[str, Any] = json.loads((directory / "config.json").read_text(encoding="utf-8"))
    return config


@contextmanager
def computing(model: Any, device: str, weights: Mapping[type, Callable[[Any, Any], Any]]) -> Iterator[None]:
    """Let a model that lies in main memory multiply elsewhere, one part of it at a time.

    On a card in half precision; on a processor in 32 bits, as few multiply shorter numbers in hardware.
    weights: for a class of parts, what gives a part's matrix (inputs by outputs) on a device.
    """
    import torch

    numbers = torch.float16 if device == "cuda" else torch.float32

    def multiply(part: Any, matrix: Callable[[Any, Any], Any], states: Any) -> Any:
        result = states.to(device, numbers) @ matrix(part, device).to(numbers)
        if part.bias is not None:
            result += part.bias.to(device, numbers)
        return result.to(states.device, states.dtype)

    changed = []
    for part in model.modules():
        matrix = next((found for kind, found in weights.items() if isinstance(part, kind)), None)
        if matrix is not None:
            part.forward = functools.partial(multiply, part, matrix)
            changed.append(part)
    try:
        yield
    finally:
        for part in changed:
            del part.forward


def mean_loss(model: Any, blocks: list[list[int]]) -> float:
    """The mean loss of a token, over the blocks; its exponential is the perplexity."""
    import torch

    total = 0.0
    with torch.no_grad():
        for block in blocks:
            tokens = torch.tensor([block], dtype=torch.long)
            scores = model(input_ids=tokens, use_cache=False).logits[0, :-1].float()
            total += float(torch.nn.functional.cross_entropy(scores, tokens[0, 1:].to(scores.device)))
    return total / len(blocks)


def measured(before: float, after: float, blocks: list[list[int]]) -> None:
    """Tell how well source and result predict a text, from their mean losses."""
    say(
        event="measured",
        perplexity_source=math.exp(before),
        perplexity=math.exp(after),
        held_out_tokens=sum(map(len, blocks)),
    )
