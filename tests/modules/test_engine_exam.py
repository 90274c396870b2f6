"""The exam of a release: each part passed, each part failed, and what is left out."""

import json
import sys
from pathlib import Path

import pytest
from ansible.module_utils.engine_exam import (
    PARTS,
    REFERENCE_PROMPT,
    TOOL_PROMPT,
    Exam,
    Matter,
    likeness,
    pool_tokens,
)
from ansible.module_utils.engine_probe import Answer, Endpoint
from ansible.module_utils.engine_watch import GateError, Question, Watch
from ansible.module_utils.progress import Progress

sys.path.insert(0, str(Path(__file__).parent))
from engine_doubles import ANSWER, KEY, Clock, Server, unit_state

QUESTION = Question("Name the capital city of France.", "Paris", 16, 5)
NUMBERS = "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15"
CALL = {"function": {"name": "get_weather", "arguments": '{"city": "Paris"}'}}
DRAFTS = "vllm:spec_decode_num_draft_tokens_total %d\nvllm:spec_decode_num_accepted_tokens_total %d\n"
PLAN = {"served_name": "qwen", "context": 4096, "concurrency": 1, "gate": {}}


class Engine(Server):
    """A server that answers each kind of request as its attributes say."""

    def __init__(self):
        super().__init__()
        self.numbers, self.call, self.said = NUMBERS, CALL, {"content": ANSWER}
        self.counts, self.growth = [0, 0], [0, 0]

    def answer(self, body):
        prompt = body["messages"][0]["content"]
        self.counts = [self.counts[0] + self.growth[0], self.counts[1] + self.growth[1]]
        self.metrics = DRAFTS % tuple(self.counts)
        message = self.said
        if prompt == REFERENCE_PROMPT:
            message = {"content": self.numbers}
        elif prompt == TOOL_PROMPT:
            wanted = self.call.get(body["tool_choice"], self.call)
            message = {"content": wanted} if isinstance(wanted, str) else {"tool_calls": [wanted]}
        return {"choices": [{"message": message}], "usage": {"prompt_tokens": len(prompt.split())}}


@pytest.fixture
def engine():
    found = Engine()
    yield found
    found.close()


@pytest.fixture
def examine(engine, tmp_path):
    """examine(log, reference=…, skipped=…, warm_tokens=…, **plan) -> what was found."""

    def call(log=(), reference=None, skipped=(), warm_tokens=0, **plan):
        clock, lines = Clock(), list(log)

        def new():
            found, lines[:] = list(lines), []
            return found

        endpoint = Endpoint("127.0.0.1", engine.port, KEY)
        progress = Progress(str(tmp_path / "progress"))
        watch = Watch("qwen", endpoint, unit_state, lambda: True, new, progress, clock, clock.sleep)
        matter = Matter({**PLAN, **plan}, QUESTION, reference, warm_tokens, skipped)
        told = []
        exam = Exam(watch, endpoint, matter, told.append)
        found = exam.run(Answer(ANSWER, 0.1, {}, "stop"))
        assert told == [part for part in PARTS if part not in skipped]
        return found

    return call


def refused(examine, *args, **kw):
    with pytest.raises(GateError) as error:
        examine(*args, **kw)
    return error.value


def test_one_that_is_well_passes_and_what_was_seen_is_told(examine):
    found = examine(reference=NUMBERS)
    assert found == {
        "stream_parts": len(ANSWER.split()),
        "warmed_tokens": [],
        "likeness": 1.0,
        "reference": NUMBERS,
    }


def test_one_sign_over_and_over_is_no_answer(examine, engine, tmp_path):
    endpoint = Endpoint("127.0.0.1", engine.port, KEY)
    clock = Clock()
    watch = Watch(
        "qwen", endpoint, unit_state, lambda: True, list, Progress(str(tmp_path / "p")), clock, clock.sleep
    )
    exam = Exam(watch, endpoint, Matter(PLAN, QUESTION, None, 0), lambda part: None)
    with pytest.raises(GateError, match="one sign over and over") as error:
        exam.run(Answer("!" * 64, 0.1, {}, "length"))
    assert error.value.kind == "garbled"


@pytest.mark.parametrize(
    ("stream", "said"),
    [
        (b"data: {}\n\n", "does not end as one"),
        (b"data: {}\n\ndata: [DONE]\n\n", "holds no text"),
        (b"data: {broken\n\ndata: [DONE]\n\n", "no event"),
        (b"", "does not end as one"),
        (
            b'data: {"choices": [{"delta": {"content": "%s"}}]}\n\ndata: [DONE]\n\n' % (b"word " * 40),
            "all of it came at once",
        ),
    ],
)
def test_a_stream_that_is_none(examine, engine, stream, said):
    engine.streamed = lambda: stream
    found = refused(examine)
    assert (found.kind, found.log) == ("stream", [])
    assert said in str(found)


def test_thoughts_that_are_streamed_count(examine, engine):
    delta = {"choices": [{"delta": {"reasoning_content": "hm "}}]}
    engine.streamed = lambda: f"data: {json.dumps(delta)}\n\ndata: [DONE]\n".encode()
    assert examine()["stream_parts"] == 1


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (CALL, None),
        ({"auto": "It is sunny.", "required": CALL}, None),
        ({"auto": '<tool_call>{"name": "get_weather"}</tool_call>'}, "tool-call-parser is another model's"),
        ({"auto": "<function=get_weather>"}, "tool-call-parser is another model's"),
        ({"auto": "It is sunny.", "required": "It is sunny."}, "it called none: It is sunny."),
        ({"function": {"name": "get_weather", "arguments": "{city"}}, "cannot be read"),
        ({"function": {"name": "get_weather", "arguments": '"Paris"'}}, "cannot be read"),
    ],
)
def test_calls_where_a_parser_for_them_is_declared(examine, engine, call, said):
    engine.call = call
    if said is None:
        assert json.loads(examine(gate={"tools": True})["tool_call"]) == {"city": "Paris"}
        return
    found = refused(examine, gate={"tools": True})
    assert found.kind == "tools"
    assert said in str(found)
    assert "tool_call" not in examine(gate={"tools": False})


