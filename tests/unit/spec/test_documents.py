from pathlib import Path

import pytest

from boxwright.spec.documents import parse
from boxwright.spec.places import Definition, entries_of

FILE = Path("/x/f.yml")
BOMB = (
    "a: &a ["
    + "1," * 50
    + "1]\n"
    + "".join(f"b{n}: &b{n} [{','.join([f'*b{n - 1}' if n else '*a'] * 30)}]\n" for n in range(8))
)


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("a: [1,2", 1, "not valid YAML"),
        ("a: 1\nb: c: d\n", 2, "mapping values are not allowed here (column 5)"),
        ("a: 1\n\tb: 1\n", 2, "not valid YAML"),
        ("a: 1\nb: 'x\n", 2, "not valid YAML"),
        ("a: \x07", 1, "U+0007"),
        ("a: 1\nb: *nope\n", 2, "an alias (*…) of what is nowhere"),
        ("---\na: 1\n---\nb: 2\n", 3, "another document"),
        ("a: 1\nb: !wrong 3\n", 2, "its tag (a word that begins with !) is not known"),
        ("a: !!python/object:os.system x", 1, "tag !!python"),
        ("a: 1\nd: 2024-13-45\n", 2, "month must be in 1..12"),
        ("x: " + "9" * 5000, 1, "of 5000 characters makes no whole number"),
        ("a: &a [*a]", 1, "refer to themselves"),
        (BOMB, 1, "stand for too much"),
        ("? [a]\n: b", 1, "must be a plain word"),
        ("a: 1\n<<: 3\n", 2, "merges mappings only"),
        ("[" * 3000, None, "nested too deeply"),
    ],
)
def test_what_is_no_usable_yaml(text: str, line: int | None, words: str) -> None:
    document = parse(FILE, text)
    assert document.broken
    assert any(words in problem.message and problem.line == line for problem in document.problems)


@pytest.mark.parametrize(
    "text", ["", "---\n", "# only a comment\n", "a: &x {b: 1}\nc: {<<: *x, d: 2}\n", '{"a": 1}']
)
def test_what_is(text: str) -> None:
    assert not parse(FILE, text).problems


def test_a_key_given_twice_names_both_lines() -> None:
    document = parse(FILE, "a:\n  port: 1\n  other: 2\n  port: 3\n")
    assert not document.broken
    [problem] = document.problems
    assert (problem.line, problem.variable) == (4, "port")
    assert "on line 2 and on line 4" in problem.message


def test_a_merged_key_is_not_given_twice() -> None:
    assert not parse(FILE, "x: &x {a: 1}\ny:\n  <<: *x\n  a: 2\n").problems


TEXT = """\
# a comment
box_deployments:
  - name: a
    image: x:1
  - {name: b,
     image: x:2}
  - &third
    name: c
    extra_args:
      a.b: 1
      c:
        - 1
        - d: 2
box_gpus: {model: m}
copy:
  <<: *third
  name: d
"""


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("box_deployments", 2),
        ("box_deployments[0]", 3),
        ("box_deployments[0].image", 4),
        ("box_deployments[0].missing", 3),
        ("box_deployments[1].image", 6),
        ("box_deployments[2].extra_args.a.b", 10),
        ("box_deployments[2].extra_args.c[1].d", 13),
        ("box_deployments[9].image", 2),
        ("box_deployments.image", 2),
        ("box_gpus.model", 14),
        ("copy.name", 17),
        ("copy.extra_args", 9),
    ],
)
def test_a_path_has_its_line(path: str, line: int) -> None:
    name, steps = path.split(".", 1)[0].split("[", 1)[0], ""
    steps = path[len(name) :]
    definition = Definition(FILE, entries_of(parse(FILE, TEXT).root))
    assert definition.location(name, steps).line == line
