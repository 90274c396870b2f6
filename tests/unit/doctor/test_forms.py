"""The root cause of an unknown error, however its log was written down, quoted, packed up and mixed."""

import json

import pytest

from boxwright.doctor import Log, diagnose

PLAIN = """\
Traceback (most recent call last):
  File "/opt/engine/core.py", line 857, in run
    engine = Engine(*args, **kwargs)
             ^^^^^^^^^^^^^^^^^^^^^^^
  File "/opt/engine/plan.py", line 12, in __init__
    raise PlanError("odd")
engine.plan.PlanError: the frobnicator of layer 7 is odd
"""
CHAINED = """\
Traceback (most recent call last):
  File "/opt/a.py", line 1, in f
    return table[name]
KeyError: 'qwen9'

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "/opt/b.py", line 2, in g
    raise ValueError("x") from error
ValueError: the frobnicator of layer 7 is odd
"""
DURING = CHAINED.replace(
    "The above exception was the direct cause of the following exception:",
    "During handling of the above exception, another exception occurred:",
)
GROUP = """\
  + Exception Group Traceback (most recent call last):
  |   File "/opt/a.py", line 1, in <module>
  |     raise ExceptionGroup("unhandled errors in a TaskGroup", found)
  | ExceptionGroup: unhandled errors in a TaskGroup (2 sub-exceptions)
  +-+---------------- 1 ----------------
    | Traceback (most recent call last):
    |   File "/opt/b.py", line 2, in g
    |     raise ValueError("x")
    | ValueError: the frobnicator of layer 7 is odd
    +---------------- 2 ----------------
    | Traceback (most recent call last):
    |   File "/opt/c.py", line 3, in h
    |     raise TypeError("y")
    | TypeError: also this
    +------------------------------------
"""
NESTED = """\
  + Exception Group Traceback (most recent call last):
  |   File "/opt/a.py", line 1, in <module>
  |     raise ExceptionGroup("outer", found)
  | ExceptionGroup: outer (1 sub-exception)
  +-+---------------- 1 ----------------
    | ExceptionGroup: inner (1 sub-exception)
    +-+---------------- 1 ----------------
      | ValueError: the frobnicator of layer 7 is odd
      +------------------------------------
"""
LOWER = PLAIN.replace("engine.plan.PlanError", "engine.plan.error")
DRAWN = """\
\u256d\u2500\u2500\u2500\u2500 Traceback (most recent call last) \u2500\u2500\u2500\u2500\u256e
\u2502 /opt/a.py:12 in f            \u2502
\u2502 \u2771 12     raise X("y")         \u2502
\u2570\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u256f
ValueError: the frobnicator of layer 7 is odd
"""
TRACEBACKS = {
    "plain": PLAIN, "chained": CHAINED, "during": DURING, "group": GROUP, "nested group": NESTED,
    "lower case": LOWER, "drawn": DRAWN,
}  # fmt: skip
BEFORE = ["INFO 11-29 10:00:00 [x.py:1] starting", "a line of a program"]
AFTER = ["INFO 11-29 10:00:09 [x.py:1] bye"]


def each(prefix):
    return lambda lines: [prefix + line for line in lines]


def numbered(form):
    return lambda lines: [form.format(number, line) for number, line in enumerate(lines, 97)]


