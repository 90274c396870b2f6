"""No declaration and no fact, however odd, makes a plan raise, name an unknown option or misplace a value."""

from __future__ import annotations

import contextlib
import copy
import importlib.util
import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from boxwright import catalog, facts, planner
from boxwright.cli import drawing
from boxwright.facts.model import Driver, HostFacts, ModelFiles
from boxwright.spec.box import Box, Deployment, Hub, ModelRef, Secret
from boxwright.spec.problem import SpecErrors
from boxwright.spec.validate import judged_box


def _beside(name: str) -> ModuleType:
    """A module of this folder, which is no package."""
    spec = importlib.util.spec_from_file_location(f"planner_{name}", Path(__file__).with_name(f"{name}.py"))
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


hostile, odd = _beside("hostile"), _beside("strategies")
ROOT = Path(__file__).parents[3]
CATALOG = catalog.load()
TABLE = CATALOG.options["vllm"]
#: Engine -> how its command begins, the options that the plan always writes, and those that it never does.
COMMANDS = {
    "vllm": (
        ("vllm", "serve", "/model"),
        {"max-num-seqs", "max-num-batched-tokens"},
        {"port", "host", "model", "hf-token"},
    ),
    "sglang": (
        ("python3", "-m", "sglang.launch_server"),
        {"model-path", "host", "port", "max-running-requests", "chunked-prefill-size"},
        {"config", "admin-api-key"},
    ),
}
SOME = settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
MANY = settings(SOME, max_examples=80)

SCHEMA = json.loads((ROOT / "inventory/schema.json").read_text(encoding="utf-8"))["properties"]
USUAL = {
    "name": st.sampled_from(["q", "s"]),
    "model": st.sampled_from(sorted(CATALOG.models)),
    "image": odd.IMAGES.filter(str.isascii),
    "bind": st.sampled_from(["127.0.0.1", "0.0.0.0", "::1"]),
    "gate_prompt": st.just("Say yes."),
    "gate_expect": st.just("yes"),
    "box_gpus": st.builds(lambda count: {"model": "rtx5090", "count": count}, st.integers(1, 4)),
}
DECLARED = st.fixed_dictionaries(
    {"box_deployments": hostile.of_schema(SCHEMA["box_deployments"], USUAL)},
    optional={
        name: hostile.of_schema(SCHEMA[name], USUAL, name=name)
        for name in sorted(SCHEMA)
        if name.startswith(("box_", "nvidia_driver_", "gpu_tuning_")) and name != "box_deployments"
    },
)
FACTS = hostile.of(
    HostFacts,
    {
        (ModelFiles, "config"): odd.CONFIGS,
        (Driver, "state"): st.sampled_from(
            ["absent", "installed", "loaded", "mismatch", "no-devices", "nouveau", "failed"]
        ),
    },
)
RECORDED = json.loads(
    (ROOT / "tests/unit/facts/recorded/debian13-rtx5090-virgin.json").read_text(encoding="utf-8")
)


def check(box: Box, known: HostFacts, revisions: dict[str, str] | None = None) -> None:
    """A plan is made and drawn; its sums add up, its texts are harmless, its commands are an engine's."""
    made = planner.plan(box, known, CATALOG, revisions or {})
    plain = made.to_json()
    json.dumps(plain)
    for found in (*made.gates, *made.advice):
        assert found.fix
        assert all(text.isprintable() for text in (found.message, *found.fix))
    assert all(change.text.isprintable() for change in made.changes or ())
    for case, deployment in zip(made.cases, plain["deployments"], strict=True):
        for card in (deployment["memory"] or {}).get("cards", ()):
            assert sum(line["bytes"] for line in card["lines"]) == card["card_bytes"]
        check_command(case)
    with contextlib.redirect_stdout(io.StringIO()) as shown:
        drawing.draw_plan("box1", plain)
        drawing.draw_facts("box1", known)
    assert all(line.isprintable() for line in shown.getvalue().split("\n"))


def check_command(case: Any) -> None:
    """Every word is the program's, an option that the release has, or a value behind its own option."""
    argv, settings_ = case.command.argv, case.settings
    begin, always, never = COMMANDS[case.engine.dialect.engine]
    table = CATALOG.options[case.engine.dialect.engine]
    assert argv[:3] == begin
    seen: set[str] = set()
    for name, values in _options(argv[3:]):
        assert name not in seen, f"{name} twice"
        seen.add(name)
        option = table.option(name.partition(".")[0], settings_.release)
        if option is None:
            assert not settings_.exact, f"{name} in {settings_.release}"
        elif option.is_switch:
            assert not values
        else:
            assert len(values) >= 1 if option.many else len(values) == 1, (name, values)
        assert all(value.isprintable() for value in values)
    assert always <= seen
    assert not {*never, "api-key"} & seen
    for name, value in case.command.env.items():
        assert name.isidentifier()
        assert value.isprintable()


def _options(words: tuple[str, ...]) -> Iterator[tuple[str, list[str]]]:
    name, values = None, []
    for word in words:
        if word.startswith("--"):
            if name is not None:
                yield name, values
            name, values = word[2:], []
        else:
            assert name is not None
            values.append(word)
    if name is not None:
        yield name, values


