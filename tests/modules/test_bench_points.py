"""The points of the two sweeps, and what the engine's benchmark is called with."""

import pytest
from ansible.module_utils.bench_points import CONTEXT, PROMPTS, Point, PointError, argv, dataset, points

RELEASE = {"command": ["vllm", "serve", "/model", "--max-model-len", "4096"]}


def test_without_numbers_both_sweeps_go_as_far_as_the_release():
    found = points([], [], output=128, context=32768, concurrency=8)
    assert [one.concurrency for one in found if one.kind == PROMPTS] == [1, 2, 4, 8]
    assert [one.context for one in found if one.kind == CONTEXT] == [1024, 4096, 16384, 32576]


def test_a_release_of_an_odd_size_is_measured_at_its_end_too():
    found = points([], [], output=32, context=1000, concurrency=6)
    assert [(one.concurrency, one.context) for one in found] == [
        (1, None), (2, None), (4, None), (6, None), (1, 904),
    ]  # fmt: skip


def test_numbers_are_taken_as_they_are_and_zero_leaves_a_sweep_out():
    assert points([3], [0], 64, 4096, 8) == [Point(PROMPTS, 3)]
    assert points([0], [512], 64, 4096, 8) == [Point(CONTEXT, 1, 512)]
    assert points([0], [0], 64, 4096, 8) == []


def test_a_prompt_that_does_not_fit_is_refused_with_what_does():
    with pytest.raises(PointError, match="at most 3968"):
        points([1], [4000], output=64, context=4096, concurrency=8)


def test_no_two_prompts_begin_alike():
    found = dataset(["one", "two"], Point(PROMPTS, 4), "n0")
    texts = [entry["conversations"][0]["value"] for entry in found]
    assert len(texts) == 8
    assert len({text.split(" ")[0] for text in texts}) == 8
    assert all(len(entry["conversations"]) == 2 for entry in found)


def option(words, name):
    return words[words.index(name) + 1]


def test_the_command_of_a_place_with_prompts():
    words = argv(RELEASE, "qwen", 8000, Point(PROMPTS, 4), 128, 7)
    assert words[:3] == ["vllm", "bench", "serve"]
    assert option(words, "--dataset-name") == "sharegpt"
    assert option(words, "--endpoint") == "/v1/chat/completions"
    assert (option(words, "--num-prompts"), option(words, "--max-concurrency")) == ("8", "4")
    assert (option(words, "--model"), option(words, "--tokenizer")) == ("qwen", "/model")
    assert "--trust-remote-code" not in words


def test_the_command_of_a_place_of_a_context():
    release = {"command": ["/opt/venv/bin/vllm", "serve", "/model", "--trust-remote-code"]}
    words = argv(release, "qwen", 8000, Point(CONTEXT, 1, 8192), 64, 7, ready=False)
    assert words[0] == "/opt/venv/bin/vllm"
    assert (option(words, "--random-input-len"), option(words, "--random-output-len")) == ("8192", "64")
    assert "--trust-remote-code" in words
    assert "--ready-check-timeout-sec" not in words
