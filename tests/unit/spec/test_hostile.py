"""No declaration, however odd, makes a check raise anything but what a person is told."""

import contextlib
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from boxwright.errors import UserError
from boxwright.spec import schema
from boxwright.spec.box import Box, box_from_variables
from boxwright.spec.documents import parse
from boxwright.spec.inventory import Inventory, load, resolve_hosts
from boxwright.spec.judge import mistakes
from boxwright.spec.problem import SpecErrors, shown
from boxwright.spec.validate import check
from boxwright.texts import printable

HOSTILE = (
    *(
        "",
        " ",
        "\n",
        "$(reboot)",
        "`id`",
        "; rm -rf /",
        "' OR 1=1",
        '"',
        "\\",
        "--privileged",
        "-v",
        "../../etc",
    ),
    *(
        "{{ 7*7 }}",
        "{% raw %}",
        "{#",
        "{{ lookup('pipe','id') }}",
        "%s%n",
        "\x00",
        "\x1b[31m",
        "\u202e",
        "😀",
    ),
    *(
        "a" * 5000,
        "null",
        "~",
        "yes",
        "8000",
        "0x1F",
        "1e9",
        "<<",
        "*",
        "&x",
        "!vault",
        "!!python/none",
        "@",
        "#",
    ),
)
SCALARS = st.one_of(
    *(st.none(), st.booleans(), st.integers(), st.integers(-(2**70), 2**70), st.floats()),
    *(st.sampled_from(HOSTILE), st.text(max_size=20)),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.one_of(st.text(max_size=8), st.sampled_from(HOSTILE)), inner, max_size=4),
    ),
    max_leaves=12,
)
NAMES = sorted(schema.installed()["properties"])
KEYS = sorted(schema.installed()["properties"]["box_deployments"]["items"]["properties"])
DEPLOYMENTS = st.lists(st.dictionaries(st.sampled_from([*KEYS, "nmae"]), VALUES, max_size=8), max_size=3)
VARIABLES = st.one_of(
    st.dictionaries(st.sampled_from([*NAMES, "box_gpu", "nvidia_driver_x", "box_host"]), VALUES, max_size=5),
    st.builds(lambda deployments: {"box_deployments": deployments}, DEPLOYMENTS),
)
EASY = settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))


@EASY
@given(VARIABLES)
def test_a_box_is_a_box_or_a_list_of_mistakes(variables: Mapping[str, Any]) -> None:
    with contextlib.suppress(SpecErrors):
        box = box_from_variables("box1", variables)
        assert isinstance(box, Box)
        assert box == box_from_variables("box1", variables)


@EASY
@given(VARIABLES)
def test_the_judge_always_has_words(variables: Mapping[str, Any]) -> None:
    parts = schema.installed()["properties"]
    for name, value in variables.items():
        for mistake in mistakes(value, parts.get(name, {})):
            assert mistake.message
            assert shown(mistake.value, name).isprintable()


@EASY
@given(VARIABLES)
def test_what_the_schema_lets_through_is_a_box(variables: Mapping[str, Any]) -> None:
    """The two judges agree: nothing that the schema allows fails to become a box."""
    parts = schema.installed()["properties"]
    if all(name in parts and not list(mistakes(value, parts[name])) for name, value in variables.items()):
        box_from_variables("box1", variables)


