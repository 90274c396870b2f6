"""Scripts of a shell: which lines are commands, and which are text to them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boxwright.facts.parsers.shell_script import commands


def lines_of(text):
    return [(one.first, one.last, one.code) for one in commands(text)]


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("a\nb\n", [(1, 1, "a"), (2, 2, "b")]),
        ("a", [(1, 1, "a")]),
        ("\n\n# a\n  b # c\n", [(4, 4, "b")]),
        ("a#b\n", [(1, 1, "a#b")]),
        ("a \\\n  -b \\\n -c\nd\n", [(1, 3, "a   -b  -c"), (4, 4, "d")]),
        ("a \\\\\nb\n", [(1, 1, "a \\\\"), (2, 2, "b")]),
        ("a ||\n b\nc\n", [(1, 2, "a ||  b"), (3, 3, "c")]),
        ("a && # why\n b\n", [(1, 2, "a &&   b")]),
        ("a |\nb", [(1, 2, "a | b")]),
        ("echo 'x\ny'\nz\n", [(1, 2, "echo ''"), (3, 3, "z")]),
        ('echo "x\n\\"y"\nz\n', [(1, 2, 'echo ""'), (3, 3, "z")]),
        ('echo "it\'s"\nz\n', [(1, 1, 'echo "it\'s"'), (2, 2, "z")]),
        ("echo $'it\\'s one'\nz\n", [(1, 1, "echo ''"), (2, 2, "z")]),
        ('echo "$(cat <<E\nx\nE\n)"\nz', [(1, 4, 'echo ""'), (5, 5, "z")]),
        ('a $(b "c d"\ne)\nz\n', [(1, 2, 'a $(b ""\ne)'), (3, 3, "z")]),
        ("a `b\nc`\nz\n", [(1, 2, "a `b\nc`"), (3, 3, "z")]),
        ("x=$((1<<2))\nz\n", [(1, 1, "x=$((1<<2))"), (2, 2, "z")]),
        ("((x<<2))\nz\n", [(1, 1, "((x<<2))"), (2, 2, "z")]),
        ("a <<<x\nz\n", [(1, 1, "a <<<x"), (2, 2, "z")]),
        ("if a; then\n b\nfi\n", [(1, 1, "if a; then"), (2, 2, "b"), (3, 3, "fi")]),
        ("a\nexit 0\nb\n", [(1, 1, "a")]),
        ("if a; then\nexit 0\nfi\nb\n", [(1, 1, "if a; then"), (2, 2, "exit 0"), (3, 3, "fi"), (4, 4, "b")]),
        ("", []),
    ],
)
def test_lines(text, read):
    assert lines_of(text) == read


@pytest.mark.parametrize(
    "begin",
    ["<<EOF", "<< 'EOF'", '<<"EOF"', "<<\\EOF", "<<-EOF"],
)
def test_a_here_document_is_text(begin):
    end = "\tEOF" if "-" in begin else "EOF"
    found = list(commands(f"cat > /x {begin}\nnvidia-smi -pl 300\nit's \"\n{end}\nb\n"))
    assert [(one.first, one.code.split()[0]) for one in found] == [(1, "cat"), (5, "b")]
    assert found[0].here == ("nvidia-smi -pl 300\nit's \"",)
    assert [one.whole for one in found] == [False, True]
    assert "nvidia-smi" not in " ".join(found[0].run)


def test_two_here_documents_of_one_line():
    found = list(commands("a <<A <<B\n1\nA\n2\nB\nb\n"))
    assert found[0].here == ("1", "2")
    assert (found[1].first, found[1].code) == (6, "b")


@pytest.mark.parametrize(
    ("text", "run"),
    [
        ("sh <<E\nnvidia-smi -pl 1\nE\n", True),
        ("bash -s <<E\nnvidia-smi -pl 1\nE\n", True),
        ("cat <<E\nnvidia-smi -pl 1\nE\n", False),
        ("sh -c 'nvidia-smi -pl 1'\n", True),
        ("su - root -c 'nvidia-smi -pl 1'\n", True),
        ("echo 'nvidia-smi -pl 1' | at now\n", True),
        ("echo 'nvidia-smi -pl 1' > /x\n", False),
        ("echo nvidia-smi -pl 1\n", False),
        ("true; logger nvidia-smi -pl 1; true\n", False),
        ("echo x; nvidia-smi -pl 1\n", True),
        ("a && echo nvidia-smi -pl 1 && b\n", False),
        ("X='nvidia-smi -pl 1'\n", False),
        ('if x; then "nvidia-smi" -pl 1; fi\n', True),
    ],
)
def test_what_is_run(text, run):
    assert ("nvidia-smi" in " ".join(piece for one in commands(text) for piece in one.run)) is run


@pytest.mark.parametrize("text", ["a 'b\nc\n", 'a "b\nc\n', "a <<E\nb\n", "a $(b\nc\n", "a `b\nc", "a \\"])
def test_what_is_never_closed_is_one_command_that_is_not_whole(text):
    (found,) = commands(text)
    assert found.first == 1
    assert not found.whole or "\\" in text


@given(st.text(alphabet="ab \n'\"\\$()`<>-#|&;E", max_size=60))
def test_any_text_is_read_to_its_end(text):
    last = 0
    for one in commands(text):
        assert last < one.first <= one.last <= text.count("\n") + 1
        last = one.last
