"""The diagnosis of whole logs: the root first, what follows from it apart, harmless remarks apart."""

from pathlib import Path

import pytest
import yaml

from boxwright.doctor import Log, diagnose
from boxwright.doctor.telling import told, verdict

CORPUS = [
    entry
    for path in sorted((Path(__file__).parent / "corpus").glob("*.yml"))
    for entry in yaml.safe_load(path.read_text(encoding="utf-8"))
]
CORE = "(EngineCore_DP0 pid=191) ERROR 03-18 13:41:09 [core.py:866] "
SERVER = "(APIServer pid=1) "
KV = (
    "ValueError: To serve at least one request with the model's max seq len (262144), (16.0 GiB KV cache is "
    "needed, which is larger than the available KV cache memory (1.5 GiB). Based on the available memory, "
    "the estimated maximum model length is 24576. Try increasing"
)
WRAPPER = [
    SERVER + "Traceback (most recent call last):",
    SERVER + '  File "/usr/local/bin/vllm", line 8, in <module>',
    SERVER + "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}",
]
UNKNOWN = [
    CORE + "Traceback (most recent call last):",
    CORE + '  File "/a.py", line 1, in f',
    CORE + "KeyError: 'qwen9'",
    CORE,
    CORE + "The above exception was the direct cause of the following exception:",
    CORE,
    CORE + "Traceback (most recent call last):",
    CORE + '  File "/b.py", line 1, in g',
    CORE + "ValueError: something that nobody has seen before",
    *WRAPPER,
]


def report(*lines, name="log", kinds=()):
    return diagnose([Log(name, "\n".join(lines).encode(), *kinds)])


def names(diagnoses):
    return [one.id for one in diagnoses]


@pytest.mark.parametrize(
    "entry", CORPUS, ids=[entry["expect"] + ": " + entry["source"][-40:] for entry in CORPUS]
)
def test_recorded_logs(entry):
    found = report(*entry["log"].splitlines())
    assert names(found.causes)[:1] == [entry["expect"]]
    assert found.causes[0].severity == entry.get("severity", "fatal")
    for name in entry.get("harmless", ()):
        assert name in names(found.harmless)
    for name in entry.get("consequences", ()):
        assert name in names(found.consequences)


def test_a_log_without_faults_is_fine():
    found = report("INFO 11-29 10:00:00 [x.py:1] all is well")
    assert (found.verdict, found.causes, found.consequences, found.harmless) == ("fine", (), (), ())


def test_values_of_the_line_are_in_the_words():
    one = report(CORE + KV).causes[0]
    assert "262144 tokens needs 16.0 GiB of KV cache; 1.5 GiB" in one.cause
    assert one.fix[0].startswith("set context: 24576 or less")
    assert one.values == {"context": "262144", "needed": "16.0", "have": "1.5", "fits": "24576"}


def test_the_consequence_is_never_the_cause():
    found = report(CORE + "Traceback (most recent call last):", CORE + "  File", CORE + KV, *WRAPPER)
    assert (names(found.causes), names(found.consequences)) == (
        ["kv-cache-too-small"],
        ["engine-core-failed"],
    )


def test_a_log_that_is_cut_off_says_so():
    found = report(*WRAPPER)
    assert names(found.causes) == ["unknown"]
    assert "further up" in found.causes[0].cause
    assert found.verdict == "fatal"


def test_an_unknown_error_is_shown_with_its_root_cause_and_not_the_last_lines():
    found = report("INFO 11-29 10:00:00 [x.py:1] before", *UNKNOWN, SERVER + "INFO:     Shutting down")
    one = found.causes[0]
    assert (one.id, one.severity, one.link) == ("unknown", "fatal", None)
    assert [line.text for line in one.evidence] == [
        "ValueError: something that nobody has seen before",
        "raised from KeyError: 'qwen9'",
    ]


def test_a_harmless_remark_behind_an_unknown_error_does_not_hide_it():
    remark = "[rank0]:[W806 00:24:22 x.cpp:1] destroy_process_group() was not called before program exit"
    plain = "There appear to be 1 leaked shared_memory objects to clean up at shutdown"
    for last in (remark, remark.removeprefix("[rank0]:"), plain):
        found = report(
            "Traceback (most recent call last):", '  File "a.py", line 1', "RuntimeError: odd", last
        )
        assert names(found.causes) == ["unknown"]
        assert found.verdict == "fatal"


def test_an_unknown_error_of_a_process_that_is_named_by_its_rank():
    lines = ("Traceback (most recent call last):", "  File", "KeyError: 'a'")
    found = report(*("[rank0]: " + line for line in lines))
    assert [line.text for line in found.causes[0].evidence] == ["KeyError: 'a'"]


def test_an_unknown_error_of_an_engine_that_serves_is_not_fatal():
    found = report(SERVER + "INFO:     Application startup complete.", *UNKNOWN[:9])
    assert (names(found.causes), found.verdict) == (["unknown"], "slows")


