"""What is written of a release says the same as the box's own unit, in each format."""

import importlib.util
import json
import re
import shlex
from pathlib import Path

import jsonschema
import kubernetes_validate
import pytest
import yaml

from boxwright.ansible.module_utils.engine_container import MODEL_DIRECTORY, PORT
from boxwright.export import FORMATS, compose, kubernetes, quadlet

spec = importlib.util.spec_from_file_location("releases", Path(__file__).with_name("releases.py"))
releases = importlib.util.module_from_spec(spec)
spec.loader.exec_module(releases)
BOTH, GUARD, PLAIN, STATE, release = (
    getattr(releases, name) for name in ("BOTH", "GUARD", "PLAIN", "STATE", "release")
)
KUBERNETES = "1.30"
BOX = BOTH[0].container


def composed(service="qwen"):
    """A service with compose's own `$$` read back."""

    def read(value):
        if isinstance(value, dict):
            return {key: read(one) for key, one in value.items()}
        if isinstance(value, list):
            return [read(one) for one in value]
        if isinstance(value, str):
            assert not re.search(r"(?<!\$)\$(?:\$\$)*(?!\$)", value), value
            return value.replace("$$", "$")
        return value

    return read(yaml.safe_load(compose.files(BOTH)["compose.yaml"])["services"][service])


def units(name="boxwright-qwen.container"):
    """Section -> (key, value) of a Quadlet file, continued lines joined."""
    found, section = {}, None
    for line in quadlet.files(BOTH)[name].replace("\\\n", "").splitlines():
        if line.startswith("["):
            section = found.setdefault(line.strip("[]"), [])
        elif line and not line.startswith("#"):
            section.append(tuple(line.split("=", 1)))
    return found


def words(text):
    """What systemd makes of words in a line, the specifiers and variables of ours read back."""
    return [one.replace("%%", "%").replace("$$", "$") for one in shlex.split(text)]


def manifests(state=STATE):
    text = kubernetes.files([release(state)])[f"boxwright-{state['name']}.yaml"]
    return {one["kind"]: one for one in yaml.safe_load_all(text)}


def test_each_runs_the_same_command_in_the_same_image():
    entry, command = BOTH[0].entrypoint, BOX.command
    assert entry[2].endswith(BOX.entrypoint[2])
    service = composed()
    assert (service["image"], service["entrypoint"], service["command"]) == (BOX.image, entry, command)
    container = dict(units()["Container"])
    assert [container["Entrypoint"], *words(container["Exec"])] == [*entry, *command]
    assert container["Image"] == "docker.io/vllm/vllm-openai@sha256:" + "a" * 64
    pod = manifests()["Deployment"]["spec"]["template"]["spec"]["containers"][0]
    plain = [word.replace("$$(", "$(") for word in [*pod["command"], *pod["args"]]]
    assert (pod["image"], plain) == (BOX.image, [*entry, *command])


def test_each_sets_the_same_environment():
    assert composed()["environment"] == BOX.env
    pairs = [words(value)[0].split("=", 1) for key, value in units()["Container"] if key == "Environment"]
    assert dict(pairs) == BOX.env
    pod = manifests()["Deployment"]["spec"]["template"]["spec"]["containers"][0]
    assert {one["name"]: one["value"].replace("$$(", "$(") for one in pod["env"]} == BOX.env


def test_each_mounts_the_same_and_the_key_is_only_named():
    wanted = {(one.what, one.source, one.target, one.read_only) for one in BOX.mounts if one.what != "key"}
    by_target = {target: what for what, _, target, _ in wanted}
    assert {
        (by_target[one["target"]], one["source"], one["target"], one["read_only"])
        for one in composed()["volumes"]
    } == {(w, "./boxwright-qwen-engine_guard.py" if w == "guard" else s, t, r) for w, s, t, r in wanted}
    volumes = [value.rsplit(":", 2) for key, value in units()["Container"] if key == "Volume"]
    assert {(by_target[target], target, mode == "ro") for _, target, mode in volumes} == {
        (w, t, r) for w, _, t, r in wanted
    }
    assert "/data/drafts, of mine/d" in [source for source, _, _ in volumes]
    pod = manifests()["Deployment"]["spec"]["template"]["spec"]
    inside = {
        one["mountPath"]: one["readOnly"] for one in pod["containers"][0]["volumeMounts"] if "readOnly" in one
    }
    assert inside == {one.target: one.read_only for one in BOX.mounts}
    assert {
        one["name"]: one.get("hostPath", {}).get("path") for one in pod["volumes"] if "hostPath" in one
    } == {w: s for w, s, _, _ in wanted if w != "guard"}
    assert composed()["secrets"] == [{"source": "qwen-key", "target": "/run/boxwright/api-key"}]
    whole = yaml.safe_load(compose.files(BOTH)["compose.yaml"])
    assert whole["secrets"]["qwen-key"] == {"file": STATE["key_file"]}
    secret = dict(units()["Container"])["Secret"]
    assert secret == "boxwright-qwen-key,type=mount,target=/run/boxwright/api-key,mode=0440"
    assert (
        next(one for one in pod["volumes"] if one["name"] == "key")["secret"]["secretName"]
        == "boxwright-qwen"
    )
    assert "Secret" not in manifests()


