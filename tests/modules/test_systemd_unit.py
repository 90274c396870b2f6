"""Quoting, held against systemd's rules as its manual tells them (systemd.service(5), systemd.syntax(7))."""

from pathlib import Path

import jinja2
import pytest
from ansible.module_utils.systemd_unit import exec_line, quote, render, specifiers
from hypothesis import example, given
from hypothesis import strategies as st

WHITE = " \t\n\r"
ESCAPES = {"\\": "\\", '"': '"', "'": "'", "s": " ", "n": "\n", "t": "\t", "a": "\a"}
ODD = st.text(alphabet=st.sampled_from(list("ab 0%$\"'\\;{}()#=~-@:+!|&<>*?`é€\t")), max_size=12)


def words(line):
    """What systemd makes of a command line: words taken apart, escapes undone."""
    found, here, position, quoted, begun = [], "", 0, "", False
    while position < len(line):
        character = line[position]
        if character == "\\":
            position += 1
            here, begun = here + ESCAPES[line[position]], True
        elif quoted:
            here, quoted = (here, "") if character == quoted else (here + character, quoted)
        elif character in "\"'" and not begun:
            quoted, begun = character, True
        elif character in WHITE:
            if begun:
                found.append(here)
            here, begun = "", False
        elif character == ";" and not begun and line[position + 1 : position + 2] in ("", *WHITE):
            raise AssertionError("a lone ; begins another command")
        else:
            here, begun = here + character, True
        position += 1
    assert not quoted
    return [*found, here] if begun else found


def expand(word):
    """Then specifiers, then variables; neither is meant to be there."""
    for mark in "%$":
        pieces = word.split(mark * 2)
        assert not any(mark in piece for piece in pieces), f"{word!r} has a {mark} that systemd would expand"
        word = mark.join(pieces)
    return word


def read_back(line):
    return [expand(word) for word in words(line.replace("\\\n", " "))]


@given(st.lists(ODD, max_size=6))
@example(["", " ", ";", "%", "%%", "$", "$$", "${X}", "$X", "%n", "\\", '"', "'", "#", "-", "a\tb"])
def test_every_argument_comes_back(arguments):
    line = exec_line([["/usr/bin/program", *arguments]])
    assert read_back(line) == ["/usr/bin/program", *arguments]


@given(st.lists(st.lists(ODD, min_size=1, max_size=3), max_size=4))
def test_lines_may_be_broken_between_groups(groups):
    line = exec_line([["/usr/bin/program"], *groups], width=4)
    assert read_back(line) == ["/usr/bin/program", *(word for group in groups for word in group)]
    # A continued line that began with one of these would be a comment.
    assert not any(part.lstrip().startswith(("#", ";")) for part in line.split("\n"))


@given(st.text())
def test_any_text_is_quoted_right_or_refused(text):
    try:
        line = exec_line([["/usr/bin/program", text]])
    except ValueError:
        assert any(ord(character) < 32 or ord(character) == 127 or 0xD800 <= ord(character) < 0xE000
                   for character in text)  # fmt: skip
    else:
        assert read_back(line) == ["/usr/bin/program", text]


@pytest.mark.parametrize(
    ("argument", "quoted"),
    [
        ("plain-word_1.2:/x=@,+", "plain-word_1.2:/x=@,+"),
        ("", '""'),
        ("two words", '"two words"'),
        (
            '{"method":"mtp","num_speculative_tokens":3}',
            r'"{\"method\":\"mtp\",\"num_speculative_tokens\":3}"',
        ),
        ("100%", '"100%%"'),
        ("$HOME", '"$$HOME"'),
        (";", '";"'),
        ("back\\slash", r'"back\\slash"'),
    ],
)
def test_table(argument, quoted):
    assert quote(argument) == quoted


@pytest.mark.parametrize("text", ["a\nb", "a\rb", "a\0b", "\x1b[0m", "\x7f", "\udcff"])
def test_control_characters_are_refused_and_named(text):
    with pytest.raises(ValueError, match="control character"):
        quote(text)
    with pytest.raises(ValueError, match="control character"):
        specifiers(text)


def test_a_unit_is_sections_of_settings():
    text = render(
        [("Unit", [("Description", specifiers("50% done"))]), ("Install", [("WantedBy", "x")])], ["Why."]
    )
    assert text == "# Why.\n\n[Unit]\nDescription=50%% done\n\n[Install]\nWantedBy=x\n"


TUNING = Path(__file__).resolve().parents[2] / "roles/gpu_tuning/templates/boxwright-gpu-tuning.service.j2"


def tuning_unit(config):
    environment = jinja2.Environment(trim_blocks=True, autoescape=False)
    names = {"script": "/usr/local/lib/boxwright/gpu-tuning.py", "config": config, "receipts": "/run/r.json"}
    text = environment.from_string(TUNING.read_text()).render(
        {f"_gpu_tuning_{k}": v for k, v in names.items()}
    )
    return [line.partition("=")[::2] for line in text.split("\n")]


def test_the_unit_of_plain_paths_is_plain():
    lines = tuning_unit("/etc/boxwright/gpu-tuning.json")
    assert lines[0][0].startswith("# Kept")
    assert ("ConditionPathExists", "/etc/boxwright/gpu-tuning.json") in lines
    assert "/gpu-tuning.py apply /etc/boxwright/gpu-tuning.json /run/r.json" in dict(lines)["ExecStart"]


@given(ODD.map(lambda text: "/etc/" + text.replace("\t", "") + "/gpu-tuning.json"))
@example("/etc/100%n/b w/$X ${Y}\"'\\;#/gpu-tuning.json")
def test_the_unit_for_the_cards_names_odd_paths_as_they_are(config):
    lines = dict(tuning_unit(config))
    for name, verb in (("ExecStart", "apply"), ("ExecReload", "apply"), ("ExecStop", "reset")):
        found = read_back(lines[name])
        assert found == [
            "/usr/bin/python3", "-I", "/usr/local/lib/boxwright/gpu-tuning.py", verb, config, "/run/r.json",
        ]  # fmt: skip
    assert lines["ConditionPathExists"].replace("%%", "%") == config