def as_docker(lines):
    """Docker's json-file; every third line comes in two parts, as long ones do."""
    found = []
    for number, line in enumerate(lines):
        parts = [line[: len(line) // 2], line[len(line) // 2 :]] if number % 3 == 0 else [line]
        for part in parts[:-1]:
            found.append(json.dumps({"log": part, "stream": "stderr", "time": "2026-11-29T10:00:00.1Z"}))
        found.append(
            json.dumps({"log": parts[-1] + "\n", "stream": "stderr", "time": "2026-11-29T10:00:00.1Z"})
        )
    return found


def as_kubernetes(lines):
    stamp = "2026-11-29T10:00:00.123456789+01:00 stderr"
    return [
        written
        for number, line in enumerate(lines)
        for written in (
            [f"{stamp} P {line[:5]}", f"{stamp} F {line[5:]}"] if number % 4 == 3 else [f"{stamp} F {line}"]
        )
    ]


def as_journal_json(lines):
    return [
        json.dumps(
            {
                "_PID": "7",
                "MESSAGE": list(line.encode()) if number % 2 else line,
                "SYSLOG_IDENTIFIER": "docker",
            }
        )
        for number, line in enumerate(lines)
    ]


def as_structured(lines):
    """A logger of JSON lines, which puts the traceback beside the message."""
    return [json.dumps({"level": "error", "message": "it failed", "exc_info": "\n".join(lines)})]


def coloured(lines):
    return [f"\x1b[31m{line[:3]}\x1b[0m\x1b[1;36m{line[3:]}\x1b[0m" for line in lines]


def mixed(lines):
    """Two other processes speak between every two lines, one of them with a traceback of its own."""
    other = ["(Worker_TP1 pid=8) " + line for line in PLAIN.replace("layer 7", "layer 8").splitlines()]
    found = []
    for number, line in enumerate(lines):
        found += [f"(Worker_TP0 pid=7) {line}", f"(APIServer pid=1) INFO:     192.0.2.{number} - GET /health"]
        found += other[max(0, number - 4) : max(0, number - 3)]
    return found


def among_others(lines):
    """A program whose lines say neither process nor level writes between the frames, and one that says it."""
    return [
        one
        for line in lines
        for one in (line, "INFO 11-29 10:00:01 [x.py:1] still here", "box1:7:9 [0] plugin init")
    ]


FORMS = {
    "as it is": lambda lines: lines,
    "indented": each("    "),
    "indented by a tab": each("\t"),
    "quoted": each("> "),
    "quoted twice": each("> > "),
    "quoted without a space": each(">"),
    "indented and quoted": each("   > "),
    "numbered": numbered("{}: {}"),
    "numbered by cat": numbered("{:6}\t{}"),
    "numbered by less": numbered("{:7} {}"),
    "numbered by grep": numbered("{}:{}"),
    "numbered by grep with context": numbered("{}-{}"),
    "numbered by an editor": numbered("{:4} | {}"),
    "quoted and numbered": numbered("> {}: {}"),
    "docker's JSON": as_docker,
    "docker logs -t": each("2026-11-29T10:00:00.123456789Z "),
    "compose": each("vllm-1  | "),
    "compose with stamps": each("vllm-1  | 2026-11-29T10:00:00.123456789Z "),
    "kubernetes": as_kubernetes,
    "kubectl --prefix": each("[pod/vllm-0/engine] "),
    "journal": each("Nov 29 10:00:00 box1 boxwright-qwen[44]: "),
    "journal, precise": each("Nov 29 10:00:00.123456 box1 boxwright-qwen[44]: "),
    "journal, ISO": each("2026-11-29T10:00:00+0100 box1 docker[44]: "),
    "journal, ISO, precise": each("2026-11-29T10:00:00.123456+01:00 box1 docker[44]: "),
    "journal, full": each("Sun 2026-11-29 10:00:00 UTC box1 docker[44]: "),
    "journal, monotonic": each("[   84.738325] box1 docker[44]: "),
    "journal, seconds": each("1764410400.123456 box1 boxwright-qwen[44]: "),
    "journal, JSON": as_journal_json,
    "syslog": each("<11>1 2026-11-29T10:00:00.123456+01:00 box1 docker[44]: "),
    "colours": coloured,
    "colours whose escape was lost": each("[1;36m(EngineCore pid=7)[0;0m "),
    "colours that are written out": each("^[[1;36m(EngineCore pid=7)^[[0;0m "),
    "process": each("(EngineCore_0 pid=123) "),
    "process and level": each("(EngineCore_0 pid=123) ERROR 11-29 10:00:00 [core.py:8] "),
    "process and level, indented": each("      (EngineCore_0 pid=123) ERROR 11-29 10:00:00 [core.py:8] "),
    "process and level, quoted": each("> (EngineCore_0 pid=123) ERROR 11-29 10:00:00 [core.py:8] "),
    "rank": each("[rank0]: "),
    "level of Python": each("ERROR:engine.core:"),
    "level between dashes": each("2026-11-29 10:00:00,123 - engine.core - ERROR - "),
    "structured": as_structured,
    "mixed": mixed,
    "everything": lambda lines: as_docker(each("(EngineCore pid=7) ERROR 11-29 10:00:00 [a.py:1] ")(lines)),
}  # fmt: skip

#: Those in which nothing says of itself that it is an error.
LOUD = ("level", "structured", "mixed", "everything")
QUIET = {name: form for name, form in FORMS.items() if not any(word in name for word in LOUD)}


@pytest.mark.parametrize("traceback", TRACEBACKS.values(), ids=TRACEBACKS)
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["LF", "CRLF"])
def test_the_root_cause_is_found(form, traceback, end):
    log = end.join([*form([*BEFORE, *traceback.splitlines(), *AFTER]), ""])
    found = diagnose([Log("log", log.encode())])
    assert [one.id for one in found.causes] == ["unknown"], log
    assert found.verdict == "fatal"
    assert found.causes[0].evidence[0].text.endswith("the frobnicator of layer 7 is odd"), log


@pytest.mark.parametrize("traceback", TRACEBACKS.values(), ids=TRACEBACKS)
def test_a_known_error_is_found_by_its_name(traceback):
    text = traceback.replace("the frobnicator of layer 7 is odd", "No available memory for the cache blocks.")
    for form in FORMS.values():
        found = diagnose([Log("log", "\n".join(form([*BEFORE, *text.splitlines(), *AFTER])).encode())])
        assert found.causes[0].id == "no-memory-for-kv-cache"


@pytest.mark.parametrize("traceback", [PLAIN, CHAINED, DURING], ids=["plain", "chained", "during"])
def test_other_lines_may_stand_between(traceback):
    found = diagnose([Log("log", "\n".join(among_others(traceback.splitlines())).encode())])
    assert found.causes[0].evidence[0].text.endswith("the frobnicator of layer 7 is odd")


@pytest.mark.parametrize("form", QUIET.values(), ids=QUIET)
def test_a_log_without_an_error_is_fine_in_every_form(form):
    lines = [*BEFORE, "  indented", "> not a quotation", "12: not a number", '{"log": 1}', "[3m", *AFTER]
    found = diagnose([Log("log", "\n".join(form(lines)).encode())])
    assert found.verdict == "fine"


@pytest.mark.parametrize(
    "line",
    [
        "thread 'main' panicked at src/main.rs:4:5:",
        "terminate called after throwing an instance of 'std::runtime_error'",
        "Fatal Python error: Aborted",
        "panic: runtime error: invalid memory address or nil pointer dereference",
        "/usr/local/bin/start.sh: line 3: vllm: command not found",
        "Aborted (core dumped)",
    ],
)
def test_what_is_no_exception_of_python_is_an_end_too(line):
    for form in ("as it is", "indented", "quoted", "docker's JSON", "journal", "kubernetes", "numbered"):
        found = diagnose([Log("log", "\n".join(FORMS[form]([*BEFORE, line, *AFTER])).encode())])
        assert found.verdict == "fatal", form
        assert found.causes[0].evidence[0].text.strip() == line


@pytest.mark.parametrize(
    ("log", "said"),
    [
        ("RuntimeError: the frobnicator is odd", "RuntimeError: the frobnicator is odd"),
        ("  File \"/a.py\", line 1, in f\n    x()\nRuntimeError: odd", "RuntimeError: odd"),
        ("  File \"/a.py\", line 3\n    def f(\n         ^\nSyntaxError: odd", "SyntaxError: odd"),
        (PLAIN.partition("engine.plan")[0], "Traceback (most recent call last):"),
        (PLAIN.partition("engine.plan")[0] + "a.BError: \n  nested: 1", "a.BError:"),
        ("(RayWorker pid=9, ip=192.0.2.1) Traceback (most recent call last):\n"
         "(RayWorker pid=9, ip=192.0.2.1)   File \"/a.py\", line 1\n"
         "(RayWorker pid=9, ip=192.0.2.1) RuntimeError: odd", "RuntimeError: odd"),
    ],
)  # fmt: skip
def test_a_part_of_a_traceback_tells_what_it_can(log, said):
    found = diagnose([Log("log", log.encode())])
    assert (found.verdict, found.causes[0].id, found.causes[0].evidence[0].text) == ("fatal", "unknown", said)


def test_lines_are_numbered_as_in_the_file():
    lines = as_docker([*BEFORE, *PLAIN.splitlines()])
    found = diagnose([Log("log", "\n".join(lines).encode())])
    there = next(number for number, line in enumerate(lines, 1) if "PlanError: the frob" in line)
    assert found.causes[0].evidence[0].line == there
    [one] = as_structured(PLAIN.splitlines())
    found = diagnose([Log("log", f"a\nb\n{one}\n".encode())])
    assert found.causes[0].evidence[0].line == 3


def test_an_error_behind_many_that_were_only_warned_of_is_found():
    warned = ["WARNING 11-29 10:00:00 [x.py:1] " + line for line in PLAIN.splitlines()]
    log = [*warned * 2500, *PLAIN.replace("layer 7", "layer 9").splitlines()]
    found = diagnose([Log("log", "\n".join(log).encode())])
    assert found.causes[0].evidence[0].text.endswith("the frobnicator of layer 9 is odd")
