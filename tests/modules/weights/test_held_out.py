"""What a result is judged by: never what it was made with, and enough of it, whatever the text's form."""

import sys

import pytest

from ..conftest import ROOT

sys.path.insert(0, str(ROOT / "roles/model_quantize/files"))
from parts import Refused, calibration_blocks, held_out

WORDS = [f"word{number}" for number in range(3000)]
OWN = (ROOT / "roles/model_quantize/files/calibration.txt").read_text()


class Tokenizer:
    """A token a word; prompts begin with one of their own."""

    def encode(self, text, add_special_tokens=True):
        return [*(["<s>"] if add_special_tokens else []), *text.split()]


def cut(size, between):
    """The words in parts of so many."""
    return between.join(" ".join(WORDS[at : at + size]) for at in range(0, len(WORDS), size))


@pytest.mark.parametrize(
    "text",
    [
        cut(30, "\n\n"),
        cut(30, "\n"),
        cut(3000, "\n"),
        cut(1000, "\n\n"),
        cut(30, "\n\n").replace(cut(30, "\n\n").split("\n\n")[9], "Thanks.") + "\n\nShort.",
        "\n\n".join(["x"] * 9 + ["y"]) + "\n\n" + cut(3000, ""),
    ],
    ids=["paragraphs", "lines", "one line", "few paragraphs", "some are short", "what is kept is short"],
)
def test_a_tenth_is_kept_back(text):
    made_with, judged_by = (part.split() for part in held_out(text))
    assert (
        sorted([*made_with, *judged_by]) == sorted(text.split())
        or abs(len(made_with) + len(judged_by) - len(text.split())) <= 1
    )
    assert 0.05 <= len(judged_by) / len(text.split()) <= 0.2
    assert len(set(made_with) & set(judged_by)) <= 1


def test_the_text_that_comes_along():
    made_with, judged_by = held_out(OWN)
    assert 0.05 <= len(judged_by) / len(OWN) <= 0.2
    assert not set(judged_by.split("\n\n")) & set(made_with.split("\n\n"))


def test_blocks():
    blocks = calibration_blocks(Tokenizer(), cut(30, "\n\n"), 4, 101)
    assert [len(block) for block in blocks] == [101] * 4
    assert [block[0] for block in blocks] == ["<s>"] * 4
    assert blocks[1][1] == "word100"
    with pytest.raises(Refused, match="only 3 tokens"):
        calibration_blocks(Tokenizer(), "one two three", 4, 101)
