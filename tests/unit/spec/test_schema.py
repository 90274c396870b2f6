import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from boxwright.errors import UserError
from boxwright.spec import schema

ROOT = Path(__file__).resolve().parents[3]


def specs(options: dict[str, Any]) -> str:
    return yaml.safe_dump({"argument_specs": {"main": {"short_description": "x", "options": options}}})


def role(directory: Path, name: str, options: dict[str, Any]) -> None:
    meta = directory / name / "meta"
    meta.mkdir(parents=True)
    (meta / "argument_specs.yml").write_text(specs(options))


def test_every_kind_of_option(tmp_path: Path) -> None:
    role(
        tmp_path,
        "engine",
        {
            "engine_s": {
                "type": "str",
                "default": "a",
                "choices": ["a", "b"],
                "description": ["One C(x).", "Two."],
            },
            "engine_i": {"type": "int"},
            "engine_b": {"type": "bool", "required": True},
            "engine_f": {"type": "float", "default": 0.5},
            "engine_p": {"type": "path", "default": "/x"},
            "engine_r": {"type": "raw"},
            "engine_l": {"type": "list", "elements": "int", "default": []},
            "engine_untyped": {"default": ""},
            "engine_d": {
                "type": "list",
                "elements": "dict",
                "options": {
                    "name": {"type": "str", "required": True},
                    "free": {"type": "dict", "default": {}},
                },
            },
        },
    )
    built = schema.build(tmp_path)
    Draft202012Validator.check_schema(built)
    assert built["required"] == ["engine_b"]
    assert built["properties"] == {
        "engine_b": {"type": "boolean"},
        "engine_d": {
            "type": ["array", "null"],
            "items": {
                "type": "object",
                "properties": {"name": {"type": "string"}, "free": {"type": "object", "default": {}}},
                "required": ["name"],
                "additionalProperties": False,
            },
        },
        "engine_f": {"type": "number", "default": 0.5},
        "engine_i": {"type": ["integer", "null"]},
        "engine_l": {"type": "array", "items": {"type": "integer"}, "default": []},
        "engine_p": {"type": "string", "default": "/x"},
        "engine_r": {},
        "engine_s": {"type": "string", "enum": ["a", "b"], "default": "a", "description": "One `x`. Two."},
        "engine_untyped": {"type": "string", "default": ""},
    }


def test_what_one_role_hands_to_another_is_no_variable_of_a_person(tmp_path: Path) -> None:
    role(tmp_path, "engine", {"box_plan": {"type": "dict", "required": True}, "engine_x": {"type": "int"}})
    assert set(schema.build(tmp_path)["properties"]) == {"engine_x"}


def test_a_shared_variable_is_preflights(tmp_path: Path) -> None:
    role(tmp_path, "engine", {"box_proxy": {"type": "str", "description": "the engine's"}})
    role(tmp_path, "preflight", {"box_proxy": {"type": "str", "default": "", "description": "the truth"}})
    assert schema.build(tmp_path)["properties"]["box_proxy"]["description"] == "the truth"


@pytest.mark.parametrize(
    "text", ["argument_specs: {}", "[]", "argument_specs: {main: [", specs({"engine_x": {"type": "sid"}})]
)
def test_a_role_that_declares_nonsense(tmp_path: Path, text: str) -> None:
    role(tmp_path, "engine", {})
    (tmp_path / "engine" / "meta" / "argument_specs.yml").write_text(text)
    with pytest.raises(UserError):
        schema.build(tmp_path)


def test_editors_refuse_misspelt_variables_and_leave_others_alone() -> None:
    judge = Draft202012Validator(schema.installed())
    assert judge.is_valid({"ansible_user": "x", "my_own": 1})
    assert not judge.is_valid({"box_gpu": 1})


def test_every_constraint_has_its_variable() -> None:
    constraints = yaml.safe_load((ROOT / "boxwright" / "spec" / "constraints.yml").read_text())
    known = schema.installed()["properties"]
    lost = [path for path in constraints["variables"] if schema.at(known, path) is None]
    assert not lost


def test_every_pattern_is_anchored_and_every_variable_described() -> None:
    for path, part in walk(schema.installed()["properties"]):
        if "pattern" in part:
            assert part["pattern"].startswith("^"), path
            assert part["pattern"].endswith("$"), path
            assert "x-allowed" in part, f"{path}: a pattern that nobody can read"
        if "type" in part and path.count(".") < 3:
            assert part.get("description") or path.endswith("]"), f"{path} has no description"


def walk(properties: dict[str, Any], path: str = "") -> list[tuple[str, dict[str, Any]]]:
    found = []
    for name, part in properties.items():
        here = f"{path}.{name}" if path else name
        found.append((here, part))
        found += walk(part.get("properties", {}), here)
        if "items" in part:
            found.append((f"{here}[]", part["items"]))
            found += walk(part["items"].get("properties", {}), f"{here}[]")
    return found


def test_every_default_is_allowed() -> None:
    built = schema.installed()
    Draft202012Validator.check_schema(built)
    assert Draft202012Validator(built).is_valid(schema.defaults(built))


def test_every_role_declares_only_its_own_variables() -> None:
    for file in ROOT.glob("roles/*/meta/argument_specs.yml"):
        name = file.parents[1].name
        options = yaml.safe_load(file.read_text())["argument_specs"]["main"].get("options") or {}
        foreign = [option for option in options if not option.startswith((f"{name}_", "box_"))]
        assert not foreign, f"{name}: {foreign}"


def test_the_file_for_editors_is_fresh() -> None:
    written = (ROOT / "inventory" / "schema.json").read_text(encoding="utf-8")
    assert written == schema.text(), "invoke schema"
    assert json.loads(written)["$schema"] == schema.DIALECT
