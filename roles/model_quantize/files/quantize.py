"""Makes an INT4 checkpoint of a 16-bit one with AutoAWQ; run by the module quantized_model.

Argument: a JSON file with source, output and view (directories), bits, group_size, calibration (a text file),
blocks (at most so many), block_tokens, layer_bytes and device (auto, cuda, cpu). Says on standard output, one
JSON object a line, what it does: "stage", "layers" with done and total, at last "done" or "error" with a
kind. Needs no hub.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

#: The events have this stream for themselves: the libraries print what they like, which goes to the other
#: one.
EVENTS = os.fdopen(os.dup(1), "w", encoding="utf-8")

#: Bytes of a card that a layer's calibration needs beside the layer itself: activations and candidates of a
#: scale.
CARD_HEADROOM = 6 * 1024**3
#: Names that hold the model's description, copied unchanged to the result.
DESCRIBING = (".json", ".model", ".tiktoken", ".jinja", ".txt")
WRITTEN_HERE = ("config.json", "model.safetensors.index.json", ".boxwright-manifest.json")

#: Asked of a process of its own: this one must choose its cards before torch is loaded.
CARDS = """
import json, torch
count = torch.cuda.device_count() if torch.cuda.is_available() else 0
print(json.dumps([torch.cuda.mem_get_info(n)[0] for n in range(count)]))
"""


class Refused(Exception):
    """Something that cannot work, said in one sentence. kind: one word."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind


def say(**event: Any) -> None:
    """One event for the module."""
    EVENTS.write(json.dumps(event) + "\n")
    EVENTS.flush()


def choose_device(wanted: str, layer_bytes: int) -> tuple[str, str]:
    """Where to work and why; makes the other cards invisible. layer_bytes: the largest layer."""
    done = subprocess.run(
        [sys.executable, "-I", "-c", CARDS], stdout=subprocess.PIPE, text=True, timeout=180, check=False
    )
    free = json.loads(done.stdout) if done.returncode == 0 else []
    needed = 4 * layer_bytes + CARD_HEADROOM
    best = max(range(len(free)), key=free.__getitem__, default=None)
    if wanted != "cpu" and best is not None and free[best] >= needed:
        os.environ["CUDA_VISIBLE_DEVICES"] = str(best)
        return "cuda", f"card {best} has {free[best] / 1024**3:.1f} GiB free"
    why = (
        "torch sees no card"
        if best is None
        else f"no card has the {needed / 1024**3:.1f} GiB free that a layer needs"
    )
    if wanted == "cuda":
        raise Refused("no-card", why)
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    return "cpu", "asked for" if wanted == "cpu" else why


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
    config: dict[str, Any] = json.loads((source / "config.json").read_text(encoding="utf-8"))
    view.mkdir()
    for path in source.iterdir():
        if path.name not in ("config.json", ".boxwright-manifest.json"):
            (view / path.name).symlink_to(path.resolve())
    (view / "config.json").write_text(json.dumps(older_config(config)), encoding="utf-8")
    return config


def load_tokenizer(view: Path) -> Any:
    """The tokenizer; read from its own file where there is one, whatever class its configuration names."""
    from transformers import AutoTokenizer, PreTrainedTokenizerFast

    fast = view / "tokenizer.json"
    if fast.exists():
        return PreTrainedTokenizerFast(tokenizer_file=str(fast))
    return AutoTokenizer.from_pretrained(view, trust_remote_code=False)


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


def telling(layers: Sequence[Any], **_: Any) -> Iterator[Any]:
    """Stands in for AutoAWQ's progress bar."""
    total = len(layers)
    for done, layer in enumerate(layers):
        say(event="layers", done=done, total=total)
        yield layer
    say(event="layers", done=total, total=total)


def quantize(job: dict[str, Any], device: str) -> None:
    """Load, quantize, save."""
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
    text = Path(job["calibration"]).read_text(encoding="utf-8")
    blocks = calibration_blocks(tokenizer, text, job["blocks"], job["block_tokens"])
    # On the processor at first, layer by layer on a card: the whole model need not fit there.
    model = AutoAWQForCausalLM.from_pretrained(
        str(view), torch_dtype=torch.float16, trust_remote_code=False, safetensors=True, device_map="cpu"
    )
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
    say(event="stage", stage="saving")
    model.save_quantized(str(output), safetensors=True, shard_size="4GB")
    finish(source, output, config)
    say(event="calibrated", blocks=len(blocks), block_tokens=len(blocks[0]))


def finish(source: Path, output: Path, config: dict[str, Any]) -> None:
    """Give the result the source's description: its configuration plus the quantization, its tokenizer as is.

    What an older transformers writes would lose what it does not know.
    """
    written = json.loads((output / "config.json").read_text(encoding="utf-8"))
    for path in output.iterdir():
        if not (path.suffix == ".safetensors" or path.name == "model.safetensors.index.json"):
            path.unlink()
    for path in source.iterdir():
        if path.suffix in DESCRIBING and path.name not in WRITTEN_HERE and path.is_file():
            (output / path.name).write_bytes(path.read_bytes())
    merged = dict(config, quantization_config=written["quantization_config"])
    merged["dtype" if "dtype" in config else "torch_dtype"] = "float16"
    (output / "config.json").write_text(json.dumps(merged, indent=2) + "\n", encoding="utf-8")


def main() -> int:
    """Work; the exit status is 0 when the last event is done, 1 when it is an error."""
    job = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    os.dup2(2, 1)
    try:
        device, why = choose_device(job["device"], job["layer_bytes"])
        say(event="device", device=device, why=why)
        quantize(job, device)
    except Refused as error:
        say(event="error", kind=error.kind, detail=str(error))
        return 1
    except MemoryError:
        say(event="error", kind="memory", detail="")
        return 1
    except Exception as error:
        card = type(error).__name__ == "OutOfMemoryError"
        say(
            event="error",
            kind="card-memory" if card else "unexpected",
            detail=f"{type(error).__name__}: {str(error).partition(chr(10))[0]}",
        )
        raise
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    say(event="done", device=device, peak_bytes=peak)
    return 0


if __name__ == "__main__":
    sys.exit(main())
