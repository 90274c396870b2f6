from collections.abc import Callable, Mapping

import pytest

from boxwright.spec.structure import expand, host_name_problem

Told = Callable[[Mapping[str, str]], list[str]]


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("box1", ["box1"]),
        ("box1:2222", ["box1"]),
        ("lab[1:3]", ["lab1", "lab2", "lab3"]),
        ("lab[01:03].x", ["lab01.x", "lab02.x", "lab03.x"]),
        ("lab[1:5:2]", ["lab1", "lab3", "lab5"]),
        ("r[a:b]n[:1]", ["ran0", "ran1", "rbn0", "rbn1"]),
        ("lab[1:2]:22", ["lab1", "lab2"]),
        ("192.0.2.1", ["192.0.2.1"]),
        ("2001:db8::1", ["2001:db8::1"]),
        ("[2001:db8::1]:22", ["2001:db8::1"]),
    ],
)
def test_what_a_pattern_stands_for(pattern: str, names: list[str]) -> None:
    assert expand(pattern) == (names, "")


@pytest.mark.parametrize(
    "pattern", ["a[1:999999999]", "a[1:99999999999999999]", "a[b]", "a[5:1]", "a[1:100][1:100]"]
)
def test_a_pattern_that_stands_for_nothing_sensible(pattern: str) -> None:
    names, wrong = expand(pattern)
    assert not names
    assert wrong


@pytest.mark.parametrize("name", ["box1", "b", "Box-1.example.org", "192.0.2.1", "2001:db8::1", "a" * 63])
def test_good_host_names(name: str) -> None:
    assert host_name_problem(name) is None


@pytest.mark.parametrize(
    "name", ["box_1", "-box", "box-", "a..b", "", "a b", "a" * 64, "ü", "a\n", "$(id)", "a/b"]
)
def test_bad_host_names(name: str) -> None:
    assert host_name_problem(name) is not None


def test_a_hyphen_in_a_group(told: Told) -> None:
    [said] = told({"hosts.yml": "all:\n  children:\n    gpu-boxes:\n      hosts:\n        box1:\n"})
    assert said.startswith("hosts.yml:3: gpu-boxes: is no usable group name")
    assert "gpu_boxes" in said


def test_a_host_and_a_group_of_one_name(told: Told) -> None:
    [said] = told({"hosts.yml": "all:\n  children:\n    box1:\n      hosts:\n        box1:\n"})
    assert said.startswith("hosts.yml:5: box1: is a host and a group at once (the group: hosts.yml:3)")


def test_a_host_and_a_group_of_one_name_in_ini(told: Told) -> None:
    [said] = told({"hosts.yml": "", "hosts": "[box1]\nbox1 ansible_host=192.0.2.1\n"})
    assert said.startswith("hosts:2: box1: is a host and a group at once")


def test_an_underscore_in_a_host(told: Told) -> None:
    [said] = told({"hosts.yml": "all:\n  hosts:\n    box_1:\n"})
    assert said.startswith("hosts.yml:3: box_1: is not a host name")
    assert "box-1" in said


@pytest.mark.parametrize(
    ("word", "meant"),
    [("off", "true or false"), ("No", "true or false"), ("12", "a number"), ("1.5", "a number"),
     ("~", "nothing"), ("2026-11-30", "a date")],
)  # fmt: skip
def test_a_name_that_is_none_to_yaml(told: Told, word: str, meant: str) -> None:
    for text, line in (
        (f"all:\n  hosts:\n    box1:\n    {word}:\n", 4),
        (f"all:\n  children:\n    {word}:\n      hosts:\n        box1:\n", 3),
    ):
        [said] = told({"hosts.yml": text})
        assert said.startswith(f"hosts.yml:{line}: {word}: is no name: YAML takes it for {meant}")
        assert f'"{word}", in quotation marks' in said


@pytest.mark.parametrize("word", ["off", "12"])
def test_such_a_name_in_quotation_marks_is_one(told: Told, word: str) -> None:
    assert told({"hosts.yml": f'all:\n  hosts:\n    "{word}":\n'}) == []


@pytest.mark.parametrize("name", ["all", "ungrouped"])
def test_a_host_named_like_a_group_of_ansible(told: Told, name: str) -> None:
    assert any(
        "host and a group" in said or "own group" in said
        for said in told({"hosts.yml": f"x:\n  hosts:\n    {name}:\n"})
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "all:\n  hostz:\n    box1:\n",
            'hosts.yml:2: all.hostz: is neither hosts, children nor vars | did you mean "hosts"',
        ),
        ("all:\n  hosts: [box1]\n", "hosts.yml:2: all.hosts: must be a mapping"),
        ("all:\n  hosts:\n    box1: 5\n", "hosts.yml:3: box1: must be a mapping"),
        ("all: [box1]\n", "hosts.yml:1: all: must be a mapping"),
        ("- box1\n", "hosts.yml:1: must be a mapping of groups"),
        ("box1\n", "hosts.yml:1: must be a mapping of groups"),
        ("all:\n  hosts:\n    box[1:99999999]:\n", "hosts.yml:3: box[1:99999999]: stands for 99999999 hosts"),
        ("all:\n  hosts:\n    box1:\n   box2:\n", "hosts.yml:4: not valid YAML"),
    ],
)
def test_mistakes_of_an_inventory_file(told: Told, text: str, words: str) -> None:
    assert any(said.startswith(words) for said in told({"hosts.yml": text}))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[gpu-boxes]\nbox1\n", "hosts:1: gpu-boxes: is no usable group name"),
        ("box_1\n", "hosts:1: box_1: is not a host name"),
        ("[x\nbox1\n", "hosts:1: [x: is not a section"),
        ("[x]\nbox1 box_gpus=5\n", "hosts:2: box1: box_gpus: is not of the right form (is 5)"),
        (
            "[all:vars]\nbox_root_dir=relative\n[x]\nbox1\n",
            'hosts:2: box1: box_root_dir: is not of the right form (is "relative")',
        ),
    ],
)
def test_mistakes_of_an_ini_inventory(told: Told, text: str, words: str) -> None:
    assert any(said.startswith(words) for said in told({"hosts.yml": "", "hosts": text}))
