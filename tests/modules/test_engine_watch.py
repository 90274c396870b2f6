"""The wait for an engine: stages, crashes, hangs, and the question it must answer."""

import sys
from pathlib import Path

import pytest
from ansible.module_utils.engine_probe import Endpoint, ProbeError, drafts
from ansible.module_utils.engine_watch import GateError, Question, Watch, question_of
from ansible.module_utils.progress import Progress

sys.path.insert(0, str(Path(__file__).parent))
from engine_doubles import ANSWER, KEY, Clock, Server, unit_state

QUESTION = Question("Name the capital city of France.", "Paris", 16, 5)
LOADING = "(EngineCore pid=7) INFO 11-29 10:00:00 [x.py:1] Starting to load model /model..."
COMPILING = "(EngineCore pid=7) INFO 11-29 10:00:00 [x.py:1] Dynamo bytecode transform time: 5.73 s"
ERROR = [
    "(EngineCore pid=7) ERROR 11-29 10:00:00 [x.py:1] Traceback (most recent call last):",
    '(EngineCore pid=7) ERROR 11-29 10:00:00 [x.py:1]   File "/x.py", line 1, in f',
    "(EngineCore pid=7) ERROR 11-29 10:00:00 [x.py:1] ValueError: no room",
]


@pytest.fixture
def server():
    found = Server()
    yield found
    found.close()


class Host:
    """A unit whose state and log follow a script: at second N this happens."""

    def __init__(self, clock):
        self.clock = clock
        self.states = {0: unit_state()}
        self.lines = {}
        self.present_from = 0
        self._read = -1

    def show(self):
        return [state for second, state in sorted(self.states.items()) if second <= self.clock.now][-1]

    def new_lines(self):
        found = [line for second, lines in sorted(self.lines.items()) for line in lines
                 if self._read < second <= self.clock.now]  # fmt: skip
        self._read = self.clock.now
        return found

    def present(self):
        return self.clock.now >= self.present_from


@pytest.fixture
def host():
    return Host(Clock())


@pytest.fixture
def watch(host, server, tmp_path):
    endpoint = Endpoint("127.0.0.1", server.port, KEY)
    progress = Progress(str(tmp_path / "progress"))
    return Watch(
        "qwen", endpoint, host.show, host.present, host.new_lines, progress, host.clock, host.clock.sleep
    )


def listed(watch, timeout_s=100, **stages):
    watch.until_listed("qwen", timeout_s, stages)


def failure(action, *args, **kw):
    with pytest.raises(GateError) as error:
        action(*args, **kw)
    return error.value


def test_one_that_serves_is_listed_at_once_and_its_log_is_not_read(watch, host):
    host.lines[0] = [LOADING]
    listed(watch)
    assert (host.clock.now, watch.log) == (0, [])


def test_what_answers_on_the_port_before_the_container_is_somebody_else(watch, host, server):
    server.models = ["another"]
    host.present_from = 50
    host.states[3] = unit_state("activating", "auto-restart", code="exited", status=125)
    host.lines[3] = ["docker: Error response from daemon: address already in use."]
    found = failure(listed, watch)
    assert (found.kind, found.log) == (
        "crashed",
        ["docker: Error response from daemon: address already in use."],
    )
    assert "exit status 125" in str(found)


@pytest.mark.parametrize(
    ("state", "said"),
    [
        (unit_state("activating", "auto-restart", status=1), "ended with exit status 1"),
        (unit_state("failed", "failed", result="exit-code", status=2), "ended with exit status 2"),
        (unit_state("inactive", "dead", status=0), "ended with exit status 0"),
        (unit_state("active", "running", restarts=1, status=0), "ended with exit status 0"),
        (unit_state("failed", "failed", code="killed", status=9), "killed by signal 9"),
        (unit_state("failed", "failed", code="2", status=11), "killed by signal 11"),
        (unit_state("failed", "failed", result="start-limit-hit"), "ended too often"),
    ],
)
def test_a_crash_is_seen_within_seconds_with_its_log(watch, host, state, said):
    host.present_from = 1000
    host.lines = {2: [LOADING], 40: ERROR}
    host.states[40] = state
    found = failure(listed, watch, timeout_s=900)
    assert found.kind == "crashed"
    assert host.clock.now <= 43
    assert said in str(found)
    assert found.stage == "loading"
    assert found.log == [LOADING, *ERROR]


