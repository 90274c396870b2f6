"""Write tiny BERT models with random weights: one that makes vectors, and some that rank. Run it where
transformers is, as in an engine's image: python3 tiny_encoders.py DIRECTORY
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

#: Random rankers of these seeds: the first puts the fitting document first, the second does not.
RANKERS = (9, 0)
SEPARATORS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
WORDS = (
    "the cat sleeps is sleeping on sofa interest rates rose by quarter of percent in march what capital "
    "france paris giant pandas eat bamboo"
)
STEPS = ("Transformer", "Pooling", "Normalize")


def vocabulary() -> list[str]:
    """A WordPiece vocabulary: every letter, alone and within a word, and some words."""
    letters = [chr(code) for code in range(33, 127)]
    return [*SEPARATORS, *letters, *("##" + letter for letter in letters), *WORDS.split()]


def main(directory: Path) -> None:
    """Write the models."""
    import torch
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import (
        BertConfig,
        BertForSequenceClassification,
        BertModel,
        PreTrainedTokenizerFast,
    )

    known = {token: number for number, token in enumerate(vocabulary())}
    words = Tokenizer(models.WordPiece(known, unk_token="[UNK]"))
    words.normalizer = normalizers.BertNormalizer(lowercase=True)
    words.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    words.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", known["[CLS]"]), ("[SEP]", known["[SEP]"])],
    )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=words,
        model_max_length=512,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
    )
    sizes = {
        "vocab_size": len(known),
        "hidden_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 256,
        "max_position_embeddings": 512,
    }

    folder = directory / "tiny-bert-embed"
    torch.manual_seed(0)
    BertModel(BertConfig(**sizes), add_pooling_layer=False).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    steps = [
        {"idx": place, "name": str(place), "path": f"{place}_{name}" if place else "",
         "type": f"sentence_transformers.models.{name}"}
        for place, name in enumerate(STEPS)
    ]  # fmt: skip
    (folder / "1_Pooling").mkdir(exist_ok=True)
    for name, value in (
        ("modules.json", steps),
        ("sentence_bert_config.json", {"max_seq_length": 256, "do_lower_case": False}),
        ("1_Pooling/config.json", {"word_embedding_dimension": 128, "pooling_mode_mean_tokens": True}),
    ):
        (folder / name).write_text(json.dumps(value), encoding="utf-8")

    for seed in RANKERS:
        torch.manual_seed(seed)
        ranker = BertForSequenceClassification(BertConfig(num_labels=1, **sizes))
        with torch.no_grad():
            ranker.classifier.weight.mul_(50)  # so that scores lie apart by more than rounding
        folder = directory / f"tiny-bert-rerank-{seed}"
        ranker.save_pretrained(folder)
        tokenizer.save_pretrained(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
