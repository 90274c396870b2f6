"""The lines of a log that say why an engine ended."""

import pytest

from boxwright.doctor.tracebacks import root_cause
from boxwright.facts.parsers.log_lines import parse

CORE = "(EngineCore_DP0 pid=191) ERROR 03-18 13:41:09 [core.py:866] "
START = """\
(APIServer pid=1) INFO 03-18 13:40:01 [api_server.py:1839] vLLM API server version 0.32.0
(APIServer pid=1) INFO 03-18 13:40:02 [utils.py:233] non-default args: {'model_tag': '/model', 'compilation_config': 'torch.compile'}
(EngineCore_DP0 pid=191) INFO 03-18 13:40:30 [core.py:93] Initializing a V1 LLM engine (v0.32.0) with config: model='/model'
(EngineCore_DP0 pid=191) INFO 03-18 13:40:35 [gpu_model_runner.py:3562] Starting to load model /model...
Loading safetensors checkpoint shards:   0% Completed | 0/4 [00:00<?, ?it/s]\rLoading safetensors checkpoint shards:  50% Completed | 2/4 [00:01<00:01,  1.9it/s]
(EngineCore_DP0 pid=191) INFO 03-18 13:41:09 [backends.py:643] Using cache directory: /cache/vllm/torch_compile_cache/4aae/rank_0_0/backbone for vLLM's torch.compile
(EngineCore_DP0 pid=191) INFO 03-18 13:41:09 [backends.py:703] Dynamo bytecode transform time: 5.73 s
(EngineCore_DP0 pid=191) Capturing CUDA graphs (mixed prefill-decode, PIECEWISE):  50%|█████     | 2/4
(EngineCore_DP0 pid=191) INFO 03-18 13:42:09 [core.py:259] init engine (profile, create kv cache, warmup model) took 12.50 seconds
(APIServer pid=1) INFO:     Application startup complete.
""".strip("\n").split("\n")  # noqa: E501


def said(log, last=5):
    found = root_cause(map(parse, log), last)
    return list(found.lines) if found else []


def core(*lines):
    return [CORE + line for line in lines]


SERVER_WRAPPER = [
    "(APIServer pid=1) Traceback (most recent call last):",
    '(APIServer pid=1)   File "/usr/local/bin/vllm", line 8, in <module>',
    "(APIServer pid=1)     sys.exit(main())",
    "(APIServer pid=1) RuntimeError: Engine core initialization failed. See root cause above. Failed: {}",
]
KV = (
    "ValueError: To serve at least one request with the model's max seq len (262144), (16.0 GiB KV cache is "
    "needed, which is larger than the available KV cache memory (1.5 GiB)."
)


def test_the_core_says_why_and_the_server_does_not():
    log = [
        *START[:4],
        *core(
            "EngineCore failed to start.",
            "Traceback (most recent call last):",
            '  File "/core.py", line 857, in run_engine_core',
            "    engine_core = EngineCoreProc(*args, **kwargs)",
            KV,
        ),
        "(EngineCore_DP0 pid=191) Process EngineCore_DP0:",
        *SERVER_WRAPPER,
    ]
    assert said(log) == [KV]


def test_lines_of_two_processes_may_mix():
    log = core("Traceback (most recent call last):", '  File "/core.py", line 857, in run')
    log += [SERVER_WRAPPER[0], *core(KV), *SERVER_WRAPPER[1:]]
    assert said(log) == [KV]


def test_of_chained_ones_the_last_is_for_people():
    log = core(
        "Traceback (most recent call last):",
        '  File "/a.py", line 1, in f',
        "KeyError: 'qwen9'",
        "",
        "The above exception was the direct cause of the following exception:",
        "",
        "Traceback (most recent call last):",
        '  File "/b.py", line 1, in g',
        "ValueError: Unknown architecture qwen9",
    )
    assert said(log + SERVER_WRAPPER) == [
        "ValueError: Unknown architecture qwen9",
        "raised from KeyError: 'qwen9'",
    ]


