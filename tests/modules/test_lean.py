"""Modules of ours without Ansible's wrapper: what they import is sent, and they end as they do within it."""

import ast
import importlib
import json
import subprocess
import sys
import zlib
from pathlib import Path

import ansible.module_utils.basic
import pytest
from ansible.module_utils.testing import patch_module_args

from boxwright.ansible.interpreter import suspected
from boxwright.ansible.lean import payload
from boxwright.ansible.lean.action import result
from boxwright.ansible.lean.host import basic

MODULES = sorted(path.stem for path in payload.MODULES.glob("*.py") if path.stem != "__init__")


def run_lean(name, arguments, *, check=False, python=sys.executable):
    """A module as a host runs it: its own process, and nothing but what is sent."""
    done = subprocess.run(
        [python, *payload.words()],
        input=payload.sent(name, arguments, check=check),
        capture_output=True,
        check=False,
        timeout=60,
        cwd="/",
    )
    return done.returncode, json.loads(done.stdout.decode().strip().splitlines()[-1])


def imports(source):
    """What a source imports below ansible.module_utils, as Python reads it."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module == payload.PACKAGE:
            yield from (one.name for one in node.names)
        elif isinstance(node, ast.ImportFrom) and str(node.module).startswith(payload.PACKAGE + "."):
            yield node.module.removeprefix(payload.PACKAGE + ".")
        elif isinstance(node, ast.Import):
            yield from (
                one.name.removeprefix(payload.PACKAGE + ".")
                for one in node.names
                if one.name.startswith(payload.PACKAGE + ".")
            )


@pytest.mark.parametrize(
    "file", [path for folder in (payload.MODULES, *payload.UTILS) for path in sorted(folder.glob("*.py"))],
    ids=lambda path: path.stem,
)  # fmt: skip
def test_every_import_is_seen(file):
    source = file.read_text()
    assert set(payload.imported(source)) == set(imports(source))


def test_there_are_modules():
    assert {"host_facts", "engine_gate", "role_receipt"} <= set(MODULES)
    assert not payload.known("stat")
    assert not payload.known("../modules/host_facts")


@pytest.mark.parametrize("name", MODULES)
def test_each_module_comes_as_far_as_its_arguments(name):
    """All that it imports is there, and it refuses an argument that it does not know."""
    status, told = run_lean(name, {"no_such_argument": 1})
    assert (status, told["failed"]) == (1, True)
    assert told["msg"].startswith(f"Unsupported parameters for ({name}) module: no_such_argument.")


def test_a_module_that_breaks_off_says_how():
    status, told = run_lean("role_receipt", {"roles": {"gpu_tuning": {}}, "config_dir": "/proc/none"})
    assert (status, told["failed"]) == (1, True)
    assert "cannot be kept" in told["msg"]
    done = subprocess.run(
        [sys.executable, *payload.words()],
        input=payload.entry() + b'{"module": "engine_gate", "key": "x", "arguments": {}}\nno sources',
        capture_output=True,
        check=False,
        timeout=60,
    )
    told = json.loads(done.stdout)
    assert (done.returncode, told["failed"]) == (1, True)
    assert told["msg"].startswith("engine_gate broke off: error: ")
    assert "Traceback" in told["exception"]
    assert "Traceback" not in told["msg"]


def test_a_python_that_is_too_old_says_so():
    """The oldest that there is here stands for one: the entry asks for more than any has."""
    body = payload.entry().replace(b"LEAST = (3, 9)", b"LEAST = (9, 9)")
    words = [*payload.words()[:-1], str(len(body))]
    sent = payload.sent("engine_gate", {}, check=False)[len(payload.entry()) :]
    done = subprocess.run([sys.executable, *words], input=body + sent, capture_output=True, check=False)
    assert "Python 9.9 or newer is needed" in json.loads(done.stdout)["msg"]


@pytest.mark.parametrize(
    ("rc", "said"),
    [
        (127, "/bin/sh: 1: /usr/bin/python3: not found"),
        (127, "/bin/sh: line 1: /usr/bin/python3: No such file or directory"),
        (126, "/bin/sh: /usr/bin/python3: Permission denied"),
        (1, '  File "<string>", line 1\nSyntaxError: future feature annotations is not defined'),
    ],
)
def test_a_host_without_a_python_that_will_do_is_suspected(rc, said):
    assert suspected(result("host_facts", {"rc": rc, "stdout": "", "stderr": said}))


def test_what_spoke_in_the_place_of_a_module_is_kept():
    told = result("host_facts", {"rc": 1, "stdout": "", "stderr": "sudo: a password is required"})
    assert (told["failed"], told["module_stderr"]) == (True, "sudo: a password is required")
    assert not suspected(told)
    assert result("host_facts", {"rc": 0, "stdout": 'noise\n\n{"changed": false}\n'}) == {"changed": False}


def test_a_module_finds_the_sources_of_others():
    """The engine's guard goes to the host as a text."""
    sources = json.loads(zlib.decompress(payload.of("engine_release").packed))
    sources["asks"] = "from ansible.module_utils.engine_state import guard_source\nprint(guard_source())"
    head = json.dumps({"module": "asks", "key": "asks-1", "arguments": {}}).encode() + b"\n"
    done = subprocess.run(
        [sys.executable, *payload.words()],
        input=payload.entry() + head + zlib.compress(json.dumps(sources).encode()),
        capture_output=True,
        check=True,
        timeout=60,
    )
    assert done.stdout.decode() == sources["ansible.module_utils.engine_guard"] + "\n"