def test_each_is_as_hardened_as_the_box():
    service = composed()
    assert service["read_only"] is True
    assert (service["cap_drop"], service["security_opt"]) == (["ALL"], ["no-new-privileges:true"])
    container = units()["Container"]
    for setting in (("ReadOnly", "true"), ("DropCapability", "ALL"), ("NoNewPrivileges", "true")):
        assert setting in container
    pod = manifests()["Deployment"]["spec"]["template"]["spec"]
    assert pod["containers"][0]["securityContext"] == {
        "readOnlyRootFilesystem": True,
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
    }
    assert pod["automountServiceAccountToken"] is False


def test_each_gives_the_same_cards_and_port():
    names = ["nvidia.com/gpu=GPU-1", "nvidia.com/gpu=GPU-2"]
    [devices] = composed()["deploy"]["resources"]["reservations"]["devices"]
    assert devices == {"driver": "cdi", "device_ids": names, "capabilities": ["gpu"]}
    assert [value for key, value in units()["Container"] if key == "AddDevice"] == names
    pod = manifests()["Deployment"]["spec"]["template"]["spec"]["containers"][0]
    assert pod["resources"] == {"limits": {"nvidia.com/gpu": 2}}
    [port] = composed()["ports"]
    assert (port["host_ip"], port["published"], port["target"]) == ("127.0.0.1", "8001", PORT)
    assert dict(units()["Container"])["PublishPort"] == "127.0.0.1:8001:8000"
    assert dict(units("boxwright-small.container")["Container"])["PublishPort"] == "[::]:8002:8000"
    assert "deploy" not in composed("small")
    old = compose.files([release({**STATE, "access": "gpus"})])["compose.yaml"]
    devices = yaml.safe_load(old)["services"]["qwen"]["deploy"]["resources"]["reservations"]["devices"]
    assert devices == [{"driver": "nvidia", "device_ids": ["GPU-1", "GPU-2"], "capabilities": ["gpu"]}]


def test_what_may_not_call_out_may_not():
    whole = yaml.safe_load(compose.files(BOTH)["compose.yaml"])
    assert composed()["networks"] == ["boxwright"]
    assert composed("small")["networks"] == ["default"]
    options = whole["networks"]["boxwright"]["driver_opts"]
    assert options["com.docker.network.bridge.enable_ip_masquerade"] == "false"
    policy = manifests()["NetworkPolicy"]["spec"]
    assert (policy["policyTypes"], policy["egress"]) == (["Egress"], [])
    assert "NetworkPolicy" not in manifests(PLAIN)
    assert "boxwright.network" in quadlet.files(BOTH)
    assert "boxwright.network" not in quadlet.files([release(PLAIN)])


def test_the_guard_goes_along():
    assert compose.files(BOTH)["boxwright-qwen-engine_guard.py"] == GUARD
    assert quadlet.files(BOTH)["boxwright-qwen-engine_guard.py"] == GUARD
    assert manifests()["ConfigMap"]["data"] == {"engine_guard.py": GUARD}


def test_each_runs_as_the_same_user():
    mine = release({**STATE, "user": "2000:0"})
    assert yaml.safe_load(compose.files([mine])["compose.yaml"])["services"]["qwen"]["user"] == "2000:0"
    text = quadlet.files([mine])["boxwright-qwen.container"]
    assert "\nUser=2000\nGroup=0\n" in text
    context = manifests({**STATE, "user": "2000:0"})["Deployment"]["spec"]["template"]["spec"][
        "securityContext"
    ]
    assert (context["runAsUser"], context["runAsGroup"]) == (2000, 0)
    assert "user" not in composed()


def test_what_closed_the_boxs_own_engine_does_not_close_this_one():
    assert BOTH[0].entrypoint[2].startswith("rm -f /cache/boxwright-closing; ")
    assert BOTH[1].entrypoint == BOTH[1].container.entrypoint


