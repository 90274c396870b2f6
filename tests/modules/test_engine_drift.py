"""What runs is held against what the current release says, from Docker's own answer and the unit's file."""

import copy

import pytest
from ansible.module_utils.engine_container import container_of
from ansible.module_utils.engine_drift import drift, of_container
from ansible.module_utils.engine_store import Release

ID = "0123456789ab"
STATE = {
    "name": "qwen",
    "engine": "vllm",
    "reference": "vllm/vllm-openai@sha256:" + "a" * 64,
    "model_directory": "/m/org--name/" + "b" * 40,
    "drafter_directory": "/m/org--draft/" + "c" * 40,
    "cache_directory": "/c",
    "key_file": "/k",
    "command": ["serve", "/model", "--max-model-len", "8192", "--enforce-eager"],
    "env": {"VLLM_USE_V1": "1"},
    "access": "cdi",
    "devices": ["GPU-1", "GPU-0"],
    "bind": "127.0.0.1",
    "port": 8001,
    "shm_size": "1g",
    "stop_timeout_s": 30,
}
RELEASE = Release(ID, STATE, {}, "the unit\n")


@pytest.fixture
def shown():
    """`docker inspect` of a container that was started as the release says."""
    box = container_of(STATE, ID)
    return {
        "Image": "sha256:" + "d" * 64,
        "State": {"Running": True},
        "Config": {
            "Image": box.image,
            "Entrypoint": box.entrypoint[:1],
            "Cmd": [*box.entrypoint[1:], *box.command],
            "Env": ["PATH=/usr/bin", *(f"{name}={value}" for name, value in box.env.items())],
            "Labels": {"boxwright.release": ID},
        },
        "HostConfig": {
            "Mounts": [{"Type": "bind", "Source": one.source, "Target": one.target} for one in box.mounts],
            "PortBindings": {"8000/tcp": [{"HostIp": box.bind, "HostPort": str(box.port)}]},
            "DeviceRequests": [
                {"Driver": "cdi", "DeviceIDs": ["nvidia.com/gpu=" + name]} for name in box.devices
            ],
        },
    }


@pytest.fixture
def seen(tmp_path):
    """Compare; unit: the text of the unit's file, None for none; trial: of another release's."""

    def call(container, unit=RELEASE.unit, trial=None, image_id=lambda _: None):
        for name, text in (("etc", unit), ("run", trial)):
            (tmp_path / name).mkdir(exist_ok=True)
            if text is not None:
                (tmp_path / name / "boxwright-qwen.service").write_text(text)
        return drift(RELEASE, container, image_id, str(tmp_path / "etc"), str(tmp_path / "run"))

    return call


def put(container, path, value):
    """A copy in which one part is another."""
    changed = part = copy.deepcopy(container)
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = value
    return changed


def test_what_runs_as_its_release_says_has_not_drifted(seen, shown):
    assert seen(shown) == ([], False)


@pytest.mark.parametrize("lost", ["Mounts", "PortBindings", "DeviceRequests"])
def test_what_docker_does_not_tell_is_no_drift(seen, shown, lost):
    assert seen(put(shown, ("HostConfig", lost), None)).words == []


@pytest.mark.parametrize(
    ("path", "value", "told"),
    [
        (("Config", "Image"), "vllm/vllm-openai:latest", "of another image: vllm/vllm-openai:latest"),
        (("Config", "Labels"), {"boxwright.release": "ffffffffffff"}, "is of release ffffffffffff"),
        (("Config", "Labels"), None, "is of no release"),
        (("Config", "Cmd"), ["serve"], "was started with another command"),
        (("Config", "Env"), ["VLLM_USE_V1=0"], "environment differs: VLLM_USE_V1"),
        (
            ("HostConfig", "Mounts"),
            [{"Source": "/elsewhere", "Target": "/model"}],
            "its container has another model",
        ),
        (("HostConfig", "Mounts"), [{"Source": "/e", "Target": "/drafter"}], "another draft model"),
        (("HostConfig", "PortBindings"), {"8000/tcp": [{"HostPort": "9"}]}, "another port"),
        (
            ("HostConfig", "DeviceRequests"),
            [{"DeviceIDs": ["nvidia.com/gpu=GPU-0"]}],
            "another set of cards",
        ),
    ],
)
def test_each_part_that_is_another(seen, shown, path, value, told):
    [words] = seen(put(shown, path, value)).words
    assert told in words


@pytest.mark.parametrize(
    ("now", "told"),
    [
        (
            ["serve", "/model", "--max-model-len", "4096", "--enforce-eager"],
            "--max-model-len 4096 instead of --max-model-len 8192",
        ),
        (["serve", "/model", "--max-model-len", "8192"], "nothing instead of --enforce-eager"),
        (
            ["serve", "/model", "--max-model-len", "8192", "--enforce-eager", "--port", "9"],
            "--port 9 instead of nothing",
        ),
        (["x" * 90], f"{'x' * 59}… instead of serve /model --max-model-len 8192 …"),
    ],
)
def test_arguments_are_told_where_they_differ(seen, shown, now, told):
    changed = put(shown, ("Config", "Cmd"), [*shown["Config"]["Cmd"][:3], *now])
    assert seen(changed).words == ["its container's arguments differ: " + told]


def test_an_image_by_another_name_is_the_same_where_its_contents_are(seen, shown):
    changed = put(shown, ("Config", "Image"), "vllm/vllm-openai:v0.32.0")
    asked = []
    assert seen(changed, image_id=lambda name: asked.append(name) or shown["Image"]).words == []
    assert asked == [STATE["reference"]]
    assert seen(changed, image_id=lambda _: "sha256:other").words


def test_a_unit_that_was_edited_or_is_gone(seen, shown, tmp_path):
    assert seen(shown, unit=None).words == [f"{tmp_path}/etc/boxwright-qwen.service is gone"]
    assert seen(None, unit="[Service]\n").words == [f"{tmp_path}/etc/boxwright-qwen.service was edited"]


def test_another_release_on_trial_is_no_drift(seen, shown):
    other = put(shown, ("Config", "Labels"), {"boxwright.release": "ffffffffffff"})
    assert seen(other, trial="another unit\n") == ([], True)


def test_a_container_that_does_not_run_says_nothing(seen, shown):
    assert seen(put(shown, ("State",), {"Running": False}) | {"Config": {}}).words == []


def test_whatever_is_declared_is_no_drift_of_what_was_started_by_it(shown):
    """Every run would start such an engine anew."""
    guard = {"option": "--middleware", "directory": "/r", "open": ["/metrics"]}
    env = {"BOXWRIGHT_OPEN_PATHS": "/version", "HOME": "/elsewhere", "A": '%H $HOME `id` ; \\ "'}
    state = {**STATE, "guard": guard, "env": env}
    box = container_of(state, ID)
    started = put(shown, ("Config", "Env"), [f"{name}={value}" for name, value in box.env.items()])
    started = put(started, ("Config", "Cmd"), [*box.entrypoint[1:], *box.command])
    assert of_container(RELEASE._replace(state=state), started, lambda _: None) == []
