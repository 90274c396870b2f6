import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from boxwright.spec.inventory import Inventory
from boxwright.spec.problem import Problem, SpecErrors, is_secret, shown
from boxwright.spec.validate import Removed, check, judged_box, removed_variables

Read = Callable[[Mapping[str, str]], Inventory]
Told = Callable[[Mapping[str, str]], list[str]]


def one_line(problem: Problem) -> str:
    return str(problem).replace("\n    allowed: ", " | ")


LEAST = {"name": "q", "model": "qwen3-8b", "image": "vllm/vllm-openai:v0.29.0"}


def host(variables: Mapping[str, Any]) -> Mapping[str, str]:
    return {"host_vars/box1.yml": yaml.safe_dump(dict(variables), sort_keys=False)}


def one(**deployment: Any) -> Mapping[str, str]:
    return host({"box_deployments": [{**LEAST, **deployment}]})


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("box_gpus", {"model": "rtx5090"}),
        ("box_gpus", [{"model": "rtx5090", "count": 1}, {"model": "rtx4090"}]),
        ("nvidia_driver_branch", "570"),
        ("nvidia_driver_branch", "610"),
        ("nvidia_driver_cuda_toolkit", "12.8"),
        ("nvidia_driver_version", "580.105.08-1"),
        ("nvidia_driver_version", "3:580.105.08-1.el9"),
        ("nvidia_driver_version", "580.105.08-1.el9.x86_64"),
        ("gpu_tuning_max_clock_mhz", None),
        ("box_proxy", "http://user:word@proxy:3128"),
        ("box_proxy", "http://us%40er:w%2Frd%25$!@proxy.example.org:65535/"),
        ("box_proxy", "http://[2001:db8::1]:3128"),
        ("box_proxy", "http://192.0.2.1:80"),
        ("box_proxy", "controller"),
        ("box_hub", {"endpoint": "http://hub.example.org:8300", "token": "hf_abcdefghijk"}),
        ("box_root_dir", "/srv/box-wright.d"),
        ("other_role_variable", "false"),
        ("vault_box_hub_token", 5),
        ("gpu_count", 2),
    ],
)
def test_what_is_right(told: Told, variable: str, value: object) -> None:
    assert told(host({variable: value})) == []


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("model", {"repo": "Qwen/Qwen3-8B"}),
        ("model", {"repo": "gpt2", "revision": "a" * 40}),
        ("model", {"path": "/models/my-own"}),
        ("image", "depot.boxwright.lab:5000/vllm/vllm-openai:v0.32.0"),
        ("image", f"vllm/vllm-openai@sha256:{'a' * 64}"),
        ("image", f"vllm/vllm-openai:v0.29.0-cu129@sha256:{'a' * 64}"),
        ("image", "lmsysorg/sglang:v0.5.19-cu129"),
        ("image", "localhost/x_y__z:nightly"),
        ("gpus", [0, 2]),
        ("gpus", 1),
        ("context", "auto"),
        ("context", 262144),
        ("speculative", {"method": "none"}),
        ("speculative", {"method": "dflash2", "tokens": 7}),
        ("speculative", None),
        ("gpu_memory_utilization", 1),
        ("gpu_memory_utilization", 0.85),
        ("kv_cache_memory_bytes", 4_400_000_000),
        ("bind", "::1"),
        ("bind", "0.0.0.0"),
        ("name", "qwen3.8-27b"),
        (
            "extra_args",
            {"hf-overrides": {"rope_scaling": {"factor": 2}}, "a": False, "b": [1, "x"], "c.d": 0.5},
        ),
        ("env", {"NCCL_P2P_DISABLE": 1, "_X": ""}),
        ("quantize", {"bits": 4}),
    ],
)
def test_what_is_right_in_a_deployment(told: Told, key: str, value: object) -> None:
    assert told(one(**{key: value})) == []