def test_messages_of_several_lines_stay_together():
    log = [
        "(APIServer pid=1) Traceback (most recent call last):",
        '(APIServer pid=1)   File "/x.py", line 1, in f',
        "(APIServer pid=1) pydantic_core._pydantic_core.ValidationError: 1 validation error for ModelConfig",
        "(APIServer pid=1)   Value error, Unknown quantization method: foo. [type=value_error]",
        "(APIServer pid=1)     For further information visit https://errors.pydantic.dev/2.12/v/value_error",
    ]
    assert said(log)[:2] == [
        "pydantic_core._pydantic_core.ValidationError: 1 validation error for ModelConfig",
        "  Value error, Unknown quantization method: foo. [type=value_error]",
    ]


@pytest.mark.parametrize(
    ("log", "cause"),
    [
        (["usage: vllm serve [model_tag]", "vllm serve: error: unrecognized arguments: --enable-mtp"],
         "vllm serve: error: unrecognized arguments: --enable-mtp"),
        (["docker: Error response from daemon: Conflict. The name is in use.", "See 'docker run --help'."],
         "docker: Error response from daemon: Conflict. The name is in use."),
        (["sh: 1: exec: vllm: not found"], "sh: 1: exec: vllm: not found"),
        (["no /dev/nvidia-uvm after 60 s: is the NVIDIA driver loaded?"],
         "no /dev/nvidia-uvm after 60 s: is the NVIDIA driver loaded?"),
        ([CORE + "Worker proc VllmWorker-0 died unexpectedly (exit code: -4), shutting down executor.",
          *SERVER_WRAPPER],
         "Worker proc VllmWorker-0 died unexpectedly (exit code: -4), shutting down executor."),
        (core("Traceback (most recent call last):", "  File", "torch.OutOfMemoryError: CUDA out of memory."),
         "torch.OutOfMemoryError: CUDA out of memory."),
        (["[2026-11-29 12:00:00 TP0] Scheduler exception: Traceback (most recent call last):", "  File",
          "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static."],
         "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static."),
        (SERVER_WRAPPER, SERVER_WRAPPER[-1].partition(") ")[2]),
        ([CORE + "something is wrong", "(APIServer pid=1) INFO:     Shutting down"], "something is wrong"),
    ],
)  # fmt: skip
def test_causes(log, cause):
    assert said([*START[:3], *log])[0] == cause


def test_without_a_cause_the_last_lines_or_none():
    log = [f"(EngineCore pid=7) INFO 11-29 10:00:00 [x.py:1] step {n}" for n in range(9)]
    assert said(log, last=2) == ["step 7", "step 8"]
    assert said(log, last=0) == []
    assert said([]) == []


def test_what_the_units_own_calls_say_is_no_cause():
    noise = ["boxwright-qwen", "Error response from daemon: No such container: boxwright-qwen"]
    assert said([*noise, "NCCL version 2.27.3", *noise]) == ["NCCL version 2.27.3"]


def test_a_log_that_is_cut_anywhere_is_no_failure():
    log = [*START, *core("Traceback (most recent call last):", "  File x", KV), *SERVER_WRAPPER]
    for first in range(len(log)):
        for last in range(first, len(log)):
            said(log[first:last])


def test_long_lines_and_many_are_cut():
    log = core("Traceback (most recent call last):", "  File x", "ValueError: " + "x" * 5000, *["more"] * 50)
    found = said(log)
    assert len(found) <= 8
    assert all(len(line) <= 610 for line in found)


def test_what_is_only_warned_of_is_no_cause():
    warned = "(EngineCore_DP0 pid=191) WARNING 03-18 13:41:09 [x.py:1] "
    log = [
        warned + "Traceback (most recent call last):",
        warned + "  File x",
        warned + "ImportError: no tuned kernel",
    ]
    assert said([*log, *core("Traceback (most recent call last):", "  File x", KV)]) == [KV]


def test_what_a_program_says_after_its_error_is_none_of_it():
    log = [
        "2026-11-30 12:00:00 INFO starting",
        "Traceback (most recent call last):",
        '  File "/app/foo.py", line 3, in <module>',
        "    wind()",
        "GizmoError: the gizmo is not wound up",
        "2026-11-30 12:00:01 INFO goodbye",
    ]
    assert said(log) == ["GizmoError: the gizmo is not wound up"]