def test_lines_that_come_after_the_end_are_read(watch, host):
    host.present_from = 1000
    host.states[5] = unit_state("failed", "failed", status=1)
    host.lines[6] = ERROR
    assert failure(listed, watch).log == ERROR


def test_a_stage_that_lasts_too_long_is_a_hang_and_its_log_is_kept(watch, host):
    host.present_from = 1000
    host.lines = {1: [LOADING], 3: ["(Worker pid=9) INFO 11-29 10:00:00 [x.py:1] NCCL version 2.27.3"]}
    found = failure(listed, watch, timeout_s=900, loading=30)
    assert (found.kind, found.stage) == ("hung", "loading")
    assert 30 <= host.clock.now <= 34
    assert found.log[-1].endswith("NCCL version 2.27.3")


def test_each_stage_has_its_own_time(watch, host):
    host.present_from = 70
    host.lines = {1: [LOADING], 25: [COMPILING]}
    listed(watch, timeout_s=900, starting=30, loading=30, compiling=60)
    assert host.clock.now == 70


def test_the_whole_has_a_time_too(watch, host):
    host.present_from = 1000
    host.lines = {second: [LOADING] for second in range(200)}
    found = failure(listed, watch, timeout_s=60, loading=500)
    assert found.kind == "slow"
    assert "engine_start_timeout_s" in str(found)


def test_another_model_is_named(watch, server):
    server.models = ["other", "third"]
    found = failure(listed, watch)
    assert (found.kind, str(found)) == ("wrong-model", "it serves other, third, not qwen")


def test_another_key_is_told(watch, server):
    server.key = "another"
    found = failure(listed, watch)
    assert found.kind == "unauthorized"
    assert KEY not in str(found)


def test_progress_names_stage_and_parts(watch, host, tmp_path):
    host.present_from = 4
    host.lines = {0: [LOADING, "Loading safetensors checkpoint shards:  50% Completed | 2/4 [00:01<00:01]"]}
    listed(watch)
    assert '"qwen: loading", "done": 2, "total": 4' in (tmp_path / "progress").read_text()


def test_a_real_answer(watch, server):
    found = watch.ask("qwen", QUESTION)
    assert (found.text, found.usage, found.finish_reason) == (ANSWER, {"completion_tokens": 8}, "stop")
    assert server.asked[0]["messages"] == [{"role": "user", "content": QUESTION.prompt}]
    assert (server.asked[0]["model"], server.asked[0]["max_tokens"], server.asked[0]["temperature"]) == (
        "qwen",
        16,
        0,
    )


@pytest.mark.parametrize(
    "message",
    [{"content": None, "reasoning_content": "It is Paris"}, {"content": "", "reasoning": "It is Paris"}],
)
def test_an_answer_that_was_still_thought_about_counts(watch, server, message):
    server.reply["choices"][0]["message"] = message
    assert watch.ask("qwen", QUESTION).text == "It is Paris"


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ({"choices": [{"message": {"content": ""}}]}, "the answer is empty"),
        ({"choices": [{"message": {"content": None}}]}, "the answer is empty"),
        ({"choices": [{"message": {"content": " \n"}}]}, "the answer is empty"),
        ({"choices": []}, "holds no message"),
        ({"error": "x"}, "holds no message"),
        (["x"], "answered"),
        (b"<html>", "no JSON"),
    ],
)
def test_what_is_no_answer_is_shown(watch, server, reply, said):
    server.reply = reply
    found = failure(watch.ask, "qwen", QUESTION)
    assert found.kind == "silent"
    assert said in str(found)


def test_an_error_status_is_told_with_its_message(watch, server):
    server.status, server.reply = 500, {"error": {"message": "EngineCore encountered an issue", "code": 500}}
    assert "HTTP 500: EngineCore encountered an issue" in str(failure(watch.ask, "qwen", QUESTION))


def test_an_engine_that_dies_of_the_question_has_crashed(watch, host, server):
    server.status, server.reply = 500, {"error": "x"}
    host.states[3] = unit_state("activating", "auto-restart", status=0)
    host.lines[3] = ERROR
    found = failure(watch.ask, "qwen", QUESTION)
    assert (found.kind, found.log) == ("crashed", ERROR)


