"""The gate of deployments that make vectors or rank documents: first answer and exam, passed and failed."""

import json
import math
import sys
from pathlib import Path

import pytest
from ansible.module_utils.engine_exam import Matter
from ansible.module_utils.engine_probe import Endpoint, ProbeError
from ansible.module_utils.engine_vector_exam import NEAR, PARTS, VectorExam
from ansible.module_utils.engine_vectors import DOCUMENTS, FITTING, cosine, first_answer, scores, vectors
from ansible.module_utils.engine_watch import GateError, Question, Watch, question_of
from ansible.module_utils.progress import Progress

from boxwright.planner.result import PROMPTS

sys.path.insert(0, str(Path(__file__).parent))
from engine_doubles import KEY, Clock, Vectors, letters, unit_state

#: Answers of a real vLLM to this exam, as it gave them (tests/engines/record_vectors.py).
RECORDED = json.loads(Path(__file__).with_name("recorded_vectors.json").read_text(encoding="utf-8"))


@pytest.fixture
def engine():
    found = Vectors()
    yield found
    found.close()


@pytest.fixture
def examine(engine, tmp_path):
    """examine(serves, reference=…, skipped=…, warm_tokens=…, **plan) -> what was found."""

    def call(serves="embeddings", reference=None, skipped=(), warm_tokens=0, log=(), **plan):
        clock, lines = Clock(), list(log)

        def new():
            found, lines[:] = list(lines), []
            return found

        endpoint = Endpoint("127.0.0.1", engine.port, KEY)
        progress = Progress(str(tmp_path / "progress"))
        watch = Watch("e", endpoint, unit_state, lambda: True, new, progress, clock, clock.sleep)
        question = question_of({"serves": serves, "prompt": PROMPTS[serves], "timeout_s": 5})
        told = []
        matter = Matter(
            {"served_name": "qwen", "gate": {}, **plan}, question, reference, warm_tokens, skipped
        )
        exam = VectorExam(watch, endpoint, matter, told.append)
        found = exam.run(watch.ask("qwen", question))
        assert told == [part for part in PARTS if part not in skipped]
        return found

    return call


def refused(examine, *args, **kw):
    with pytest.raises(GateError) as error:
        examine(*args, **kw)
    return error.value


def asked(engine, serves="embeddings", prompt=NEAR):
    return first_answer(Endpoint("127.0.0.1", engine.port, KEY), "qwen", serves, prompt, 5)


def test_one_that_makes_vectors_passes_and_what_was_seen_is_told(examine, engine):
    found = examine()
    reference = found.pop("reference")
    assert found == {
        "numbers": 26,
        "near": round(cosine(letters(NEAR), letters("A cat is sleeping on a sofa.")), 4),
        "far": round(cosine(letters(NEAR), letters(DOCUMENTS[2])), 4),
        "warmed_tokens": [],
    }
    again = examine(reference=reference)
    assert again["likeness"] == 1.0
    assert not any("messages" in body for body in engine.asked), "it is not asked for words"


def test_one_that_ranks_passes(examine, engine):
    found = examine("reranking")
    assert found["scores"].index(max(found["scores"])) == FITTING
    assert json.loads(found["reference"]) == pytest.approx(found["scores"], abs=1e-4)
    assert examine("reranking", reference=found["reference"])["apart"] == 0
    assert not any("input" in body for body in engine.asked)


def test_the_first_answer_is_told_in_words(engine):
    answer = asked(engine)
    assert answer.text.startswith("a vector of 26 numbers: ")
    assert answer.usage == {"prompt_tokens": 8}
    assert (
        asked(engine, "reranking", "What is the capital of France?")
        .text.split(": ")[1]
        .startswith("The capital")
    )


NAN, INFINITE = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda text: [NAN, 1.0], "nan stands where a number should"),
        (lambda text: [INFINITE, 1.0], "inf stands where a number should"),
        (lambda text: [None, 1.0], "None stands where a number should"),
        (lambda text: [True, 1.0], "True stands where a number should"),
        (lambda text: [0.0, 0.0], "every number of its vector is 0"),
        (lambda text: [], "holds no vector"),
        (lambda text: "AACAPw==", "holds no vector"),
    ],
)
def test_what_is_no_vector(examine, engine, made, said):
    engine.made = made
    found = refused(examine)
    assert found.kind == "silent"
    assert said in str(found)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda document: {"object": "list"}, "holds no data"),
        (lambda document: {**document, "data": []}, "1 were asked about, and the reply has []"),
        (lambda document: {**document, "data": [{"index": 7, "embedding": [1.0]}]}, "the reply has [7]"),
        (lambda document: {**document, "data": ["x"]}, "holds no data"),
        (lambda document: "x", "holds no data"),
    ],
)
def test_what_is_no_reply(engine, change, said):
    engine.change = change
    with pytest.raises(ProbeError) as error:
        asked(engine)
    assert said in str(error.value)


def test_vectors_of_one_model_have_one_length(engine):
    engine.made = lambda text: [1.0] * len(text)
    with pytest.raises(ProbeError, match=r"have \[1, 2\] numbers"):
        vectors(Endpoint("127.0.0.1", engine.port, KEY), "qwen", ["a", "ab"], 5)


def test_the_same_text_has_one_vector(examine, engine):
    count = iter(range(100))
    engine.made = lambda text: [float(next(count) == 4), 1.0, letters(text)[0]]
    found = refused(examine)
    assert found.kind == "meaning"
    assert "the same text twice has two vectors" in str(found)


