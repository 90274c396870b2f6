"""How bad a line is, by who says it: a warning, in passing, a model, or about another program."""

import pytest

from boxwright.doctor import Log, diagnose

WARNED = "(EngineCore pid=7) WARNING 11-29 10:00:00 [cache.py:9] could not write the cache: {}"
NO_SPACE = "[Errno 28] No space left on device"
TOO_MANY = "429 Client Error: Too Many Requests for url: https://hub.example.org/x"
OOM = "torch.OutOfMemoryError: CUDA out of memory."


def found(*lines):
    report = diagnose([Log("log", "\n".join(lines).encode())])
    return report.verdict, [(one.id, one.severity) for one in report.causes]


@pytest.mark.parametrize(("said", "name"), [(NO_SPACE, "disk-full"), (TOO_MANY, "hub-rate-limit")])
@pytest.mark.parametrize(
    "warned",
    [
        "(EngineCore pid=7) WARNING 11-29 10:00:00 [cache.py:9] could not write: {}",
        "WARNING:huggingface_hub.file_download:{}",
        "2026-11-29 10:00:00,123 - hub - WARNING - {}",
        "[WARNING] {}",
        "[rank0]:[W806 00:24:22.696840597 x.cpp:1479] {}",
        'time="2026-11-29T10:00:00Z" level=warning msg="{}"',
        '{{"level": "warning", "message": "{}"}}',
    ],
)
def test_what_is_warned_of_is_not_fatal(warned, said, name):
    assert found(warned.format(said)) == ("slows", [(name, "slows")])
    error = warned.replace("WARNING", "ERROR").replace("warning", "error").replace("[W8", "[E8")
    assert found(error.format(said)) == ("fatal", [(name, "fatal")])


def test_the_worst_line_counts_and_is_shown():
    report = diagnose([Log("log", "\n".join([WARNED.format(NO_SPACE), "OSError: " + NO_SPACE]).encode())])
    [one] = report.causes
    assert (one.severity, one.count) == ("fatal", 2)
    assert one.evidence[0].text == "OSError: " + NO_SPACE
    assert "only warned of" not in one.cause


def test_that_it_is_only_warned_of_is_said():
    report = diagnose([Log("log", WARNED.format(NO_SPACE).encode())])
    assert "only warned of" in report.causes[0].cause


@pytest.mark.parametrize("level", ["INFO", "DEBUG"])
@pytest.mark.parametrize("said", [NO_SPACE, TOO_MANY, OOM, "OSError: Address already in use"])
def test_what_is_told_in_passing_is_no_fault(level, said):
    assert found(f"{level} 11-29 10:00:00 [x.py:1] {said}") == ("fine", [])


@pytest.mark.parametrize(
    "talk",
    [
        "Model says: {}",
        "Assistant: {}",
        "user> {}",
        "Prompt: '{}'",
        '{{"role": "user", "content": "{}"}}',
        '{{"id": "chatcmpl-1", "choices": [{{"message": {{"role": "assistant", "content": "{}"}}}}]}}',
        'curl -d \'{{"model": "m", "prompt": "{}"}}\'',
        "Received request x: prompt: '{}', params: SamplingParams",
        "(APIServer pid=1) INFO 11-29 10:00:00 [logger.py:1] Received request x: prompt: '{}'",
    ],
)
@pytest.mark.parametrize(
    "said",
    [NO_SPACE, OOM, "Segmentation fault", "Segmentation fault (core dumped)", "CUDA error: out of memory",
     "out of memory", "exit code: 1", "No CUDA GPUs are available"],
)  # fmt: skip
def test_what_was_said_to_or_by_a_model_is_no_fault(talk, said):
    assert found(talk.format(said)) == ("fine", [])


def test_what_a_long_request_says_is_no_fault():
    said = "(APIServer pid=1) INFO 11-29 10:00:00 [logger.py:1] Received request x: prompt: '"
    assert found(said + "word " * 20_000 + OOM + " word" * 20_000 + "'") == ("fine", [])
    # A line as long that an engine ends with is one, and is shown around what matters.
    report = diagnose([Log("log", ("ERROR 11-29 10:00:00 [x.py:1] " + "word " * 20_000 + OOM).encode())])
    assert report.verdict == "fatal"
    assert OOM in report.causes[0].evidence[0].text
    assert len(report.causes[0].evidence[0].text) <= 100


@pytest.mark.parametrize(
    ("program", "verdict", "name"),
    [
        ("firefox", "slows", "main-memory-short"),
        ("java", "slows", "main-memory-short"),
        ("VLLM::EngineCor", "fatal", "main-memory-full"),
        ("VLLM::Worker_TP", "fatal", "main-memory-full"),
        ("python3", "fatal", "main-memory-full"),
        ("sglang::schedul", "fatal", "main-memory-full"),
        ("dockerd", "fatal", "main-memory-full"),
    ],
)
def test_it_matters_whom_the_kernel_killed(program, verdict, name):
    line = (
        f"[ 5124.221] Out of memory: Killed process 4242 ({program}) total-vm:79471988kB, anon-rss:5225576kB"
    )
    assert found(line) == (verdict, [(name, verdict)])


def test_a_program_of_another_container_that_is_killed_is_no_fault_of_the_engine():
    assert found("Memory cgroup out of memory: Killed process 812 (postgres) total-vm:1203908kB") == (
        "fine",
        [],
    )


@pytest.mark.parametrize(
    ("line", "name"),
    [
        (OOM, "cuda-out-of-memory"),
        ("torch.cuda.OutOfMemoryError: CUDA out of memory", "cuda-out-of-memory"),
        ("RuntimeError: CUDA out of memory.", "cuda-out-of-memory"),
        ("RuntimeError: Triton Error [CUDA]: CUDA_ERROR_OUT_OF_MEMORY", "cuda-out-of-memory"),
        ("OSError: Address already in use", "port-in-use"),
        ("ERROR:    [Errno 98] Address already in use", "port-in-use"),
        ("Error: listen tcp 127.0.0.1:8000: bind: address already in use", "port-in-use"),
    ],
)
def test_bare_errors_have_their_names(line, name):
    assert found(line) == ("fatal", [(name, "fatal")])


def test_a_port_that_is_tried_again_is_not_the_endpoints():
    line = "WARNING 11-29 10:00:00 [parallel.py:750] Address already in use. Retrying with a new port."
    assert found(line) == ("fine", [])


@pytest.mark.parametrize("before", [0, 40, 95, 400, 3000])
def test_a_long_line_is_shown_around_what_was_found(before):
    line = "x" * before + " RuntimeError: CUDA error: an illegal memory access was encountered " + "y " * 300
    text = diagnose([Log("log", line.encode())]).causes[0].evidence[0].text
    assert "an illegal memory access was encountered" in text
    assert len(text) <= 100
    assert text.endswith("…")
    assert text.startswith("…") == (before > 30)
