"""Who is behind a gateway, and what it sends where."""

import pytest

from boxwright.errors import UserError
from boxwright.planner import fleet
from boxwright.spec.box import box_from_variables

HOSTS = {"gw": ("all",), "box1": ("all", "boxes"), "box2": ("all", "boxes"), "other": ("all",)}


def box(host, *deployments, **variables):
    served = [{"model": "m", "image": "i:1", "bind": "0.0.0.0", **one} for one in deployments]
    return box_from_variables(host, {"box_deployments": served, **variables})


@pytest.mark.parametrize(
    ("named", "found"),
    [
        (["boxes"], ("box1", "box2")),
        (["box2", "other"], ("box2", "other")),
        (["all"], ("gw", "box1", "box2", "other")),
        ([], ()),
    ],
)
def test_members(named, found):
    assert fleet.members(named, HOSTS) == found


def test_a_name_of_nobody_is_refused():
    with pytest.raises(UserError, match="gateway_boxes names boxs, which is neither"):
        fleet.members(["boxs", "box1"], HOSTS)


def test_deployments_of_one_name_are_one_model():
    boxes = {
        "gw": box("gw", {"name": "q", "bind": "127.0.0.1"}),
        "box1": box("box1", {"name": "q", "port": 8001}, {"name": "r"}, box_config_dir="/srv/bw"),
        "box2": box("box2", {"name": "q", "bind": "192.0.2.9"}),
        "box3": box("box3", {"name": "r"}, gateway_address="box3.lan"),
    }
    found = {one["name"]: one["servers"] for one in fleet.models("gw", boxes, {"box1": "192.0.2.1"})}
    assert [(one["box"], one["address"], one["port"]) for one in found["q"]] == [
        ("gw", "127.0.0.1", 8000),
        ("box1", "192.0.2.1", 8001),
        ("box2", "192.0.2.9", 8000),
    ]
    assert [(one["box"], one["address"]) for one in found["r"]] == [
        ("box1", "192.0.2.1"),
        ("box3", "box3.lan"),
    ]
    assert found["q"][1]["key_file"] == "/srv/bw/engines/q/api-key"


def test_a_deployment_that_only_its_own_box_reaches_is_refused():
    with pytest.raises(UserError, match="cannot reach q") as caught:
        fleet.models("gw", {"box1": box("box1", {"name": "q", "bind": "127.0.0.1"})}, {})
    assert "bind: 0.0.0.0" in str(caught.value)


@pytest.mark.parametrize(
    ("gateways", "found"),
    [
        ({"a": ["x"], "b": ["x"], "c": ["y"]}, [["a", "b"], ["c"]]),
        # a and b never meet at one gateway, and c would be out of use with either.
        ({"a": ["x"], "b": ["y"], "c": ["x", "y"]}, [["a", "b", "c"]]),
        ({"a": ["x"], "b": ["y"], "c": ["z"]}, [["a"], ["b"], ["c"]]),
        ({"a": [], "b": [], "c": []}, [["a"], ["b"], ["c"]]),
    ],
)
def test_those_with_a_gateway_in_common_wait_for_each_other(gateways, found):
    assert sorted(fleet.lanes(["a", "b", "c"], gateways)) == found
