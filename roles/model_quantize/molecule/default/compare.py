"""Does an AutoAWQ checkpoint compute what its source does? Prints the worst similarity of their scores.

Independent of the role and of AutoAWQ: the integers are unpacked here, as an engine unpacks them.
Arguments: source directory, quantized directory.
"""

import json
import sys
from pathlib import Path

import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast

#: Where AutoAWQ's GEMM layout puts the eight 4-bit numbers of a word.
ORDER = [0, 4, 1, 5, 2, 6, 3, 7]
PROMPTS = ["The capital city of France is", "def add(a, b):\n    return", "One two three four five six seven"]


def unpack(words: torch.Tensor) -> torch.Tensor:
    """4-bit numbers of 32-bit words, in the order of the output columns."""
    shifts = torch.arange(0, 32, 4)
    numbers = (words.unsqueeze(-1) >> shifts) & 15
    return numbers[..., ORDER].flatten(-2)


def weights(directory: Path) -> dict[str, torch.Tensor]:
    """All tensors by name; quantized ones as the 16-bit weights that they stand for."""
    tensors: dict[str, torch.Tensor] = {}
    for path in sorted(directory.glob("*.safetensors")):
        tensors.update(load_file(path))
    plain = {}
    for name, tensor in tensors.items():
        if name.endswith(".qweight"):
            stem = name.removesuffix("qweight")
            scales = tensors[stem + "scales"].float()
            group = tensor.shape[0] // scales.shape[0]
            zeros = unpack(tensors[stem + "qzeros"]).repeat_interleave(group, 0)
            weight = (unpack(tensor) - zeros) * scales.repeat_interleave(group, 0)
            plain[stem + "weight"] = weight.t().contiguous()
        elif not name.endswith((".qzeros", ".scales")):
            plain[name] = tensor.float()
    return plain


def main() -> None:
    """Compare the two on a few prompts."""
    source, made = Path(sys.argv[1]), Path(sys.argv[2])
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(made / "tokenizer.json"))
    model = AutoModelForCausalLM.from_pretrained(source, torch_dtype=torch.float32)
    worst = 1.0
    with torch.no_grad():
        prompts = [tokenizer(prompt, return_tensors="pt").input_ids for prompt in PROMPTS]
        before = [model(prompt).logits for prompt in prompts]
        missing, unexpected = model.load_state_dict(weights(made), strict=False)
        for prompt, expected in zip(prompts, before, strict=True):
            alike = torch.nn.functional.cosine_similarity(model(prompt).logits, expected, dim=-1)
            worst = min(worst, float(alike.min()))
    missing = [name for name in missing if name != "lm_head.weight"]
    print(json.dumps({"similarity": worst, "missing": missing, "unexpected": unexpected}))


if __name__ == "__main__":
    main()