@SOME
@given(odd.BOXES, odd.FACTS, st.dictionaries(st.sampled_from(["q", "s"]), odd.COMMITS))
def test_a_plan_is_always_made(box, known, revisions):
    check(box, known, revisions)


@SOME
@given(odd.BOXES, FACTS)
def test_whatever_a_host_says(box, known):
    check(box, known)


@SOME
@given(odd.BOXES)
def test_a_plan_is_always_made_offline(box):
    check(box, planner.offline_facts(box, CATALOG))


@SOME
@given(DECLARED, odd.FACTS)
def test_a_declaration_is_refused_or_planned(declared, known):
    try:
        box = judged_box("box1", declared)
    except SpecErrors:
        return
    check(box, known)
    check(box, planner.offline_facts(box, CATALOG))


def _leaves(value: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield above
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from _leaves(item, (*above, key))


def _put(value: Any, path: tuple[Any, ...], new: Any) -> None:
    for step in path[:-1]:
        value = value[step]
    value[path[-1]] = new


@MANY
@given(
    st.lists(
        st.tuples(st.sampled_from([path for path in _leaves(RECORDED) if path]), hostile.VALUES),
        min_size=1,
        max_size=4,
    )
)
def test_facts_are_read_whatever_the_programs_print(changes):
    raw = copy.deepcopy(RECORDED)
    for path, value in changes:
        # An earlier change may have taken away what this one is in.
        with contextlib.suppress(TypeError, KeyError, IndexError):
            _put(raw, path, value)
    known = facts.parse(raw)
    json.dumps(known.to_json())
    deployment = Deployment("q", ModelRef(name="qwen3-8b"), "vllm/vllm-openai:v0.32.0")
    check(Box("box1", deployments=(deployment,)), known)


@MANY
@given(
    st.sampled_from(TABLE.releases),
    st.sampled_from([*TABLE.names(), "compilation-config.mode"]),
    hostile.TEXTS,
    st.booleans(),
    st.booleans(),
)
def test_a_value_stands_in_its_own_argument_alone(release, option, text, first, listed):
    value = hostile.MARK + text if first else text + hostile.MARK
    given_ = [value, value] if listed else value
    deployment = Deployment(
        "q",
        ModelRef(name="qwen3-8b"),
        f"vllm/vllm-openai:v{release}",
        extra_args={option: given_},
        env={"A": value},
    )
    made = planner.plan(
        Box("box1", deployments=(deployment,)), planner.offline_facts(Box("box1"), CATALOG), CATALOG
    )
    case = made.cases[0]
    check_command(case)
    base, dot, rest = option.partition(".")
    wanted = f"{TABLE.canonical(base, release) or base}{dot}{rest}"
    for name, values in _options(case.command.argv[3:]):
        assert hostile.MARK not in name
        assert name == wanted or not any(hostile.MARK in one for one in values)
    assert all(name == "A" or hostile.MARK not in f"{name}{one}" for name, one in case.command.env.items())


@SOME
@given(odd.DEPLOYMENTS)
def test_secrets_are_in_no_plan(deployment):
    own = {name: getattr(deployment, name) for name in deployment.__dataclass_fields__}
    box = Box(
        "box1",
        deployments=(Deployment(**{**own, "api_key": Secret("s3cr3t-k3y")}),),
        hub=Hub(token=Secret("s3cr3t-t0ken")),
    )
    text = json.dumps(planner.plan(box, planner.offline_facts(box, CATALOG), CATALOG).to_json())
    assert "s3cr3t" not in text


@pytest.mark.parametrize(
    "token",
    [
        "hf_" + "a" * 34,
        "sk-" + "b" * 40,
        "ghp_" + "c" * 36,
        "github_pat_" + "d" * 30,
        "AKIA" + "E" * 16,
        "Bearer abcdefgh12",
        "http://me:s3cr3t@192.0.2.1:3128",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.sig",
    ],
)
def test_a_token_is_refused_and_not_shown(token):
    box = Box(
        "box1",
        deployments=(
            Deployment(
                "q",
                ModelRef(name="qwen3-8b"),
                "vllm/vllm-openai:v0.32.0",
                extra_args={"hf-overrides": {"a": [token]}, "served-model-name": token},
                env={"NOTE": f"see {token}", "MY_TOKEN": "x"},
            ),
        ),
    )
    made = planner.plan(box, planner.offline_facts(box, CATALOG), CATALOG)
    assert {"secret-in-options", "secret-in-environment"} <= {found.id for found in made.gates}
    assert token not in json.dumps(made.to_json())


@pytest.mark.parametrize("value", ["--api-key=stolen", "-x", "--", "a\nb", "\x00", "\x1b[31m", "\u202eab"])
def test_a_value_that_looks_like_an_option_is_refused(value):
    deployment = Deployment(
        "q",
        ModelRef(name="qwen3-8b"),
        "vllm/vllm-openai:v0.32.0",
        extra_args={"chat-template": value, "middleware": (value,)},
    )
    box = Box("box1", deployments=(deployment,))
    made = planner.plan(box, planner.offline_facts(box, CATALOG), CATALOG)
    assert value not in made.cases[0].command.argv
    assert [found.id for found in made.gates].count("option-value") == 2