@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [
        ("box_root_dir", "/etc", ": is a directory of the system's own"),
        ("box_root_dir", "/etc/boxwright", ": must lie apart from /etc/boxwright"),
        ("box_root_dir", "/usr/local/models", ": is a directory of the system's own"),
        ("box_root_dir", "/home", ": is a directory of the system's own"),
        ("box_root_dir", "/var/lib/docker/x", ": is a directory of the system's own"),
        ("box_config_dir", "/etc", ": is a directory of the system's own"),
        ("box_config_dir", "/etc/docker", ": is a directory of the system's own"),
        ("box_config_dir", "/var/lib/boxwright/config", ": must lie apart from /var/lib/boxwright"),
        ("box_config_dir", "/", ": is not of the right form"),
        ("box_gpus", {"model": "rtx4091"}, '.model: is no card of the catalog (is "rtx4091") | did you mean'),
        ("box_gpus", {"model": "l4", "count": "2"}, '.count: must be a whole number (is "2") | 2, with'),
        ("box_gpus", {"count": 2}, ".model: is required and missing"),
        ("box_gpus", "rtx4090", ": is not of the right form"),
        ("box_gpus", [{"model": "l4", "cuont": 2}], '[0].cuont: is not known here | did you mean "c'),
        ("box_gpu", {}, ": is not a variable of Boxwright | did you mean box_gpus?"),
        ("box_deploymnets", [], ": is not a variable of Boxwright"),
        ("nvidia_drvier_branch", "580", ": has no effect under this name"),
        ("box-gpus", {}, ": has no effect under this name | did you mean box_gpus?"),
        ("nvidia_driver_branch", 580, ': must be a string (is 580) | "580", in quotes'),
        ("nvidia_driver_branch", "550", ': is not of the right form (is "550") | "570" or newer'),
        ("nvidia_driver_branch", "580\n", ": is not of the right form"),
        ("nvidia_driver_manage", "yes", ': must be true or false (is "yes") | true, without quotes'),
        ("nvidia_driver_reboot", 0, ": must be true or false (is 0)"),
        ("nvidia_driver_cuda_toolkit", 12.8, ': must be a string (is 12.8) | "12.8", in quotes'),
        ("gpu_tuning_max_clock_mhz", "2100", ": must be a whole number"),
        ("gpu_tuning_max_clock_mhz", 210000, ": is too large (is 210000) | 100 to 10000"),
        ("gpu_tuning_power_limit_w", -5, ": is too small (is -5) | 10 to 2000"),
        ("gpu_tuning_power_limit_w", 26.0, ": must be a whole number (is 26.0) | 26, without"),
        ("gpu_tuning_persistence", None, ": is empty | true or false"),
        ("gpu_tuning_cards", {"0": {"max_clock_mhz": 99}}, ".0.max_clock_mhz: is too small (is 99) | 100"),
        ("gpu_tuning_cards", {"0": {"max_clock": 99}}, ".0.max_clock: is not known here | did you m"),
        ("gpu_tuning_cards", {"01": {}}, ".01: is no usable name | the index of a card in quotes"),
        ("gpu_tuning_cards", {"GPU-ab; rm -rf /": {}}, ".GPU-ab; rm -rf /: is no usable name"),
        ("gpu_tuning_cards", {0: {}}, ".0: is no usable name"),
        ("box_allow_from", "192.0.2.0/24", ": must be a list"),
        ("box_allow_from", ["192.0.2.7/24"], "[0]: has bits beside its prefix (is "),
        ("box_allow_from", ["::/0", "300.0.0.1"], "[1]: is no network"),
        ("box_allow_from", ["::ffff:192.0.2.0/120"], "[0]: is an IPv4 network written as one of IPv6"),
        ("box_allow_from", ["0.0.0.0/0 -j ACCEPT"], "[0]: is no network"),
        ("box_allow_from", ["-A INPUT"], "[0]: is no network"),
        ("box_allow_from", ["fe80::1%eth0"], "[0]: names an interface"),
        ("box_allow_from", ["example.org"], "[0]: is no network"),
        ("box_allow_from", ["192.0.2.1", "192.0.2.1"], ": names one thing twice"),
        ("box_root_dir", "/a b", ": is not of the right form"),
        ("box_root_dir", "/srv/../etc", ": is not of the right form"),
        ("box_root_dir", "relative", ": is not of the right form"),
        ("box_root_dir", "/", ": is not of the right form"),
        ("box_hub", {"endpoint": "https://huggingface.co/"}, ".endpoint: is not of the right form"),
        ("box_hub", {"endpoint": "huggingface.co"}, ".endpoint: is not of the right form"),
        ("box_hub", {"token": "hf bad token"}, ".token: is not of the right form (is ********)"),
        ("box_proxy", "proxy:3128", ": is not of the right form"),
        ("box_proxy", "http://me:se/cret@proxy:1", ': is not of the right form (is "http://me:********@proxy:1")'),
        ("box_proxy", 'http://me:se"cret@proxy:1', ': is not of the right form (is "http://me:********@proxy:1")'),
        ("box_proxy", "http://me:se@cret@proxy:1", ': is not of the right form (is "http://me:********@proxy:1")'),
        ("box_proxy", "http://me:se cret@proxy:1", ': is not of the right form (is "http://me:********@proxy:1")'),
        ("box_proxy", "http://me:se%cret@proxy:1", ": is not of the right form"),
        ("box_proxy", "http://proxy", ": is not of the right form"),
        ("box_proxy", "http://proxy:0", ": is not of the right form"),
        ("box_proxy", "http://proxy:65536", ": is not of the right form"),
        ("box_proxy", "http://2001:db8::1:3128", ": is not of the right form"),
        ("box_proxy", "http://proxy:3128/path", ": is not of the right form"),
        ("box_proxy", "https://proxy:3128", ": is not of the right form"),
        ("box_ca", "-----BEGIN RSA PRIVATE KEY-----\nSECRET\n-----END RSA PRIVATE KEY-----\n",
         ': is not of the right form (is "-----BEGIN RSA PRIVATE KEY-----********-----END'),
        ("box_deployments", {}, ": must be a list"),
        ("box_deployments", [5], "[0]: must be a mapping (is 5)"),
        ("container_runtime_registries", [{"host": "https://x", "username": "u", "password": "p"}],
         "[0].host: is not of the right form"),
        ("container_runtime_registries", [{"host": "x", "username": "me"}], "[0].password: is required"),
        ("container_runtime_registries", [{"host": "x", "password": 12345678, "username": "u"}],
         '[0].password: must be a string (is ********) | "********", in quotes'),
        ("container_runtime_registries", [{"host": "x", "ca": "no"}], "[0].ca: is not of the right form"),
        ("container_runtime_source", "vendr", ': is none of the choices (is "vendr") | did you mean'),
    ],
)  # fmt: skip
def test_what_is_wrong(told: Told, variable: str, value: object, words: str) -> None:
    said = told(host({"first": "line", variable: value}))
    assert any(
        line.startswith(f"host_vars/box1.yml:2: box1: {variable}{words}")
        or (line.startswith("host_vars/box1.yml:") and f"box1: {variable}{words}" in line)
        for line in said
    ), said


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("name", "Q wen", " is not of the right form"),
        ("name", "../x", " is not of the right form"),
        ("name", "q\n", " is not of the right form"),
        ("model", "qwen3-8", ' is no model of the catalog (is "qwen3-8") | did you mean "qwen3-8b"?'),
        ("model", "Qwen/Qwen3-8B", "{repo: Qwen/Qwen3-8B}"),
        ("model", {"repo": "a/b/c"}, ".repo: is not of the right form"),
        ("model", {"path": "models/x"}, ".path: is not of the right form"),
        ("model", {"path": "/x", "revision": "main"}, ".repo: is required and missing"),
        ("model", {}, " must say one of repo and path"),
        ("model", {"repo": "a/b", "path": "/x"}, " must say one of repo and path"),
        ("model", 5, " is not of the right form"),
        ("engine", "vlm", ' is none of the choices (is "vlm") | did you mean "vllm"?'),
        ("image", "vllm/vllm-openai", " is not of the right form"),
        ("image", "vllm/vllm-openai:", " is not of the right form"),
        ("image", "vllm/vllm-openai:v1 --privileged", " is not of the right form"),
        ("image", "-v/:/host:x", " is not of the right form"),
        ("gpus", [], " is empty"),
        ("gpus", [0, 0], " names one thing twice"),
        ("gpus", ["0"], "[0]: must be a whole number (is \"0\") | 0, without quotes"),
        ("context", "8k", ' must be a whole number (is "8k") | 8192, as a plain number'),
        ("context", 0, " is too small (is 0)"),
        ("concurrency", "8", ' must be a whole number (is "8") | 8, without quotes'),
        ("context", "128k", ' must be a whole number (is "128k") | 131072, as a plain number'),
        ("context", "131,072", ' must be a whole number (is "131,072") | 131072, as a plain number'),
        ("max_batched_tokens", "8K", ' must be a whole number (is "8K") | 8192, as a plain number'),
        ("concurrency", 8.0, " must be a whole number (is 8.0) | 8, without a decimal point"),
        ("concurrency", float("nan"), " must be a whole number (is nan)"),
        ("concurrency", None, " is empty | 1 to 4096"),
        ("kv_cache", "fp9", ' is none of the choices (is "fp9")'),
        ("speculative", {"method": "mtp"}, ".tokens: is required and missing"),
        ("speculative", {"method": "mtp", "tokens": None}, ".tokens: is empty"),
        ("speculative", {"method": "mtp", "tokens": 0}, ".tokens: is too small"),
        ("speculative", {"method": "MTP", "tokens": 2}, ".method: is none of the choices"),
        ("speculative", "mtp", " must be a mapping"),
        ("prefix_caching", "false", ' must be true or false (is "false") | false, without quotes'),
        ("gpu_memory_utilization", 95, "(is 95) | a share between 0 and 1: 0.95 for 95 percent"),
        ("gpu_memory_utilization", 0, " is too small (is 0)"),
        ("gpu_memory_utilization", "0.9", ' must be a number (is "0.9") | 0.9, without quotes'),
        ("gpu_memory_utilization", float("nan"), " must be a number (is nan)"),
        ("gpu_memory_utilization", float("inf"), " must be a number (is inf)"),
        ("port", "8000", ' must be a whole number (is "8000") | 8000, without quotes'),
        ("port", 0, " is too small (is 0) | 1024 to 65535"),
        ("port", 22, " is too small (is 22) | 1024 to 65535"),
        ("port", 65536, " is too large"),
        ("context", "8192", ' must be a whole number (is "8192") | 8192, without quotes'),
        ("gpus", "2", ' must be a whole number (is "2") | 2, without quotes'),
        ("bind", "localhost", " is not of the right form"),
        ("bind", "1.2.3.4:80", " is not of the right form"),
        ("api_key", "short", " is not of the right form (is ********)"),
        ("api_key", 12345678, ' must be a string (is ********) | "********", in quotes'),
        ("quantize", {"bits": 8}, ".bits: is none of the choices (is 8) | 4"),
        ("extra_args", {"--enforce-eager": True}, ".--enforce-eager: is no usable name"),
        ("extra_args", {"a": None}, ".a: is empty"),
        ("extra_args", ["a"], " must be a mapping"),
        ("env", {"A": True}, ".A: must be a string or a whole number (is true) | \"true\", in quotes"),
        ("env", {"1A": "x"}, ".1A: is no usable name"),
        ("env", {"A": "x\ny"}, ".A: is not of the right form"),
        ("env", {"HF_TOKEN": "x\ny"}, ".HF_TOKEN: is not of the right form (is ********)"),
        ("gate_expect", "(", ".gate_prompt: is required and missing"),
        ("gate_expect", "(", ".gate_expect: is not of the right form"),
        ("contxet", 5, '.contxet: is not known here | did you mean "context"?'),
    ],
)  # fmt: skip
def test_what_is_wrong_in_a_deployment(told: Told, key: str, value: object, words: str) -> None:
    said = told(one(**{key: value}))
    assert any(words in line and f"box_deployments[0].{key.split('.')[0]}"[:21] in line for line in said), (
        said
    )
    assert all(line.startswith("host_vars/box1.yml:") for line in said)