def test_near_texts_are_closer_than_far_ones(examine, engine):
    engine.made = lambda text: [1.0, 0.5]
    found = refused(examine)
    assert found.kind == "meaning"
    assert "Interest rates" in str(found)
    assert "meaning" not in str(examine(skipped=["meaning"]))


@pytest.mark.parametrize(
    ("scored", "said"),
    [
        (lambda query, text: -len(text), "it ranks 'Giant pandas eat bamboo.' (-24) before 'The capital of"),
        (lambda query, text: 0.5, "ranks 'Giant pandas"),
    ],
)
def test_the_fitting_document_comes_first(examine, engine, scored, said):
    engine.scored = scored
    found = refused(examine, "reranking")
    assert found.kind == "meaning"
    assert said in str(found)


@pytest.mark.parametrize("score", [NAN, None, "high"])
def test_what_is_no_score(examine, engine, score):
    engine.scored = lambda query, text: 0.5
    engine.change = lambda document: {
        "results": [{**entry, "relevance_score": score} for entry in document["results"]]
    }
    assert "stands where a number should" in str(refused(examine, "reranking"))


def test_the_bare_list_of_the_other_engine(engine):
    engine.change = lambda document: [
        {"index": entry["index"], "score": entry["relevance_score"], "document": "x"}
        for entry in document["results"]
    ]
    found = scores(Endpoint("127.0.0.1", engine.port, KEY), "qwen", "a", ["b", "a"], 5)
    assert found.numbers == [0.0, 1.0]
    assert found.tokens == 0


@pytest.mark.parametrize(
    ("serves", "before", "said"),
    [
        ("embeddings", [1.0] * 26, "another one than the release before it made"),
        ("embeddings", [1.0, 2.0], "it answers 26 numbers, and once 2"),
        ("reranking", [0.9, 0.1, 0.9], "they were [0.9, 0.1, 0.9]"),
    ],
)
def test_what_the_checkpoint_made_before(examine, serves, before, said):
    found = refused(examine, serves, reference=json.dumps(before))
    assert found.kind == "reference"
    assert said in str(found)
    assert "reference" not in examine(serves, reference=json.dumps(before), skipped=["reference"])


@pytest.mark.parametrize("before", ["1, 2, 3, 4", "", "[]", '["a"]', "{}", "[0, 0]"])
def test_words_that_were_kept_are_no_numbers_to_compare_with(examine, before):
    assert "likeness" not in examine(reference=before)


def test_texts_as_long_as_the_engine_takes_them(examine, engine):
    found = examine(warm_tokens=8192, concurrency=4)
    assert max(found["warmed_tokens"]) <= 512, "three quarters of what the engine says it takes"
    assert found["warmed_tokens"] == sorted(found["warmed_tokens"])
    assert len(found["warmed_tokens"]) == 2
    long = [body["input"][0] for body in engine.asked if len(body["input"][0].split()) > 60]
    assert len({text[:30] for text in long}) == len(long) == 2 + 4
    engine.longest = None
    assert max(examine(warm_tokens=1024)["warmed_tokens"]) > 900


def test_a_tokenizer_of_letters_gets_fewer_words(examine, engine):
    engine.change = lambda document: {**document, "usage": {"prompt_tokens": 40_000}}
    assert examine(warm_tokens=8192)["warmed_tokens"] == []


def test_one_that_dies_of_a_long_text_is_not_promoted(examine, engine):
    engine.on_chat = lambda: setattr(
        engine, "status", 500 if len(str(engine.asked[-1].get("input"))) > 1000 else 200
    )
    found = refused(examine, warm_tokens=4096)
    assert found.kind == "warm"
    assert "HTTP 500" in str(found)


def test_paths_that_a_key_does_not_guard_by_itself(examine, engine):
    assert examine(gate={"guarded": True})
    for path in ("/pooling", "/score", "/rerank", "/metrics"):
        engine.open_paths = {path}
        found = refused(examine, gate={"guarded": True})
        assert found.kind == "open"
        assert f"{path} answers without the key" in str(found)


def test_an_engine_that_answers_without_the_key_is_refused(engine, tmp_path):
    engine.key = None
    endpoint, clock = Endpoint("127.0.0.1", engine.port, KEY), Clock()
    watch = Watch(
        "e", endpoint, unit_state, lambda: True, list, Progress(str(tmp_path / "p")), clock, clock.sleep
    )
    with pytest.raises(GateError) as error:
        watch.ask("qwen", question_of({"serves": "embeddings", "prompt": NEAR}))
    assert error.value.kind == "open"


def test_a_deployment_that_serves_text_is_asked_as_before():
    assert question_of(None) == Question("Say hello.", None, 64, 120, "text")


@pytest.mark.parametrize("case", RECORDED, ids=lambda case: case["what"])
def test_what_the_real_engine_answered(examine, engine, case):
    """Each reply is the recorded one for the same request."""
    replies = {json.dumps(one["asked"], sort_keys=True): one for one in case["exchanges"]}

    def answer(body):
        known = replies[json.dumps({**body, "model": case["model"]}, sort_keys=True)]
        engine.status = known["status"]
        return known["answer"]

    engine.answer, engine.longest = answer, case["longest"]
    if case["refused"]:
        found = refused(examine, case["serves"], warm_tokens=8192)
        assert found.kind == case["refused"]
        return
    found = examine(case["serves"], warm_tokens=8192)
    found.pop("reference")
    assert found == case["found"]
    assert not any(math.isnan(number) for number in found.get("scores", [0]))
