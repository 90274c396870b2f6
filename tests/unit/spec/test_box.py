import dataclasses
from typing import Any

import pytest

from boxwright.spec import schema
from boxwright.spec.box import (
    Box,
    Cards,
    Deployment,
    Driver,
    Hub,
    ModelRef,
    Quantize,
    Secret,
    Speculative,
    Tuning,
    box_from_variables,
)
from boxwright.spec.problem import SpecErrors
from boxwright.spec.tuning import Limits

LEAST = {"name": "q", "model": "qwen3-8b", "image": "vllm/vllm-openai:v0.29.0"}


def box(**deployment: Any) -> Deployment:
    return box_from_variables("box1", {"box_deployments": [{**LEAST, **deployment}]}).deployments[0]


def test_the_example_of_the_design() -> None:
    found = box_from_variables(
        "box1",
        {
            "box_gpus": {"model": "rtx4090", "count": 2},
            "nvidia_driver_branch": "580",
            "gpu_tuning_max_clock_mhz": 2100,
            "engine_start_timeout_s": 900,
            "ansible_host": "192.0.2.1",
            "box_deployments": [
                {
                    "name": "qwen",
                    "model": "qwen3.8-27b-int4",
                    "engine": "vllm",
                    "image": "vllm/vllm-openai:v0.29.0",
                    "context": 262144,
                    "concurrency": 8,
                    "kv_cache": "fp8",
                    "speculative": {"method": "mtp", "tokens": 2},
                }
            ],
        },
    )
    assert found == Box(
        host="box1",
        gpus=(Cards("rtx4090", 2),),
        driver=Driver(branch="580"),
        tuning=Tuning(max_clock_mhz=2100),
        settings={
            "nvidia_driver_branch": "580",
            "gpu_tuning_max_clock_mhz": 2100,
            "engine_start_timeout_s": 900,
        },
        deployments=(
            Deployment(
                name="qwen",
                model=ModelRef(name="qwen3.8-27b-int4"),
                image="vllm/vllm-openai:v0.29.0",
                context=262144,
                concurrency=8,
                kv_cache="fp8",
                speculative=Speculative("mtp", 2),
            ),
        ),
    )
    assert found.gpu_count == 2


@pytest.mark.parametrize(
    ("key", "written", "read"),
    [
        ("gpus", 2, (0, 1)),
        ("gpus", [1, 3], (1, 3)),
        ("gpus", None, None),
        ("context", "auto", "auto"),
        ("context", 4096, 4096),
        ("gpu_memory_utilization", 1, 1.0),
        ("env", {"NCCL_P2P_DISABLE": 1, "A": "b"}, {"NCCL_P2P_DISABLE": "1", "A": "b"}),
        ("extra_args", {"a": [1, {"b": True}]}, {"a": (1, {"b": True})}),
        ("quantize", {}, Quantize()),
        ("quantize", {"group_size": 64}, Quantize(group_size=64)),
        ("quantize", None, None),
        ("model", {"repo": "a/b", "revision": "main"}, ModelRef(repo="a/b", revision="main")),
        ("model", {"path": "/models/x"}, ModelRef(path="/models/x")),
        ("api_key", "", None),
        ("api_key", "sesame-open", Secret("sesame-open")),
        ("prefix_caching", False, False),
        ("gate_prompt", "", None),
    ],
)
def test_a_key_is_read(key: str, written: object, read: object) -> None:
    assert getattr(box(**{key: written}), key) == read


@pytest.mark.parametrize(
    ("key", "written"),
    [
        ("port", "8000"),
        ("port", 8000.0),
        ("port", True),
        ("prefix_caching", "false"),
        ("prefix_caching", 0),
        ("gpu_memory_utilization", "0.9"),
        ("gpus", 0),
        ("gpus", 65),
        ("gpus", True),
        ("gpus", ["0"]),
        ("context", 1.5),
        ("context", True),
        ("env", {"A": True}),
        ("env", {"A": None}),
        ("env", []),
        ("extra_args", "--x"),
        ("extra_args", {1: 2}),
        ("model", 5),
        ("model", ""),
        ("model", {}),
        ("model", {"repo": "a/b", "path": "/x"}),
        ("model", {"name": "qwen3-8b"}),
        ("speculative", "mtp"),
        ("speculative", {"token": 2}),
        ("name", 5),
        ("name", None),
        ("nmae", "x"),
    ],
)
def test_a_wrong_value_is_named_and_nothing_else(key: str, written: object) -> None:
    with pytest.raises(SpecErrors) as raised:
        box(**{key: written})
    assert all(p.variable.startswith(f"box_deployments[0].{key}") for p in raised.value.problems)


def test_all_mistakes_come_at_once() -> None:
    with pytest.raises(SpecErrors) as raised:
        box_from_variables(
            "b", {"box_gpus": "2", "box_gpu": 1, "nvidia_driver_branch": 580, "box_hub": {"tokn": "x"}}
        )
    assert {p.variable for p in raised.value.problems} == {
        "box_gpus", "box_gpu", "nvidia_driver_branch", "box_hub.tokn"
    }  # fmt: skip
    assert raised.value.status == 2


