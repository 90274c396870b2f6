"""Secrets in texts."""

import json
from urllib.parse import quote

import pytest

from boxwright.facts.parsers.masking import mask

SECRET = "abcdef0123456789"


@pytest.mark.parametrize(
    "text",
    [
        "token hf_" + SECRET,
        "Authorization: Bearer " + SECRET,
        "'api_key': ['" + SECRET + "']",
        "--api-key " + SECRET,
        "--api-key=" + SECRET,
        "VLLM_API_KEY=" + SECRET,
        "HF_TOKEN=" + SECRET,
        "password: " + SECRET,
        "https://user:" + SECRET + "@example.org/x",
        "sk-" + SECRET,
        "ghp_" + SECRET,
        '{\\"api_key\\": \\"' + SECRET + '\\"}',
        "['vllm', '--api-key', '" + SECRET + "']",
    ],
)
def test_it_is_gone(text):
    assert SECRET not in mask(text)


def test_what_is_known_to_be_secret_goes_wherever_it_stands():
    assert mask("xx" + SECRET + "yy", [SECRET]) == "xx***yy"
    assert mask("short: abc, abcd 1.abc xabc", ["abc"]) == "short: ***, abcd 1.abc xabc"
    assert (
        mask("as short as ab stays where it is no value", ["ab"])
        == "as short as ab stays where it is no value"
    )


@pytest.mark.parametrize("secret", ['with"quote\\and/slash', "pässwörd-1", "a b&c=d?e#f"])
def test_a_known_secret_goes_however_it_is_written(secret):
    inner = json.dumps(secret)
    written = [
        secret,
        inner,
        json.dumps(inner),
        json.dumps(secret, ensure_ascii=False),
        quote(secret, safe=""),
    ]
    for text in written:
        assert mask(f"x{text}y", [secret]).replace("\\", "").replace('"', "") == "x***y"


def test_of_a_secret_that_holds_another_nothing_is_left():
    assert mask("key-12-longer", ["key-12", "key-12-longer"]) == "***"


@pytest.mark.parametrize(
    "text",
    [
        "max_num_seqs (256) exceeds available Mamba cache blocks (117)",
        "GPU KV cache size: 377,456 tokens",
        "Invalid user token.",
        "If the token is missing",
        "https://huggingface.co/api/models/org/model",
        "num_speculative_tokens must be provided with speculative model",
        "Tokenizer class 'X' specified in the tokenizer config was not found",
    ],
)
def test_what_is_none_stays(text):
    assert mask(text) == text
