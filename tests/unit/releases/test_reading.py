"""A package is worked out without being run: what is plain is followed, what is not is said to be unknown."""

from __future__ import annotations

import pytest

from boxwright.releases import vllm
from boxwright.releases.forms import OptionError, forms
from boxwright.releases.interpreter import Interpreter, enough_stack
from boxwright.releases.recorder import Recorder
from boxwright.releases.values import Frame, Unknown, Unreadable


def package(**modules):
    """The interpreter of a package `p` whose modules have these texts."""
    texts = {"p/__init__.py": "", **{f"p/{name}.py": text for name, text in modules.items()}}
    return Interpreter("p", texts.get)


def options(text):
    """The options that `add(parser)` in a module adds, and the problems."""
    reader = package(m=text)
    parser = Recorder()
    reader.call(reader.find("p.m.add"), [parser], {}, Frame(reader.module("p.m"), {}))
    return forms(parser.added), reader.problems


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A = [1, *range(3)]", [1, 0, 1, 2]),
        ("from p.other import B as A", 7),
        ("import p.other\nA = p.other.B + 1", 8),
        ("A = {k: v for k, v in {'x': 1}.items() if v}", {"x": 1}),
        ("A = 'a-b'.replace('-', '_')", "a_b"),
        ("if True:\n    A = 1\nelse:\n    A = 2", 1),
        ("A = 0\nfor x in (1, 2, 3):\n    if x == 3: break\n    A += x", 3),
        ("def f(a, *b, c=3, **d): return (a, b, c, sorted(d))\nA = f(1, 2, e=5)", (1, (2,), 3, ["e"])),
        ("class K:\n    x: int = 4\n    @classmethod\n    def f(cls): return cls.x\nA = K.f()", 4),
        (
            "class B:\n  def f(self): return 1\n"
            "class C(B):\n  def f(self): return super().f() + 1\nA = C().f()",
            2,
        ),
        ("import os\nA = os.getenv('HOME', 'nowhere')", "nowhere"),
        ("A = (lambda x: x * 2)(4)", 8),
        ("A = f'{1}-{2}'", "1-2"),
        # As vLLM 0.29 makes the choices of --collect-detailed-traces.
        ("from itertools import permutations\nA = list(permutations(['a', 'b'], r=1))", [("a",), ("b",)]),
    ],
)
def test_plain_python_is_followed(text, expected):
    assert package(m=text, other="B = 7").find("p.m.A") == expected


@pytest.mark.parametrize(
    "text",
    [
        "import torch\nA = torch.cuda.is_available()",
        "A = open('/etc/passwd').read()",
        "A = __import__('os').system('true')",
        "A = eval('1')",
        "A = ().__class__.__bases__[0].__subclasses__()",
        "A = 'x' * 10 ** 9",
        "A = 9 ** 9 ** 9 ** 9",
        "A = 1 << 10 ** 9",
        "A = [0] * 10 ** 9",
        "A = list(range(10 ** 12))",
        "import itertools\nA = list(itertools.permutations(range(20)))",
        "A = sorted(x for x in range(10 ** 12))",
        "x = 'ab' * 9999\nA = x.replace('a', 'b' * 9999)",
        "A = '{0.__class__}'.format(1)",
        "import subprocess\nA = subprocess.run(['true'])",
        "x = 1\nwhile True:\n    A = x",
        "import random\nif random.random() > 1:\n    A = 1",
    ],
)
def test_what_needs_the_world_is_unknown_and_never_done(text):
    reader = package(m=text)
    try:
        found = reader.module("p.m").names.get("A")
    except Unreadable:
        return
    assert found is None or isinstance(found, Unknown)


def test_a_package_is_not_run(tmp_path):
    mark = tmp_path / "mark"
    harm = f"import pathlib\npathlib.Path({str(mark)!r}).write_text('run')\nopen({str(mark)!r}, 'w')\nA = 1"
    assert package(m=harm).find("p.m.A") == 1
    assert not mark.exists()


def test_calls_within_calls_without_an_end_are_refused():
    with enough_stack():
        reader = package(m="def f(x): return f(x)\nA = f(1)")
        assert isinstance(reader.module("p.m").names["A"], Unknown)


def test_a_package_that_takes_too_many_steps_is_refused(monkeypatch):
    monkeypatch.setattr("boxwright.releases.interpreter.MOST_STEPS", 20_000)
    reader = package(m="for a in range(9999):\n  for b in range(9999):\n    pass")
    with pytest.raises(RecursionError, match="steps"):
        reader.module("p.m")


def test_options_of_every_kind():
    found, problems = options(
        "import argparse\n"
        "def add(p):\n"
        "    g = p.add_argument_group('x')\n"
        "    g.add_argument('--tensor', '-tp', type=int, default=1, help=f'{unknowable()}')\n"
        "    g.add_argument('--flag', action='store_true')\n"
        "    g.add_argument('--switch', action=argparse.BooleanOptionalAction, default=None)\n"
        "    for key, value in {'a_b': {'choices': {'y', 'x'}}}.items():\n"
        "        p.add_argument(f\"--{key.replace('_', '-')}\", **value)\n"
        "    p.add_argument('model', nargs='?')\n"
    )
    assert problems == []
    assert found == {
        "a-b": {"choices": ["x", "y"]},
        "flag": {"type": "store_true", "default": False, "nargs": 0},
        "switch": {"type": "bool (--x/--no-x)", "nargs": 0, "aliases": ["--no-switch"]},
        "tensor": {"type": "int", "default": 1, "aliases": ["-tp"]},
    }


@pytest.mark.parametrize(
    "body",
    [
        "    if unknowable():\n        p.add_argument('--x')\n",
        "    p.add_argument('--x', **unknowable())\n",
        "    import other\n    other.add_more(p)\n",
        "    for one in unknowable():\n        p.add_argument(one)\n",
        "    p.parse_known_intermixed_args()\n",
    ],
)
def test_an_option_that_may_be_missed_is_a_problem(body):
    assert options("def add(p):\n" + body)[1]


@pytest.mark.parametrize("given", ["type=unknowable()", "choices=unknowable()", "choices=[]"])
def test_an_option_whose_kind_is_not_known_is_refused(given):
    with pytest.raises(OptionError, match="--x"):
        options(f"def add(p):\n    p.add_argument('--x', {given})\n")


def test_a_branch_that_is_left_out_leaves_what_it_sets_unknown():
    with pytest.raises(OptionError, match="--x"):
        options(
            "def add(p):\n    given = {}\n"
            "    if unknowable():\n        given['type'] = int\n    else:\n        given['type'] = str\n"
            "    p.add_argument('--x', **given)\n"
        )


def test_a_package_that_is_none_is_refused():
    with pytest.raises(OptionError):
        vllm.read(lambda path: None)
    with pytest.raises(OptionError):
        vllm.read(lambda path: "def (" if path.endswith(".py") else None)