def test_the_line_is_the_one_of_the_wrong_value(told: Told) -> None:
    [said] = told({"host_vars/box1.yml": (
        "# my box\nbox_deployments:\n  - name: q\n    model: qwen3-8b\n    image: x:1\n\n    port: '8000'\n"
    )})  # fmt: skip
    assert said.startswith("host_vars/box1.yml:7: box1: box_deployments[0].port: must be a whole number")


def test_a_required_key_that_is_missing(told: Told) -> None:
    [said] = told({"host_vars/box1.yml": "\nbox_deployments:\n  - {name: q, model: qwen3-8b}\n"})
    assert said.startswith("host_vars/box1.yml:3: box1: box_deployments[0].image: is required and missing")


def test_all_mistakes_of_all_files_come_at_once(told: Told) -> None:
    said = told({
        "hosts.yml": "all:\n  vars: {box_proxy: 5}\n  hosts:\n    box1: {box_gpus: 2}\n"
        "    box2: {box_hub: []}\n    box3:\n",
        "group_vars/all.yml": "box_root_dir: x\n",
        "host_vars/box2.yml": "nvidia_driver_branch: '500'\n",
        "host_vars/box3.yml": "a: [",
    })  # fmt: skip
    places = [line.split(": ")[0] for line in said]
    assert places == [
        "group_vars/all.yml:1",
        "host_vars/box2.yml:1",
        "host_vars/box3.yml:1",
        "hosts.yml:2",
        "hosts.yml:4",
        "hosts.yml:5",
    ]