def test_thoughts_where_a_parser_for_them_is_declared(examine, engine):
    engine.said = {"content": "Paris.", "reasoning": "It is Paris."}
    assert examine(gate={"reasoning": True})["reasoning_characters"] == 12
    engine.said = {"content": "<think>It is Paris.</think> Paris."}
    found = refused(examine, gate={"reasoning": True})
    assert found.kind == "reasoning"
    assert "reasoning-parser is another model's" in str(found)


def test_prompts_as_long_as_real_ones_none_of_them_in_the_cache(examine, engine):
    found = examine(warm_tokens=8192, concurrency=4)
    assert found["warmed_tokens"] == [385, 1537, 3073], "at most three quarters of the context"
    prompts = [body["messages"][0]["content"] for body in engine.asked if body["max_tokens"] == 4]
    long = [prompt for prompt in prompts if len(prompt) > 200]
    assert len(long) == 3 + 4
    assert len({prompt[:30] for prompt in long}) == 7
    assert examine(warm_tokens=0)["warmed_tokens"] == []


def test_one_that_dies_of_a_long_prompt_is_not_promoted(examine, engine):
    engine.on_chat = lambda: setattr(
        engine, "status", 500 if len(engine.asked[-1]["messages"][0]["content"]) > 1000 else 200
    )
    found = refused(examine, ["ERROR CUDA error: an illegal memory access"], warm_tokens=4096)
    assert found.kind == "warm"
    assert "HTTP 500" in str(found)
    assert found.log == ["ERROR CUDA error: an illegal memory access"]


@pytest.mark.parametrize(
    ("text", "passes"),
    [
        (NUMBERS, True),
        ("1,2,3,4,5,6,7,8,9,10,11,12,13,14,15.", True),
        ("Here you are: " + NUMBERS, True),
        ("ok ok ok 1 ok ok ok ok ok", False),
        ("Ġthe�� of 4 of of of , , ,", False),
    ],
)
def test_what_the_checkpoint_said_before(examine, engine, text, passes):
    engine.numbers = text
    assert examine(reference=None)["reference"] == text
    if passes:
        assert examine(reference=NUMBERS)["likeness"] >= 0.5
    else:
        found = refused(examine, reference=NUMBERS)
        assert found.kind == "reference"
        assert NUMBERS in str(found)
        assert "reference" not in examine(reference=NUMBERS, skipped=["reference"])


@pytest.mark.parametrize(
    ("method", "growth", "said"),
    [
        ("mtp", [30, 15], None),
        ("mtp", [30, 2], "less than 15 %: the draft head does not fit"),
        ("dflash2", [70, 21], None),
        ("ngram", [30, 1], None),
    ],
)
def test_drafts_are_accepted_or_it_is_not_promoted(examine, engine, method, growth, said):
    engine.growth = growth
    engine.counts = [1000, 900]
    engine.metrics = DRAFTS % (1000, 900)
    plan = {"speculative": {"method": method, "tokens": 3}, "gate": {"tools": True, "reasoning": True}}
    if said is None:
        assert examine(**plan)["drafts"]["drafted"] > 1000
    else:
        found = refused(examine, **plan)
        assert found.kind == "drafts"
        assert said in str(found)


def test_an_engine_without_counters_of_drafts_is_not_asked_for_them(examine):
    found = examine(speculative={"method": "mtp", "tokens": 3}, runtime={"drafts": None})
    assert "drafts" not in found


@pytest.mark.parametrize(
    ("line", "promised", "said"),
    [
        ("INFO GPU KV cache size: 29,184 tokens, Maximum concurrency", {"low": 29_000, "high": 31_000}, None),
        ("INFO GPU KV cache size: 28,000 tokens", 29_000, None),
        ("INFO GPU KV cache size: 21,000 tokens", 29_000, "holds 21000 tokens, and the plan promised 29000"),
        ("max_total_num_tokens=21000, chunked_prefill_size=8192", {"low": 29_000}, "promised 29000"),
        ("INFO nothing of it", 29_000, None),
        ("INFO GPU KV cache size: 21,000 tokens", None, None),
    ],
)
def test_the_cache_is_held_against_the_plan(examine, line, promised, said):
    log = ["INFO GPU KV cache size: 1 tokens", line] if "size" in line else [line]
    plan = {"memory": {"kv_tokens": promised} if promised else None}
    if said is None:
        examine(log, **plan)
        return
    found = refused(examine, log, **plan)
    assert found.kind == "pool"
    assert said in str(found)


def test_a_path_that_answers_without_the_key_is_told(examine, engine):
    engine.open_paths = {"/version"}
    assert examine(gate={"guarded": False})
    found = refused(examine, gate={"guarded": True})
    assert (found.kind, "/version answers without the key: HTTP 200" in str(found)) == ("open", True)
    assert examine(gate={"guarded": True}, open_paths=["/version"])


def test_every_part_can_be_left_out(examine, engine):
    assert examine(skipped=list(PARTS)) == {}
    assert engine.asked == []


def test_likeness():
    assert likeness(NUMBERS, NUMBERS) == 1
    assert likeness(NUMBERS, "") == 0
    assert likeness("", "") == 1
    assert pool_tokens([]) is None
