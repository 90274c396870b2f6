"""Tokenizer files as the transformers library reads them, from release 4.51 to 5: byte-level BPE."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Tokenizer:
    """A byte-level BPE tokenizer.

    vocabulary: tokens by their ids (0, 1, …); merges: pairs as "left right"; special: tokens that are left
    out of decoded text; words: other tokens that text is cut at and that stay in it; bos, eos, pad, unknown:
    special tokens by their part; digits: each digit is a token of its own; length: the longest text in
    tokens.
    """

    vocabulary: Sequence[str]
    merges: Sequence[str]
    special: Sequence[str]
    eos: str
    pad: str
    chat_template: str
    length: int
    bos: str | None = None
    unknown: str | None = None
    digits: bool = False
    words: Sequence[str] = ()

    def write(self, folder: Path) -> None:
        """Write tokenizer.json, tokenizer_config.json and special_tokens_map.json."""
        ids = {token: number for number, token in enumerate(self.vocabulary)}
        by_bytes = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
        splitting: object = by_bytes
        if self.digits:
            one_by_one = {"type": "Digits", "individual_digits": True}
            splitting = {"type": "Sequence", "pretokenizers": [one_by_one, by_bytes]}
        added = [
            {
                "id": ids[token],
                "content": token,
                "single_word": False,
                "lstrip": False,
                "rstrip": False,
                "normalized": False,
                "special": token in self.special,
            }
            for token in sorted([*self.special, *self.words], key=ids.__getitem__)
        ]
        _write(
            folder / "tokenizer.json",
            {
                "version": "1.0",
                "truncation": None,
                "padding": None,
                "added_tokens": added,
                "normalizer": None,
                "pre_tokenizer": splitting,
                "post_processor": None,
                "decoder": by_bytes,
                "model": {
                    "type": "BPE",
                    "dropout": None,
                    "unk_token": self.unknown,
                    "continuing_subword_prefix": None,
                    "end_of_word_suffix": None,
                    "fuse_unk": False,
                    "byte_fallback": False,
                    "ignore_merges": False,
                    "vocab": ids,
                    "merges": list(self.merges),
                },
            },
        )
        named = {
            "bos_token": self.bos,
            "eos_token": self.eos,
            "pad_token": self.pad,
            "unk_token": self.unknown,
        }
        names = {key: token for key, token in named.items() if token is not None}
        _write(folder / "special_tokens_map.json", names)
        _write(
            folder / "tokenizer_config.json",
            {
                **names,
                "tokenizer_class": "PreTrainedTokenizerFast",
                "model_max_length": self.length,
                "clean_up_tokenization_spaces": False,
                "add_prefix_space": False,
                "additional_special_tokens": [token for token in self.special if token not in names.values()],
                "added_tokens_decoder": {str(item.pop("id")): item for item in added},
                "chat_template": self.chat_template,
            },
        )


def _write(path: Path, value: Mapping[str, object]) -> None:
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