def test_each_sees_to_the_health():
    assert "/health" in composed()["healthcheck"]["test"][-1]
    assert words(dict(units()["Container"])["HealthCmd"])[:2] == ["python3", "-c"]
    pod = manifests()["Deployment"]["spec"]["template"]["spec"]["containers"][0]
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert pod[probe]["httpGet"] == {"path": "/health", "port": "http"}


@pytest.mark.parametrize("state", [STATE, PLAIN], ids=["whole", "plain"])
def test_kubernetes_own_schema_accepts_each_manifest(state):
    for one in manifests(state).values():
        kubernetes_validate.validate(one, KUBERNETES, strict=True)


def test_the_schema_refuses_what_is_wrong():
    deployment = manifests()["Deployment"]
    deployment["spec"]["template"]["spec"]["containers"][0]["readOnly"] = True
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(deployment, KUBERNETES, strict=True)


def values(*given):
    return yaml.safe_load(kubernetes.files(list(given))["values.yaml"])


def test_the_charts_schema_accepts_the_values():
    path = Path(__file__).parent / "recorded" / "production-stack-values.schema.json"
    schema = closed(json.loads(path.read_text()))
    jsonschema.validate(values(*BOTH), schema)
    wrong = values(*BOTH)
    wrong["servingEngineSpec"]["modelSpec"][0]["gpus"] = 2
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(wrong, schema)


#: Free forms of the chart's (security contexts), and a value that its templates read and its schema lacks.
OPEN = ("containerSecurityContext", "securityContext", "vllmConfig", "vllmApiKey", "resources")


def closed(schema, name=""):
    """The schema with no key but its own: the chart passes unknown ones over."""
    if isinstance(schema, dict):
        if "properties" in schema and name not in OPEN:
            schema["additionalProperties"] = False
        for key, one in list(schema.items()):
            if key == "properties":
                for inner, value in one.items():
                    closed(value, inner)
            else:
                closed(one, name)
    return schema


def test_the_charts_values_say_what_the_manifests_say():
    spec = values(*BOTH)["servingEngineSpec"]
    assert spec["vllmApiKey"] == {"secretName": "boxwright-qwen", "secretKey": "api-key"}
    model, plain = spec["modelSpec"]
    assert (model["repository"], model["tag"]) == ("vllm/vllm-openai", "v0.29.0@sha256:" + "a" * 64)
    assert (plain["repository"], plain["tag"]) == ("vllm/vllm-openai", "v0.29.0")
    assert (model["modelURL"], model["requestGPU"]) == (MODEL_DIRECTORY, 2)
    assert model["vllmConfig"]["enablePrefixCaching"] is False
    assert plain["vllmConfig"]["enablePrefixCaching"] is True
    # The chart itself writes host, port and what it calls the model.
    assert model["vllmConfig"]["extraArgs"] == [*BOX.command[3:5], *BOX.command[9:]]
    assert {one["name"] for one in model["extraVolumes"]} == {"model", "drafter", "cache", "tmp", "shm"}
    assert "api-key" not in json.dumps(model)


@pytest.mark.parametrize("words", [["--runner", "pooling"], ["--task", "embed"]])
def test_the_charts_values_cache_no_prefixes_of_what_writes_no_text(words):
    [model] = values(release({**PLAIN, "command": [*PLAIN["command"], *words]}))["servingEngineSpec"][
        "modelSpec"
    ]
    assert model["vllmConfig"]["enablePrefixCaching"] is False


def test_another_engine_is_none_of_the_charts():
    other = release({**PLAIN, "command": ["python3", "-m", "sglang.launch_server"]})
    assert set(kubernetes.files([other])) == {"boxwright-small.yaml"}


@pytest.mark.parametrize("format_", FORMATS)
def test_no_format_is_silent_about_which_release_it_is(format_):
    for planned in (False, True):
        for name, text in FORMATS[format_]([release(running=not planned)]).items():
            if not name.endswith((".py", ".network")):
                assert "release 0123456789ab" in text
                assert ("as planned" in text) is planned


def test_a_path_that_quadlet_cannot_mount_is_refused():
    with pytest.raises(ValueError, match="colon"):
        quadlet.files([release({**STATE, "model_directory": "/data/a:b"})])


@pytest.mark.parametrize(
    ("given", "whole"),
    [
        ("vllm/vllm-openai:v1", "docker.io/vllm/vllm-openai:v1"),
        ("debian", "docker.io/library/debian"),
        ("localhost:5000/x:1", "localhost:5000/x:1"),
        ("nvcr.io/nvidia/vllm:1@sha256:00", "nvcr.io/nvidia/vllm@sha256:00"),
    ],
)
def test_podman_gets_whole_names(given, whole):
    text = quadlet.files([release({**PLAIN, "reference": given})])["boxwright-small.container"]
    assert f"\nImage={whole}\n" in text
