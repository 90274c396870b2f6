"""Every task that may fetch is told the declared way out, also where a role is taken away again."""

from pathlib import Path

import pytest
import yaml

from boxwright.ansible import modules

ROLES = Path(__file__).resolve().parents[2] / "roles"
#: Modules that go that way.
FETCHING = [
    path.stem
    for path in Path(modules.__path__[0]).glob("*.py")
    if "way_out.follow(" in path.read_text() and path.stem != "host_facts"
]
#: Tasks of theirs that only take files away.
TAKING_AWAY = {("package_source", "absent")}


def tasks(value):
    for one in value if isinstance(value, list) else ():
        yield one
        for part in ("block", "rescue", "always"):
            yield from tasks(one.get(part))


FOUND = [
    pytest.param(name, task[name], id=f"{path.parts[-3]}/{path.name}: {task['name']}")
    for path in sorted(ROLES.glob("*/tasks/*.yml"))
    for task in tasks(yaml.safe_load(path.read_text()))
    for name in FETCHING
    if name in task and (name, task[name].get("state")) not in TAKING_AWAY
]


def test_there_are_some():
    assert {"held_packages", "package_source", "model_store"} <= set(FETCHING)
    assert len(FOUND) > len(FETCHING)


@pytest.mark.parametrize(("module", "arguments"), FOUND)
def test_the_way_out_is_told(module, arguments):
    assert "box_proxy" in arguments["proxy"]
    assert "box_no_proxy" in arguments["no_proxy"]
    assert module != "package_source" or "box_ca" in arguments["ca"]