def test_secrets_show_nowhere() -> None:
    found = box_from_variables(
        "b", {"box_hub": {"token": "hf_verysecret"}, "box_deployments": [{**LEAST, "api_key": "sesame-open"}]}
    )
    assert "hf_verysecret" not in f"{found!r}{found}{found.hub.token}"
    assert "sesame-open" not in f"{found!r}{found}"
    assert found.hub.token is not None
    assert found.hub.token.reveal() == "hf_verysecret"
    with pytest.raises(SpecErrors) as raised:
        box_from_variables(
            "b", {"box_deployments": [{**LEAST, "api_key": 12345678}], "box_hub": {"token": [7654321]}}
        )
    assert "12345678" not in str(raised.value)
    assert "7654321" not in str(raised.value)


def test_a_card_has_its_own_limits_over_the_box_s() -> None:
    tuning = box_from_variables(
        "b",
        {
            "gpu_tuning_max_clock_mhz": 2100,
            "gpu_tuning_power_limit_w": 450,
            "gpu_tuning_cards": {
                "0": {"max_clock_mhz": None},
                "1": {"max_clock_mhz": 1900},
                "GPU-b": {"memory_clock_mhz": 9000},
            },
        },
    ).tuning
    assert tuning.of(0, "GPU-a") == Limits(power_limit_w=450)
    assert tuning.of(1, "GPU-b") == Limits(max_clock_mhz=2100, memory_clock_mhz=9000, power_limit_w=450)
    assert tuning.of(2, None).clocks_mhz == (0, 2100)
    assert tuning.variable("max_clock_mhz", 0, None) == "gpu_tuning_cards.0.max_clock_mhz"
    assert tuning.variable("power_limit_w", 0, None) == "gpu_tuning_power_limit_w"


def test_networks_are_read_as_the_standard_library_writes_them() -> None:
    box = box_from_variables("b", {"box_allow_from": ["192.0.2.7", "2001:DB8::/32"]})
    assert box.allow_from == ("192.0.2.7/32", "2001:db8::/32")
    with pytest.raises(SpecErrors) as raised:
        box_from_variables("b", {"box_allow_from": ["192.0.2.0/24", "10.0.0.1/8"]})
    assert "box_allow_from[1]" in str(raised.value)


@pytest.mark.parametrize(("kind", "prefix"), [(Driver, "nvidia_driver_"), (Tuning, "gpu_tuning_")])
def test_the_defaults_are_those_of_the_roles(kind: Any, prefix: str) -> None:
    declared = schema.installed()["properties"]
    for field in dataclasses.fields(kind):
        assert prefix + field.name in declared, f"{prefix}{field.name} is in no role's argument_specs"
        default = declared[prefix + field.name].get("default")
        own = field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
        assert own == (None if default in ("", None) else default), field.name


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        (Deployment, ["box_deployments", "items"]),
        (Speculative, ["box_deployments", "items", "properties", "speculative"]),
        (Quantize, ["box_deployments", "items", "properties", "quantize"]),
        (Hub, ["box_hub"]),
    ],
)
def test_the_defaults_and_keys_are_those_of_preflight(kind: Any, path: list[str]) -> None:
    part = schema.installed()["properties"]
    for step in path:
        part = part[step]
    declared = part["properties"]
    assert {field.name for field in dataclasses.fields(kind)} == set(declared)
    for field in dataclasses.fields(kind):
        default = declared[field.name].get("default")
        if field.name == "speculative":
            assert field.default == Speculative()
        elif field.default_factory is not dataclasses.MISSING:
            assert field.default_factory() == default
        elif field.default is not dataclasses.MISSING:
            default = tuple(default) if isinstance(default, list) else default
            assert field.default == (None if default in ("", None) else default), field.name


def test_the_box_defaults_are_those_of_preflight() -> None:
    declared = schema.installed()["properties"]
    shared = {name for name in declared if name.startswith("box_")}
    given = {"host", "driver", "tuning", "settings"}
    assert shared == {f"box_{field.name}" for field in dataclasses.fields(Box)} - {
        f"box_{name}" for name in given
    }
    found = box_from_variables(
        "box1", {name: declared[name]["default"] for name in shared if "default" in declared[name]}
    )
    assert found == Box(host="box1")


@pytest.mark.parametrize(
    ("hub", "address"),
    [
        ({}, "https://huggingface.co"),
        ({"kind": "modelscope"}, "https://modelscope.cn"),
        ({"kind": "modelscope", "endpoint": "http://hub.example:8300"}, "http://hub.example:8300"),
        ({"endpoint": "https://hub.example"}, "https://hub.example"),
    ],
)
def test_a_hub_has_the_address_of_its_protocol_where_none_is_declared(hub, address):
    assert box_from_variables("box1", {"box_hub": hub}).hub.address == address