def test_one_line_of_a_group_is_one_mistake(told: Told) -> None:
    [said] = told({"hosts.yml": "all:\n  hosts:\n    box[1:5]:\n", "group_vars/all.yml": "box_proxy: 5\n"})
    assert said.startswith("group_vars/all.yml:1: box1 and 4 more: box_proxy: must be a string")


@pytest.mark.parametrize(
    ("second", "words"),
    [
        ({"name": "q", "port": 8001}, "[1].name: is also the name of box_deployments[0]"),
        ({"name": "r"}, "[1].port: is also the port of box_deployments[0] (is 8000)"),
        ({"name": "r", "port": 8000}, "[1].port: is also the port of box_deployments[0] (is 8000)"),
    ],
)
def test_names_and_ports_are_not_shared(told: Told, second: dict[str, object], words: str) -> None:
    [said] = told(host({"box_deployments": [LEAST, {**LEAST, **second}]}))
    assert words in said


def test_one_port_on_two_addresses_is_not_shared(told: Told) -> None:
    other = {**LEAST, "name": "r", "bind": "192.0.2.7"}
    assert told(host({"box_deployments": [LEAST, other]})) == []
    [said] = told(host({"box_deployments": [LEAST, {**other, "bind": "0.0.0.0"}]}))
    assert "[1].port: is also the port of box_deployments[0]" in said


