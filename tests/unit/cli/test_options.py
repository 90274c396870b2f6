"""What is wrong with an option is said before anything is looked at: of each verb, each with a value."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import tasks
from boxwright.cli import lab, program

ROOT = Path(__file__).resolve().parents[3]
BAD_INPUT = 2
ODD = "x y;rm \x1b[2J$(id)"
#: What a verb must have been told beside the option that is tried.
NEEDED = {
    "init": {"host": "you@192.0.2.7"},
    "role": {"name": "preflight"},
    "chat": {"prompt": "hi"},
    "export": {"format": "compose"},
    "catalog.vllm": {"release": "0.33.0"},
    "catalog.sglang": {"release": "0.5.23"},
}
#: Words that may be anything, and files that may be called anything: whatever is odd is no mistake of theirs.
FREE = {
    ("chat", "prompt"),
    ("chat", "system"),
    ("page", "output"),
    ("report", "output"),
    ("export", "output"),
    # An expression of pytest's, which says itself what is wrong with one.
    ("test", "name"),
}
HOSTS = """
all:
  hosts:
    box1:
      ansible_host: 192.0.2.1
      box_gpus: {model: rtx5090}
      box_deployments: [{name: q, model: qwen3-8b-awq, image: "vllm/vllm-openai:v0.32.0"}]
"""


OPTIONS = [
    (verb, argument.name)
    for verb in tasks.namespace.task_names
    for argument in tasks.namespace[verb].get_arguments()
    if argument.takes_value and not (argument.positional and verb == "explain")
]


@pytest.fixture
def called(monkeypatch, capsys, tmp_path):
    """The command in this process, where nothing may be begun."""
    (tmp_path / "hosts.yml").write_text(HOSTS)

    run = subprocess.run

    def begin(*words, **more):
        raise AssertionError(f"something was begun: {words} {more}")

    def asked(argv, **more):
        # Of this machine a verb may ask: git, and ssh for what it makes of a name.
        return run(argv, **more) if Path(argv[0]).name in ("git", "ssh") else begin(argv)

    monkeypatch.setattr(lab, "ensure", begin)
    monkeypatch.setattr(subprocess, "run", asked)

    def call(verb, *words):
        argv = ["invoke", "--search-root", str(ROOT), verb, *words, "--json"]
        takes_json = any(one.name == "json" for one in tasks.namespace[verb].get_arguments())
        monkeypatch.setattr(sys, "argv", argv if takes_json else argv[:-1])
        with pytest.raises(SystemExit) as ended:
            program.main()
        said = capsys.readouterr()
        return subprocess.CompletedProcess(words, ended.value.code, said.out, said.err)

    def others(verb, option):
        known = {argument.name for argument in tasks.namespace[verb].get_arguments()}
        given = {"host": "box1", "inventory": str(tmp_path), **NEEDED.get(verb, {})}
        return [
            word
            for name, value in given.items()
            if name in known and name != option
            for word in (f"--{name}", value)
        ]

    call.others = others
    return call


def flag(option):
    return "--" + option.replace("_", "-")


@pytest.mark.parametrize(("verb", "option"), OPTIONS, ids="-".join)
def test_an_option_without_its_value_is_refused(verb, option, called):
    for words in ([f"{flag(option)}="], [flag(option), " "]):
        done = called(verb, *called.others(verb, option), *words)
        told = done.stdout + done.stderr
        assert done.returncode == BAD_INPUT, (words, told)
        assert f"{flag(option)} needs a value" in told
    # The last word, and before another option: `--json` where the verb has it.
    done = called(verb, *called.others(verb, option), flag(option))
    assert done.returncode == BAD_INPUT, done.stdout + done.stderr
    assert f"{flag(option)} needs a value" in done.stdout + done.stderr


@pytest.mark.parametrize(("verb", "option"), [one for one in OPTIONS if one not in FREE], ids="-".join)
def test_an_odd_value_is_refused_before_anything_is_looked_at(verb, option, called):
    done = called(verb, *called.others(verb, option), flag(option), ODD)
    told = done.stdout + done.stderr
    assert done.returncode == BAD_INPUT, told
    assert "boxwright itself" not in told
    assert "\x1b" not in told


def test_a_value_that_is_missing_after_another_of_the_same(called):
    done = called("validate", "--host", "box1", "--host")
    assert json.loads(done.stdout)["error"]["what"] == "--host needs a value, and none is there"
