"""Words that a verb may be given: each way to call it, through invoke itself."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from boxwright.cli.explaining import first_sentence

ROOT = Path(__file__).resolve().parents[3]


def called(*words, module="invoke"):
    argv = [sys.executable, "-m", module, "--search-root", str(ROOT), *words]
    return subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize("words", [["no-card"], ["--gate", "no-card"]])
def test_explain_an_id(words):
    done = called("explain", *words)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("no-card (gate)")


@pytest.mark.parametrize("words", [["no-card", "--json"], ["--json", "no-card"]])
def test_explain_an_id_for_programs(words):
    assert json.loads(called("explain", *words).stdout)["id"] == "no-card"


def test_explain_alone_lists():
    assert "no-card" in json.loads(called("explain", "--json").stdout)


def test_a_table_has_no_blanks_at_the_end_of_its_lines():
    done = called("explain")
    words = " ".join(done.stdout.split())
    assert "such as the Qwen3.5 hybrids." in words
    assert not [line for line in done.stdout.splitlines() if line.endswith(" ")]


@pytest.mark.parametrize("words", [(), ("--help",)])
def test_no_verb_names_them_all(words):
    done = called(*words, module="boxwright.cli")
    assert done.returncode == 0, done.stderr
    assert "Available verbs:" in done.stdout
    assert "  provision  " in done.stdout
    assert "./invoke --help VERB" in done.stdout


def test_explain_an_unknown_id():
    done = called("explain", "no-cart")
    assert done.returncode == 2
    assert "no-cart" in done.stderr


@pytest.mark.parametrize("hosts", ["abc", "0", "-1", "21", "1.5", "٣"])
def test_hosts_of_the_lab_are_a_number(hosts):
    done = called("lab.up", f"--hosts={hosts}")
    assert done.returncode == 2
    assert "1 to 20" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("words", [("validate", "--inventory="), ("lab.up", "--hosts=")])
def test_an_option_whose_value_is_empty(words):
    done = called(*words)
    assert done.returncode == 2
    assert f"{words[1][:-1]} needs a value, and an empty one is there" in done.stderr


def test_the_list_of_rules_has_whole_sentences():
    rows = " ".join(called("explain").stdout.split())
    assert "its last release is of" in rows or 'no longer be maintained" since' in rows
    stories = json.loads(called("explain", "--json").stdout)
    assert all(first_sentence(one["story"]).endswith((".", "!", "?", '."')) for one in stories.values())
