"""The exit status of every kind of call, through the command line itself: README's table, row by row."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from boxwright.cli import program

ROOT = Path(__file__).resolve().parents[3]
RIGS = ["--inventory", str(ROOT / "inventory" / "rigs")]
DONE, FAILED, BAD_INPUT, REFUSED = 0, 1, 2, 3

HOST = "box1"
GOOD = """
box_gpus: {model: rtx5090, count: 2}
box_deployments: [{name: q, model: qwen3-8b-awq, image: "vllm/vllm-openai:v0.32.0", context: 8192}]
"""
TOO_LARGE = """
box_gpus: {model: rtx3090, count: 1}
box_deployments: [{name: q, model: qwen3.8-27b, image: "vllm/vllm-openai:v0.32.0", context: 8192}]
"""
WRONG = """
box_gpus: {model: rtx5090, count: "2"}
box_deployments: [{name: q, model: qwen3-8b-awq, image: "vllm/vllm-openai:v0.32.0", port: "8000"}]
"""


def process(*words, module="boxwright.cli"):
    """The command as a process of its own."""
    argv = [sys.executable, "-m", module, "--search-root", str(ROOT), *map(str, words)]
    return subprocess.run(
        argv, capture_output=True, text=True, check=False, timeout=120, stdin=subprocess.DEVNULL
    )


@pytest.fixture
def called(monkeypatch, capsys):
    """The command in this process: a process for each row would take a second each."""

    def call(*words):
        monkeypatch.setattr(sys, "argv", ["invoke", "--search-root", str(ROOT), *map(str, words)])
        status = DONE
        try:
            program.main()
        except SystemExit as ended:
            status = int(ended.code or DONE)
        said = capsys.readouterr()
        return subprocess.CompletedProcess(words, status, said.out, said.err)

    return call


@pytest.fixture
def inventory(tmp_path):
    """--inventory words for one box with these variables."""

    def write(variables):
        (tmp_path / "hosts.yml").write_text(f"all: {{hosts: {{{HOST}: {{}}}}}}\n")
        (tmp_path / "host_vars").mkdir(exist_ok=True)
        (tmp_path / "host_vars" / f"{HOST}.yml").write_text(variables)
        return ["--inventory", tmp_path]

    return write


#: Words of a command line, and the status that they end with. No host is reached.
STATUSES = [
    (DONE, ["--list"]),
    (DONE, ["--help", "plan"]),
    (DONE, ["plan", "--help"]),
    (DONE, ["explain"]),
    (DONE, ["explain", "no-card"]),
    (DONE, ["validate", *RIGS]),
    (DONE, ["plan", "--host", "rtx5090", "--offline", *RIGS]),
    (DONE, ["schema", "--check"]),
    (DONE, ["init", "--help"]),
    (DONE, ["role", "--help"]),
    (DONE, ["catalog.vllm", "--help"]),
    (BAD_INPUT, ["--list", "--list-format", "nope"]),
    (BAD_INPUT, ["--list", "--list-depth", "nope"]),
    (BAD_INPUT, ["--command-timeout", "nope", "explain"]),
    (BAD_INPUT, ["--config", "/nowhere", "explain"]),
    (BAD_INPUT, ["--config", "/nowhere/invoke.yml", "explain"]),
    (BAD_INPUT, ["--collection", "nope", "explain"]),
    (BAD_INPUT, ["test", "--name", " "]),
    (BAD_INPUT, ["nope"]),
    (BAD_INPUT, [""]),
    (BAD_INPUT, ["-"]),
    (BAD_INPUT, ["plän"]),
    (BAD_INPUT, ["--bogus"]),
    (BAD_INPUT, ["--help", "nope"]),
    (BAD_INPUT, ["--list", "nope"]),
    (BAD_INPUT, ["plan"]),
    (BAD_INPUT, ["plan", "--bogus"]),
    (BAD_INPUT, ["plan", "--host"]),
    (BAD_INPUT, ["plan", "--host", ""]),
    (BAD_INPUT, ["plan", "--host", "nope"]),
    (BAD_INPUT, ["plan", "--host", "rtx5090,nope", *RIGS]),
    (BAD_INPUT, ["plan", "--host", "rtx*", *RIGS]),
    (BAD_INPUT, ["plan", "--host", "\udcff\n€", *RIGS]),
    (BAD_INPUT, ["plan", "--host", "rtx5090", "extra", *RIGS]),
    (BAD_INPUT, ["plan", "--host", "rtx5090", *RIGS, "--facts"]),
    (BAD_INPUT, ["plan", "--host", "rtx5090", *RIGS, "--facts="]),
    (BAD_INPUT, ["plan", "--host", "rtx5090", *RIGS, "--facts", "/nowhere/facts.json"]),
    (BAD_INPUT, ["plan", "--host", "rtx5090", *RIGS, "--facts", ROOT / "README.md"]),
    (BAD_INPUT, ["provision", "--host", "nope"]),
    (BAD_INPUT, ["facts", "--host", "nope"]),
    (BAD_INPUT, ["key", "--host", "nope"]),
    (BAD_INPUT, ["key", "--host", "rtx5090", "--deployment", "nope", *RIGS]),
    (BAD_INPUT, ["key", "--host", "rtx5090", "--deployment=", *RIGS]),
    (BAD_INPUT, ["validate", "--inventory", "/nowhere"]),
    (BAD_INPUT, ["validate", "--host", "nope"]),
    (BAD_INPUT, ["explain", "nope"]),
    (BAD_INPUT, ["explain", "no-card", "no-card"]),
    (BAD_INPUT, ["role"]),
    (BAD_INPUT, ["role", "nope"]),
    (BAD_INPUT, ["role", "preflight", "--command", "nope"]),
    (BAD_INPUT, ["test", "--level", "nope"]),
    (BAD_INPUT, ["test", "--name"]),
    (BAD_INPUT, ["test", "--bogus"]),
    (BAD_INPUT, ["doctor"]),
    (BAD_INPUT, ["doctor", "--host", "nope"]),
    (BAD_INPUT, ["doctor", "--log", "/nowhere"]),
    (BAD_INPUT, ["recommend", "--host", "nope"]),
    (BAD_INPUT, ["init", "--host="]),
    (BAD_INPUT, ["catalog.vllm", "--release", "nope"]),
    (BAD_INPUT, ["lab.up", "--hosts", "many"]),
    (BAD_INPUT, ["lab.nope"]),
]


@pytest.mark.parametrize(("status", "words"), STATUSES, ids=lambda value: ascii(value)[:60])
def test_status(status, words, called):
    done = called(*words)
    assert done.returncode == status, done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    assert bool(done.stderr) == (status != DONE)


@pytest.mark.parametrize(
    ("status", "variables"), [(DONE, GOOD), (REFUSED, TOO_LARGE), (BAD_INPUT, WRONG)], ids=str
)
def test_status_of_a_plan(status, variables, inventory, called):
    done = called("plan", "--host", HOST, "--offline", "--json", *inventory(variables))
    answer = json.loads(done.stdout)
    assert done.returncode == status
    assert (bool(answer.get("gates")), "error" in answer) == (status == REFUSED, status == BAD_INPUT)


@pytest.mark.parametrize("verb", ["plan", "provision", "facts", "key"])
def test_error_of_a_declaration_for_programs(verb, inventory, called):
    """Each verb that reads a declaration tells all of its mistakes, in the same form."""
    error = json.loads(called(verb, "--host", HOST, "--json", *inventory(WRONG)).stdout)["error"]
    assert error["status"] == BAD_INPUT
    assert {problem["variable"] for problem in error["problems"]} == {
        "box_gpus.count",
        "box_deployments[0].port",
    }


@pytest.mark.parametrize(
    "words",
    [words for status, words in STATUSES if status == BAD_INPUT and words != ["role"]],
    ids=lambda value: ascii(value)[:60],
)
def test_error_for_programs(words, called):
    """With --json every error is one JSON object, and nothing goes beside it."""
    # Before an option that misses its value, which would take it for that.
    place = 1 if words[-1] in ("--name", "--facts", "--host") else len(words)
    done = called(*words[:place], "--json", *words[place:])
    error = json.loads(done.stdout)["error"]
    assert set(error) == {"what", "where", "why", "left", "ways_out", "status", "log", "problems"}
    assert error["status"] == done.returncode == BAD_INPUT
    assert not done.stderr


@pytest.mark.parametrize("words", [["--help", "nope"], ["plan", "--bogus"]])
def test_plain_invoke_ends_the_same(words):
    done = process(*words, module="invoke")
    assert done.returncode == BAD_INPUT
    assert done.stderr == process(*words).stderr


def test_a_slip_of_the_pen_is_told(called):
    assert "did you mean plan?" in called("plam").stderr
    assert "did you mean --offline?" in called("plan", "--ofline").stderr


def test_a_test_name_that_nothing_has():
    done = process("test", "--level", "unit", "--name", "no_test_is_named_like_this")
    assert done.returncode == BAD_INPUT
    assert "no_test_is_named_like_this" in done.stderr


def test_an_ascii_terminal_gets_its_plan():
    done = subprocess.run(
        [sys.executable, "-m", "boxwright.cli", "--search-root", str(ROOT),
         "plan", "--host", "rtx5090", "--offline", *RIGS],
        capture_output=True, check=False, env={"PATH": "/usr/bin:/bin", "PYTHONIOENCODING": "ascii"},
    )  # fmt: skip
    assert done.returncode == DONE
    assert b"rtx5090: will work" in done.stdout


@pytest.mark.parametrize("words", [["explain"], ["explain", "--json"], ["--list"], ["nope", "--json"]])
def test_output_that_cannot_be_written(words):
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "boxwright.cli", "--search-root", str(ROOT), *words],
            stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=60,
        )  # fmt: skip
    assert done.returncode == (BAD_INPUT if "nope" in words else FAILED)
    assert "Traceback" not in done.stderr
    assert "boxwright itself" not in done.stderr
    assert done.stderr.startswith("there is no verb" if "nope" in words else "the output cannot be written: ")


@pytest.mark.parametrize("words", ["explain", "--list", "explain --json"])
def test_output_that_nobody_takes(words):
    """A closed stream, and a reader that is gone."""
    argv = [sys.executable, "-m", "boxwright.cli", "--search-root", str(ROOT), *words.split()]
    for line in ('"$@" >&-', '"$@" | true'):
        done = subprocess.run(
            ["/bin/sh", "-c", line, "sh", *argv], capture_output=True, text=True, check=False, timeout=60
        )
        assert (done.returncode, done.stderr) == (DONE, "")


def test_a_missing_word_is_asked_for_by_its_option(called):
    assert "./invoke init --host HOST" in called("init").stderr


def test_colour_is_for_terminals_whatever_the_environment_says(called, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b" not in called("explain").stdout