def test_the_port_of_ssh_is_not_for_an_endpoint(told: Told) -> None:
    [said] = told(host({"ansible_port": 2222, "box_deployments": [{**LEAST, "port": 2222}]}))
    assert "[0].port: is the port of the host's SSH (is 2222)" in said


def test_both_ways_to_size_the_pool(told: Told) -> None:
    [said] = told(one(gpu_memory_utilization=0.9, kv_cache_memory_bytes=2**30))
    assert "sets gpu_memory_utilization and kv_cache_memory_bytes" in said


def test_templates_and_vaults_are_not_typed_but_what_is_beside_them_is(told: Told) -> None:
    keys = (
        "name",
        "model",
        "image",
        "port",
        "prefix_caching",
        "concurrency",
        "kv_cache",
        "gpus",
        "bind",
        "context",
    )
    deployment = {key: "8" if key == "concurrency" else "{{ x }}" for key in keys}
    templates = {"box_gpus": "{{ x }}", "nvidia_driver_branch": "{{ x }}"}
    said = told(host({"box_deployments": [{**deployment, "env": {"A": "{{ x }}"}}], **templates}))
    assert [line.split(" | ")[0] for line in said] == [
        'host_vars/box1.yml:7: box1: box_deployments[0].concurrency: must be a whole number (is "8")'
    ]