def allowed_by(part: Mapping[str, Any]) -> st.SearchStrategy[Any]:
    """Values that a schema allows."""
    if "anyOf" in part and "format" not in part["anyOf"][0]:
        return st.one_of(*[allowed_by(one) for one in part["anyOf"]])
    if "enum" in part:
        return st.sampled_from(part["enum"])
    kind = part.get("type")
    if isinstance(kind, list):
        return st.one_of(*[allowed_by({**part, "type": one}) for one in kind])
    if kind == "object":
        needed, known = part.get("required", ()), part.get("properties", {})
        return st.fixed_dictionaries(
            {key: allowed_by(known[key]) for key in needed if key in known},
            optional={key: allowed_by(inner) for key, inner in known.items() if key not in needed},
        )
    if kind == "array":
        return st.lists(allowed_by(part.get("items", {})), max_size=3)
    if kind == "string":
        if "anyOf" in part:
            return st.one_of(st.ip_addresses(v=4).map(str), st.ip_addresses(v=6).map(str))
        return st.from_regex(part["pattern"], fullmatch=True) if "pattern" in part else st.text(max_size=20)
    low, high = part.get("minimum", 0), part.get("maximum", 2**40)
    simple = {"integer": st.integers(low, high), "number": st.floats(0.01, 1), "boolean": st.booleans()}
    return simple.get(str(kind), st.none())


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(allowed_by({"type": "object", "properties": {
    name: part for name, part in schema.installed()["properties"].items() if name.startswith("box_")
}}))  # fmt: skip
def test_what_the_schema_allows_becomes_a_box(variables: Mapping[str, Any]) -> None:
    parts = schema.installed()["properties"]
    right = {name: value for name, value in variables.items() if not list(mistakes(value, parts[name]))}
    box = box_from_variables("box1", right)
    assert len(box.deployments) == len(right.get("box_deployments", ()))


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(VARIABLES)
def test_a_whole_inventory_is_checked(variables: Mapping[str, Any]) -> None:
    said = checked(
        {"hosts.yml": "all: {hosts: {box1: }}", "host_vars/box1.yml": yaml.safe_dump(dict(variables))}
    )
    assert isinstance(said, list)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.one_of(
        st.text(max_size=60),
        st.text(alphabet="ab:[]{}-&*!|>'\"#%@,?\n \t<", max_size=80),
        st.builds(yaml.safe_dump, VALUES),
    ),
    st.sampled_from(["hosts.yml", "hosts", "host_vars/box1.yml", "group_vars/all.yml"]),
)
def test_any_text_in_any_file_is_checked(text: str, name: str) -> None:
    files = {"hosts.yml": "all: {hosts: {box1: }}", name: text}
    if name == "hosts":
        del files["hosts.yml"]
    assert isinstance(checked(files), list)


@EASY
@given(st.text(alphabet="ab:[]{}-&*!|>'\"#%@,?\n \t<", max_size=120))
def test_any_text_is_composed_or_told(text: str) -> None:
    document = parse(Path("f.yml"), text)
    assert not document.broken or document.problems


@EASY
@given(st.lists(st.one_of(st.sampled_from(HOSTILE), st.text(max_size=10), st.just("box1")), max_size=4))
def test_any_name_is_a_host_or_told(names: list[str]) -> None:
    inventory = known()
    if names and all(name == "box1" for name in names):
        assert resolve_hosts(inventory, names) == ["box1"]
    else:
        with pytest.raises(UserError, match="known hosts: box1, box2") as raised:
            resolve_hosts(inventory, names)
        assert printable(raised.value.what) == raised.value.what


_KNOWN: list[Inventory] = []


def known() -> Inventory:
    if not _KNOWN:
        directory = Path(tempfile.mkdtemp(prefix="boxwright-test-"))
        (directory / "hosts.yml").write_text("all: {hosts: {box1: , box2: }}")
        _KNOWN.append(load([directory]))
        shutil.rmtree(directory)
    return _KNOWN[0]


def checked(files: Mapping[str, str]) -> list[str]:
    with tempfile.TemporaryDirectory(prefix="boxwright-test-") as scratch:
        for name, text in files.items():
            path = Path(scratch) / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(text.encode("utf-8", "surrogatepass"))
        inventory = load([Path(scratch)])
        said = [str(problem) for problem in check(inventory)]
        assert all(line.isprintable() for text in said for line in text.split("\n"))
        return said


@pytest.mark.parametrize("value", HOSTILE)
def test_no_hostile_string_is_accepted_where_it_could_do_harm(value: str) -> None:
    """What becomes part of a path, a unit, an image reference or an address has a narrow form."""
    deployment = schema.installed()["properties"]["box_deployments"]["items"]["properties"]
    for key in ("name", "image", "bind", "engine", "kv_cache"):
        if value not in ("a" * 5000, "8000", "null", "yes", "1e9") or key != "name":
            assert list(mistakes(value, deployment[key])), (key, value)
    parts = schema.installed()["properties"]
    assert list(mistakes(value, parts["box_root_dir"]))
    assert list(mistakes({"path": value}, deployment["model"]))
    assert list(mistakes({value: 1}, deployment["env"])) or value.isidentifier()