def test_only_the_last_start_counts():
    mark = SERVER + "INFO 03-18 13:40:01 [api_server.py:1839] vLLM API server version 0.29.0"
    old = CORE + "ValueError: No available memory for the cache blocks. Try increasing"
    ready = SERVER + "INFO:     Application startup complete."
    assert names(report(mark, old, mark, WRAPPER[0], CORE + KV).causes) == ["kv-cache-too-small"]
    assert names(report(mark, old, mark, ready).causes) == []
    # One that is still loading says nothing yet; the one before it says why.
    end = "boxwright-qwen.service: Main process exited, code=exited, status=1/FAILURE"
    assert names(report(mark, old, end, mark).causes) == ["no-memory-for-kv-cache"]


def test_systemds_own_starts_are_marks_too():
    def start(release):
        return (
            f"systemd[1]: Starting boxwright-qwen.service - Boxwright deployment qwen, release {release}..."
        )

    mark = SERVER + "INFO 03-18 13:40:01 [api_server.py:1839] vLLM API server version 0.29.0"
    docker = (
        'docker: Error response from daemon: could not select device driver "" with capabilities: [[gpu]].'
    )
    found = report(start("a"), mark, CORE + KV, start("b"), docker, kinds=("engine", "unit", "docker"))
    assert names(found.causes) == ["docker-knows-no-gpu"]


def test_a_card_that_is_lost_explains_what_the_engine_says():
    kernel = Log(
        "kernel log", b"NVRM: Xid (PCI:0000:01:00): 79, pid=1122, GPU has fallen off the bus.", "kernel"
    )
    engine = Log("engine", (CORE + "RuntimeError: CUDA error: unspecified launch failure").encode(), "engine")
    found = diagnose([engine, kernel])
    assert names(found.causes) == ["xid-79"]
    assert [(one.id, one.because) for one in found.consequences] == [("cuda-launch-failed", "xid-79")]


def test_what_happened_before_the_engine_that_serves_is_past():
    line = b"1764410400.000000 box1 kernel: NVRM: Xid (PCI:0000:01:00): 31, pid=1, name=python3, Ch 00000023"
    log = Log("kernel log", line, "kernel")
    assert diagnose([log], since=1764410401.0).verdict == "fine"
    assert diagnose([log], since=1764410401.0).causes[0].past
    assert diagnose([log], since=1764410399.0).verdict == "fatal"


def test_what_a_request_says_is_no_fault_of_the_engine():
    said = (
        "Received request x: prompt: 'CUDA out of memory. Tried to allocate 2.00 GiB', params: SamplingParams"
    )
    assert report(SERVER + "INFO 11-29 10:00:00 [logger.py:1] " + said).verdict == "fine"


def test_the_same_in_two_logs_is_one():
    found = diagnose([Log(name, (CORE + KV).encode(), "engine") for name in ("journal", "kept")])
    assert names(found.causes) == ["kv-cache-too-small"]
    assert [line.source for line in found.causes[0].evidence] == ["journal", "kept"]


def test_secrets_are_masked_in_evidence_and_values():
    found = report("vllm serve: error: unrecognized arguments: --api-key sk-abcdefghijk --x hf_abcdefghijk")
    text = str(found.to_json())
    assert "sk-abc" not in text
    assert "hf_abc" not in text


def test_lines_are_numbered_and_trimmed():
    found = report("a", "b", "c " + "x" * 300 + " CUDA error: out of memory")
    assert found.causes[0].evidence[0].line == 3
    assert all(len(line) <= 100 for one in report(*UNKNOWN, CORE + KV).causes for line in told(one))


@pytest.mark.parametrize(
    "encode",
    [
        lambda text: text.encode(),
        lambda text: text.replace("\n", "\r\n").encode(),
        lambda text: b"\xff\xfe" + text.encode("utf-16-le"),
        lambda text: b"\xfe\xff" + text.encode("utf-16-be"),
        lambda text: b"\xef\xbb\xbf" + text.encode(),
        lambda text: b"\x80\x81\xff\n" + text.encode("latin-1", "replace"),
        lambda text: text.replace(
            "(EngineCore_DP0 pid=191)", "\x1b[1;36m(EngineCore_DP0 pid=191)\x1b[0;0m"
        ).encode(),
        lambda text: "".join(
            f"2026-11-29T10:00:00.123456789Z {line}\n" for line in text.split("\n")
        ).encode(),
        lambda text: "".join(
            f"Nov 29 10:00:00 box1 boxwright-q[1]: {line}\n" for line in text.split("\n")
        ).encode(),
        lambda text: text.replace("(APIServer", "Loading: 50%|█████     | 2/4\r(APIServer").encode(),
    ],
)
def test_however_it_was_written_down(encode):
    text = "\n".join([*UNKNOWN[:3], CORE + KV, *WRAPPER])
    found = diagnose([Log("log", encode(text))])
    assert (names(found.causes), names(found.consequences)) == (
        ["kv-cache-too-small"],
        ["engine-core-failed"],
    )
    unknown = diagnose([Log("log", encode("\n".join(UNKNOWN)))])
    assert unknown.causes[0].evidence[0].text.startswith("ValueError: something that nobody has seen")


def test_the_verdict_in_words():
    harmless = "WARNING 11-29 10:00:00 [x.py:1] Add 3 padding layers, may waste at most 6.25% KV cache memory"
    assert verdict(report(CORE + KV, harmless)) == "1 fatal, 1 harmless"
    assert verdict(report("nothing")) == "nothing fatal"
    assert report(harmless).verdict == "fine"