def test_a_removed_variable_says_what_replaces_it(read: Read) -> None:
    inventory = read(host({"x": 1, "engine_context": 5, "box_old": 1}))
    removed = [Removed("engine_context", "0.3.0", "box_deployments[].context", "it is a deployment's"),
               Removed("box_old", "0.2.0")]  # fmt: skip
    said = [one_line(problem) for problem in check(inventory, removed=removed)]
    assert any(":2: box1: engine_context: was removed in 0.3.0: it is a deployment's"
               " | box_deployments[].context" in line for line in said)  # fmt: skip
    assert any("box_old: was removed in 0.2.0 | nothing in its place: take it out" in line for line in said)
    assert len(said) == 2


def test_the_table_of_removed_variables_is_readable(tmp_path: Path) -> None:
    assert isinstance(removed_variables(), tuple)
    table = tmp_path / "removed.yml"
    table.write_text("- {name: box_old, since: 0.2.0, use: box_new, why: shorter}\n")
    assert removed_variables(table) == (Removed("box_old", "0.2.0", "box_new", "shorter"),)


def test_only_the_hosts_asked_for(read: Read) -> None:
    inventory = read({"hosts.yml": "all:\n  hosts:\n    box1: {box_gpus: 2}\n    box2: {box_gpus: 3}\n"})
    assert [problem.host for problem in check(inventory, ["box2"])] == ["box2"]


@pytest.mark.parametrize(
    ("path", "value", "text"),
    [
        ("x", {"a": [1, True, None, "b"]}, '{a: [1, true, null, "b"]}'),
        ("x", "a\nb\x1b", '"a\\nb\\x1b"'),
        ("x", "y" * 200, '"' + "y" * 78 + "…"),
        ("x.api_key", "open", "********"),
        ("x", {"api_key": "o", "env": {"MY_TOKEN": "s"}}, "{api_key: ********, env: {MY_TOKEN: ********}}"),
        ("box_deployments[0].env", {"MY_TOKEN": "shut", "A": "b"}, '{MY_TOKEN: ********, A: "b"}'),
        ("box_proxy", "http://me:word@proxy:1", '"http://me:********@proxy:1"'),
        ("box_hub", {"token": ""}, '{token: ""}'),
        ("box_proxy", "me:word@proxy:1", '"me:********@proxy:1"'),
        ("x", ["me:word@proxy:1"], '["me:********@proxy:1"]'),
        ("box_pip_index_url", "https://me:a/b c@index:1", '"https://me:********@index:1"'),
        ("x", {"a": "-----BEGIN PRIVATE KEY-----\nSECRET"}, '{a: "-----BEGIN PRIVATE KEY-----********'),
        ("box_hub", "hf_abcdefghijklmnopqrst", '"********"'),
        ("image", "a/b:v1@sha256:" + "0" * 8, '"a/b:v1@sha256:00000000"'),
    ],
)  # fmt: skip
def test_how_a_value_is_shown(path: str, value: object, text: str) -> None:
    assert shown(value, path) == text


@pytest.mark.parametrize(
    "path", ["box_hub.token", "box_deployments[0].api_key", "x.env.OPENAI_KEY", "a_password", "secret"]
)
def test_names_of_secrets(path: str) -> None:
    assert is_secret(path)


@pytest.mark.parametrize(
    "path", ["box_deployments[0].speculative.tokens", "x.env.MONKEY_ISLAND", "keyboard", "max_tokens"]
)
def test_names_of_none(path: str) -> None:
    assert not is_secret(path)


def test_an_error_carries_all_problems_and_their_places() -> None:
    problems = [
        Problem("f.yml", 3, "box1", "a.b", "5", "is wrong", "4"),
        Problem(None, None, "box1", "c", "", "is missing"),
    ]
    error = SpecErrors(problems)
    assert error.status == 2
    assert "f.yml:3: box1: a.b: is wrong (is 5)" in str(error)
    assert "2 mistakes" in str(error)
    assert problems[0].to_json() == {
        "file": "f.yml",
        "line": 3,
        "host": "box1",
        "variable": "a.b",
        "value": "5",
        "message": "is wrong",
        "allowed": "4",
    }


