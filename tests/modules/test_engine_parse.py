"""The new image reads its options before the old engine is stopped."""

import pytest
from ansible.module_utils import engine_parse
from ansible.module_utils.command import Result

STATE = {
    "name": "qwen",
    "reference": "vllm/vllm-openai@sha256:" + "a" * 64,
    "command": ["vllm", "serve", "/model", "--swap-space", "4"],
    "env": {"NCCL_P2P_DISABLE": "1"},
    "access": "cdi",
    "devices": ["GPU-1"],
    "model_directory": "/var/lib/boxwright/models/q",
}
USAGE = "usage: vllm serve [model_tag] [options]\nvllm serve: error: unrecognized arguments: --swap-space 4\n"


@pytest.mark.parametrize(
    ("result", "refusal", "doubt"),
    [
        (Result(0, "INFO", "WARNING something"), None, None),
        (Result(2, "", USAGE), "unrecognized arguments: --swap-space 4", None),
        (Result(2, "", "python3: can't open file"), None, "python3: can't open file"),
        (Result(1, "", "Traceback\nImportError: no vllm"), None, "ImportError: no vllm"),
        (Result(125, "", "docker: Error response: x\n"), None, "docker: Error response: x"),
        (Result(124, "", "docker: no answer within 300 s"), None, "docker: no answer within 300 s"),
        (Result(1, "", ""), None, "exit status 1"),
    ],
)
def test_only_a_parser_that_says_so_refuses(monkeypatch, result, refusal, doubt):
    monkeypatch.setattr(engine_parse, "run", lambda argv, timeout: result)
    assert engine_parse.parsed(STATE, "program") == (refusal, doubt)


def test_the_container_can_do_nothing_but_read():
    words = engine_parse.command(STATE, "program")
    assert {"--rm", "--read-only"} <= set(words)
    assert words[words.index("--network") + 1] == "none"
    assert words[words.index("--cap-drop") + 1] == "ALL"
    place = words.index(STATE["reference"])
    assert words[place:] == [STATE["reference"], "-c", "program", "serve", "/model", "--swap-space", "4"]
    assert not {"--publish", "--volume"} & set(words)
    assert not any("api-key" in word for word in words)
    assert "--user" not in words
    words = engine_parse.command({**STATE, "user": "2000:0"}, "program")
    assert words[words.index("--user") + 1] == "2000:0"