def test_no_answer_in_time(watch, server):
    import threading

    released = threading.Event()
    server.on_chat = lambda: released.wait(10)
    found = failure(watch.ask, "qwen", QUESTION._replace(timeout_s=0.3))
    released.set()
    assert "no answer within 0.3 s" in str(found)


def test_an_endpoint_without_a_key_is_refused(watch, server):
    server.key = None
    assert failure(watch.ask, "qwen", QUESTION).kind == "open"


def test_an_unexpected_answer_is_quoted(watch, server):
    server.reply["choices"][0]["message"]["content"] = "!!!!!!"
    found = failure(watch.ask, "qwen", QUESTION)
    assert found.kind == "unexpected"
    assert "'!!!!!!'" in str(found)
    assert "'Paris'" in str(found)


def test_any_answer_will_do_where_none_is_expected(watch, server):
    server.reply["choices"][0]["message"]["content"] = "!!!!!!"
    assert watch.ask("qwen", QUESTION._replace(expect=None)).text == "!!!!!!"


@pytest.mark.parametrize(
    ("bind", "host"),
    [("0.0.0.0", "127.0.0.1"), ("::", "::1"), ("10.0.0.5", "10.0.0.5"), ("127.0.0.1", "127.0.0.1")],
)
def test_every_address_is_asked_where_it_can_be(bind, host):
    assert Endpoint(bind, 1).host == host


def test_nobody_there():
    with pytest.raises(ProbeError) as error:
        Endpoint("127.0.0.1", 1).models()
    assert error.value.kind == "down"


@pytest.mark.parametrize(
    ("gate", "question"),
    [
        (None, Question("Say hello.", None, 64, 120.0)),
        ({"prompt": "a", "expect": "b", "max_tokens": 5, "timeout_s": 6}, Question("a", "b", 5, 6.0)),
        ({"prompt": None, "expect": None}, Question("Say hello.", None, 64, 120.0)),
    ],
)
def test_the_plans_question(gate, question):
    assert question_of(gate) == question


METRICS = """\
# HELP vllm:spec_decode_num_draft_tokens_total Number of draft tokens.
vllm:spec_decode_num_draft_tokens_total{engine="0",model_name="q"} 30.0
vllm:spec_decode_num_draft_tokens_total{engine="1",model_name="q"} 12.0
vllm:spec_decode_num_accepted_tokens_total{engine="0",model_name="q"} 20.0
vllm:spec_decode_num_accepted_tokens_total{engine="1",model_name="q"} nan?
"""


@pytest.mark.parametrize(
    ("text", "found"), [(METRICS, (42, 20)), ("", None), ("vllm:num_requests_running 1", None)]
)
def test_drafts_are_counted_over_all_processes(text, found):
    assert drafts(text) == found


@pytest.mark.parametrize(
    ("metrics", "outcome"),
    [
        (METRICS, (42, 20)),
        (METRICS.replace("20.0", "0.0"), "it drafted 42 tokens and none was accepted"),
        (METRICS.replace("20.0", "0.0").replace("30.0", "3.0"), (15, 0)),
        ("vllm:num_requests_running 1", "counts no drafts"),
    ],
)
def test_drafting_that_never_helps_is_a_failure(watch, server, metrics, outcome):
    server.metrics = metrics
    if isinstance(outcome, tuple):
        assert watch.drafts() == outcome
    else:
        found = failure(watch.drafts)
        assert (found.kind, outcome in str(found)) == ("drafts", True)


SGLANG_START = [
    f"[2026-11-29 10:00:00] server_args={{'model_path': '/model', 'api_key': '{KEY}'}}",
    "[2026-11-29 10:00:01 TP0] Load weight begin. avail mem=30.9 GB",
]


def test_a_key_that_the_engine_writes_to_its_log_is_not_shown(watch, host):
    host.present_from = 999
    host.lines = {1: SGLANG_START}
    found = failure(listed, watch, timeout_s=5)
    assert watch.log[0].endswith("'api_key': '(the key)'}")
    assert KEY not in repr((watch.log, vars(found), str(found)))
    assert found.stage == "loading"


def test_drafts_are_counted_by_the_names_that_the_plan_gives(watch, server):
    server.metrics = 'x:made{a="1"} 40\nx:kept 30\n'
    assert watch.drafts(["x:made", "x:kept"]) == (40, 30)
    assert failure(watch.drafts).kind == "drafts"