@pytest.mark.parametrize(
    ("spoiled", "told"),
    [
        ({"name": "../../x"}, "box_deployments[0].name"),
        ({"name": "$(id)"}, "box_deployments[0].name"),
        ({"image": "-v /:/host a:b"}, "box_deployments[0].image"),
        ({"port": "8000"}, "box_deployments[0].port"),
        ({"model": "qwen3-8c"}, "qwen3-8b"),
        ({"api_key": "sekret"}, "********"),
    ],
)
def test_what_templates_came_to_is_judged_as_well(spoiled, told):
    with pytest.raises(SpecErrors, match="nothing was done") as caught:
        judged_box("box1", {"box_deployments": [{**LEAST, **spoiled}]})
    assert told in str(caught.value)
    assert "sekret" not in str(caught.value)


def test_templates_that_came_to_the_same_port():
    with pytest.raises(SpecErrors, match="is also the port of"):
        judged_box("box1", {"box_deployments": [LEAST, {**LEAST, "name": "r"}]})


def test_what_templates_came_to_is_a_box():
    assert judged_box("box1", {"box_deployments": [LEAST], "lab_checkout": "/x"}).deployments[0].name == "q"


@pytest.mark.parametrize("text", ["y" * 3_000_000, "http://" * 300_000, "a:" * 1_000_000, "://" * 500_000])
def test_a_long_value_is_shown_at_once(text: str) -> None:
    begun = time.process_time()
    assert len(shown(text)) == 80
    assert time.process_time() - begun < 10


SECRET = "S3cr3t-word"


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"host_vars/box1.yml": f"box_hub_tokn: {SECRET}\n"}, "is not a variable of Boxwright"),
        ({"host_vars/box1.yml": f"box_hub: {{tokn: {SECRET}}}\n"}, "is not known here"),
        ({"host_vars/box1.yml": f"ansible_password: !{SECRET}\n"}, "a word that begins with !"),
        ({"host_vars/box1.yml": f"ansible_password: *{SECRET}\n"}, "begins with * needs quotation marks"),
        ({"host_vars/box1.yml": f"ansible_password: !!int {SECRET}\n"}, "makes no whole number"),
        ({"host_vars/box1.yml": f"ansible_password: !!binary {SECRET}\n"}, "makes no binary value"),
        ({"hosts": f"box1 ansible_password={SECRET} x='\n"}, "hosts:1: has a quotation mark that"),
        ({"hosts": f"box1 ansible_password= {SECRET}\n"}, "hosts:1: has a word that is no NAME=value"),
        ({"hosts": f"box1\n[all:vars]\n{SECRET}\n"}, "hosts:3: is no variable | NAME=value"),
        (
            {"hosts.yml": f"a: {{children: {{a: }}, hosts: {{b: {{ansible_password: '{SECRET}'}}}}}}\n"},
            "is no inventory: can't add group to itself",
        ),
    ],
)  # fmt: skip
def test_a_mistake_does_not_tell_a_secret(told: Told, files: Mapping[str, str], words: str) -> None:
    said = told({"hosts.yml": "all:\n", **files} if "hosts" in files else files)
    assert any(words in line for line in said), said
    assert not any(SECRET in line for line in said)


def test_a_group_loop_is_told_as_one(told: Told) -> None:
    loop = "a: {children: {b: }, hosts: {box1: }}\nb: {children: {a: }}\n"
    [said] = told({"hosts.yml": loop})
    assert "recursive dependency loop" in said
    assert "'ini'" not in said


def test_what_ansible_tells_of_all_hosts_is_no_variable_of_one(read: Read) -> None:
    """For thousands of hosts it would be copied for each of them."""
    inventory = read({"hosts.yml": "all: {hosts: {'box[1:3]': }}\n"})
    assert {"groups", "hostvars"}.isdisjoint(inventory.raw("box1"))
