"""Does an AutoAWQ checkpoint compute what its source does? Prints the worst similarity of a layer's work.

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


def layer_work(model: torch.nn.Module, prompts: list[torch.Tensor]) -> list[torch.Tensor]:
    """What every layer adds to its input, for each prompt: the input itself would hide a broken layer."""
    added: list[torch.Tensor] = []

    def note(_: torch.nn.Module, inputs: tuple, outputs: tuple | torch.Tensor) -> None:
        output = outputs[0] if isinstance(outputs, tuple) else outputs
        added.append(output - inputs[0])

    hooks = [layer.register_forward_hook(note) for layer in model.model.layers]
    with torch.no_grad():
        for prompt in prompts:
            model(prompt)
    for hook in hooks:
        hook.remove()
    return added


def main() -> None:
    """Compare the two on a few prompts."""
    source, made = Path(sys.argv[1]), Path(sys.argv[2])
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(made / "tokenizer.json"))
    prompts = [tokenizer(prompt, return_tensors="pt").input_ids for prompt in PROMPTS]
    model = AutoModelForCausalLM.from_pretrained(source, torch_dtype=torch.float32)
    before = layer_work(model, prompts)
    missing, unexpected = model.load_state_dict(weights(made), strict=False)
    after = layer_work(model, prompts)
    alike = [
        float(torch.cosine_similarity(one, other, dim=-1).mean())
        for one, other in zip(after, before, strict=True)
    ]
    missing = [name for name in missing if name != "lm_head.weight"]
    print(json.dumps({"similarity": min(alike), "missing": missing, "unexpected": unexpected}))


if __name__ == "__main__":
    main()