def test_arguments_are_in_no_list_of_processes():
    secret = "hf_" + "s" * 20
    assert secret not in " ".join(payload.words())
    assert secret.encode() in payload.sent("host_facts", {"token": secret}, check=False)


SPEC = {
    "name": {"type": "str", "required": True},
    "place": {"type": "path"},
    "count": {"type": "int", "default": 5},
    "share": {"type": "float"},
    "force": {"type": "bool", "default": False},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "names": {"type": "list", "elements": "str", "default": []},
    "numbers": {"type": "list", "elements": "int"},
    "more": {"type": "dict", "default": {}},
    "boxes": {
        "type": "list",
        "elements": "dict",
        "options": {"host": {"type": "str", "required": True}, "password": {"type": "str", "no_log": True}},
    },
    "token": {"type": "str", "no_log": True},
}
GIVEN = [
    {"name": "a"},
    {},
    {"name": None},
    {"name": 7, "count": "12", "share": "0.5", "force": "yes"},
    {"name": "a", "force": "maybe"},
    {"name": "a", "count": "many"},
    {"name": "a", "count": 1.5},
    {"name": "a", "state": "gone"},
    {"name": "a", "state": "absent"},
    {"name": "a", "names": "b, c", "numbers": ["1", 2]},
    {"name": "a", "numbers": ["one"]},
    {"name": "a", "names": 3},
    {"name": "a", "more": {"x": [1]}},
    {"name": "a", "more": 3},
    {"name": "a", "place": "~root/x"},
    {"name": "a", "place": None, "count": 3, "token": None},
    {"name": "a", "state": None},
    {"name": "a", "names": None},
    {"name": "a", "force": None},
    {"name": "a", "boxes": [{"host": "b", "password": "secret-of-b"}]},
    {"name": "a", "boxes": [{"password": "secret-of-b"}]},
    {"name": "a", "boxes": [{"host": "b", "port": 1}]},
    {"name": "a", "token": "secret-token"},
    {"name": "a", "wrong": 1},
]
RESULT = {
    "changed": True,
    "said": "fetched with secret-token from b (secret-of-b)",
    "exact": "secret-token",
    "list": ["x secret-token y", 3, None, True, 1.5],
    "map": {"k": ("a", "b")},
}


def ended(kind, arguments, monkeypatch, capsys):
    """What becomes of a call: its parameters or None, and its result."""
    seen = []

    def run():
        module = kind(SPEC, supports_check_mode=True)
        seen.append((module.params, module.check_mode))
        module.warn("mind this")
        module.exit_json(**RESULT)

    monkeypatch.setattr(basic, "given", {"module": "test", "arguments": arguments, "check": True})
    with (
        patch_module_args({**arguments, "_ansible_check_mode": True, "_ansible_module_name": "test"}),
        pytest.raises(SystemExit),
    ):
        run()
    told = json.loads(capsys.readouterr().out.strip().splitlines()[-1])
    return next(iter(seen), None), {key: told.get(key) for key in (*RESULT, "failed")}, told


@pytest.mark.parametrize("arguments", GIVEN, ids=str)
def test_arguments_and_results_are_as_within_the_wrapper(arguments, monkeypatch, capsys):
    lean, result, told = ended(basic.AnsibleModule, arguments, monkeypatch, capsys)
    whole, expected, original = ended(
        ansible.module_utils.basic.AnsibleModule, arguments, monkeypatch, capsys
    )
    assert lean == whole
    assert result == expected
    assert told.get("warnings") == (["mind this"] if lean else None)
    if not lean:
        assert told["msg"].split(":")[0].split(" found in")[0] in original["msg"], original["msg"]


def test_what_one_argument_makes_necessary(monkeypatch, capsys):
    monkeypatch.setattr(basic, "given", {"module": "test", "arguments": {"state": "present"}})
    spec = {"state": {"type": "str"}, "key": {"type": "str"}}
    with pytest.raises(SystemExit):
        basic.AnsibleModule(spec, required_if=[("state", "present", ("key",))])
    assert "state is present but all of the following are missing: key" in capsys.readouterr().out


def test_nothing_else_of_ansible_is_used():
    """The stand-in has all that modules take from `basic`; they import nothing of Ansible's beside it."""
    for folder in (payload.MODULES, *payload.UTILS):
        for file in folder.glob("*.py"):
            for name in payload.imported(file.read_text()):
                assert name == "basic" or any((place / f"{name}.py").is_file() for place in payload.UTILS), (
                    file,
                    name,
                )
    for name in MODULES:
        source = Path(importlib.import_module(f"boxwright.ansible.modules.{name}").__file__).read_text()
        assert "run_command" not in source
