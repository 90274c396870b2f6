"""Making releases: what goes into one, what makes it another, and what cannot be made."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from ansible.module_utils import cdi, engine_guard, engine_owner
from ansible.module_utils.command import Result
from ansible.module_utils.docker_api import DockerError, Image
from ansible.module_utils.engine_parse import Parsed
from ansible.module_utils.engine_store import Store

from boxwright.ansible.modules import engine_release

DIGEST = "sha256:" + "a" * 64
UUIDS = {0: "GPU-aaaa", 1: "GPU-bbbb"}
CDI = ["0", "1", "GPU-aaaa", "GPU-bbbb", "all"]


class Host:
    """A host's Docker, nvidia-smi and nvidia-ctk."""

    def __init__(self, monkeypatch):
        self.version = "26.1.5"
        self.images = {"vllm/vllm-openai:v1": Image("sha256:id", DIGEST, 1)}
        self.smi = Result(0, "".join(f"{index}, {uuid}\n" for index, uuid in UUIDS.items()), "")
        self.cdi = CDI
        self.error = None
        host = self

        class Docker:
            def image(self, image):
                if host.error:
                    raise DockerError(host.error)
                return host.images.get(image)

            def version(self):
                return host.version

        monkeypatch.setattr(engine_release, "Docker", Docker)
        monkeypatch.setattr(engine_release, "run", lambda argv, **kw: host.smi)
        monkeypatch.setattr(cdi, "devices", lambda: host.cdi)


@pytest.fixture
def host(monkeypatch):
    return Host(monkeypatch)


@pytest.fixture
def box(tmp_path):
    (tmp_path / "model").mkdir()
    return tmp_path


def deployment(box, **changes):
    return {
        "name": "qwen",
        "engine": "vllm",
        "image": "vllm/vllm-openai:v1",
        "weights": {"revision": "b" * 40, "directory": str(box / "model")},
        "quantize": None,
        "model_directory": str(box / "model"),
        "served_name": "qwen",
        "port": 8000,
        "bind": "127.0.0.1",
        "gpus": [0],
        "devices": [],
        "command": ["vllm", "serve", "/model"],
        "env": {"A": "1"},
        "shm_size": "2g",
        "gate": {"prompt": "x"},
        **changes,
    }


@pytest.fixture
def release(host, box, run_module):
    """engine_release(changes of the deployment, **arguments) -> result."""

    def call(changes=None, deployments=None, **arguments):
        return run_module(
            "engine_release",
            deployments=deployments if deployments is not None else [deployment(box, **(changes or {}))],
            root_dir=str(box / "root"),
            config_dir=str(box / "etc"),
            **arguments,
        )

    return call


def text(box, *names):
    return box.joinpath(*names).read_text()


def test_a_release_is_made_and_then_there(release, box):
    first = release()
    assert first["changed"] is True
    assert first["images_missing"] == []
    assert first["digests"] == {"qwen": {"image": "vllm/vllm-openai:v1", "digest": DIGEST}}
    directory = box / "root" / "releases" / "qwen" / first["releases"]["qwen"]
    assert (directory / "unit.service").exists()
    document = json.loads((directory / "release.json").read_text())
    assert document["reference"] == f"vllm/vllm-openai@{DIGEST}"
    assert document["plan"]["served_name"] == "qwen"
    assert (box / "root" / "cache" / "qwen").is_dir()
    second = release()
    assert (second["changed"], second["releases"]) == (False, first["releases"])


def test_a_draft_model_is_part_of_the_release(release, box):
    (box / "draft").mkdir()

    def with_draft(revision):
        return release({"drafter": {"kind": "hub", "directory": str(box / "draft"), "revision": revision}})

    plain = release()["releases"]["qwen"]
    first = with_draft("c" * 40)["releases"]["qwen"]
    unit = text(box, "root", "releases", "qwen", first, "unit.service")
    assert f"source={box}/draft,target=/drafter,readonly" in unit
    second = with_draft("d" * 40)["releases"]["qwen"]
    assert len({plain, first, second}) == 3
    assert release({"drafter": None})["releases"]["qwen"] == plain
    state = json.loads(text(box, "root", "releases", "qwen", plain, "release.json"))
    assert not {"drafter_directory", "drafter_revision"} & set(state)


def test_the_images_own_user_where_it_can_read_the_weights(release, box, monkeypatch):
    given = []
    monkeypatch.setattr(engine_owner.os, "chown", lambda *call: given.append(call))
    (box / "model").chmod(0o755)
    made = release({"user": "2000:0"})
    state = json.loads(text(box, "root", "releases", "qwen", made["releases"]["qwen"], "release.json"))
    cache = str(box / "root" / "cache" / "qwen" / "user-2000")
    assert (state["user"], state["cache_directory"], given) == ("2000:0", cache, [(cache, 2000, 0)])
    assert "--user 2000:0" in text(box, "root", "releases", "qwen", made["releases"]["qwen"], "unit.service")
    assert release()["releases"]["qwen"] != made["releases"]["qwen"]


def test_root_where_the_images_own_user_cannot_read_the_weights(release, box):
    (box / "model").chmod(0o700)
    plain = release()["releases"]["qwen"]
    closed = release({"user": "2000:2000"})
    assert closed["releases"]["qwen"] == plain
    assert f"may not read {box / 'model'}: chmod -R go+rX" in str(closed["warnings"])


def test_a_draft_model_that_is_not_there_makes_no_release(release, box):
    result = release({"drafter": {"kind": "hub", "directory": "/nowhere/draft", "revision": "c" * 40}})
    assert "/nowhere/draft is not there" in result["msg"]


def test_the_key_is_made_once_for_root_and_its_group_alone(release, box):
    release()
    key = box / "etc" / "engines" / "qwen" / "api-key"
    made = key.read_text()
    assert len(made.strip()) >= 40
    assert key.stat().st_mode & 0o777 == 0o640
    assert key.parent.stat().st_mode & 0o777 == 0o700
    release()
    assert key.read_text() == made
    key.chmod(0o644)
    assert release()["changed"] is True
    assert (key.read_text(), key.stat().st_mode & 0o777) == (made, 0o640)


def test_a_declared_key_is_written_and_never_shown(release, box, capsys):
    result = release(api_keys={"qwen": "sk-declared-key"})
    assert text(box, "etc", "engines", "qwen", "api-key") == "sk-declared-key\n"
    assert "sk-declared-key" not in json.dumps(result)
    assert release(api_keys={"qwen": "sk-declared-key"})["changed"] is False
    assert release(api_keys={"qwen": "sk-another-key"})["changed"] is True
    assert release()["changed"] is False, "one that is not declared any more is kept"
    assert text(box, "etc", "engines", "qwen", "api-key") == "sk-another-key\n"


@pytest.mark.parametrize("key", ["two words", "line\nbreak", "schlüssel", "\x00"])
def test_a_key_that_no_header_can_carry_is_refused_unshown(release, key):
    result = release(api_keys={"qwen": key})
    assert result["failed"] is True
    assert "HTTP header" in result["msg"]
    assert key not in result["msg"]


def test_neither_unit_nor_record_holds_the_key(release, box):
    identity = release()["releases"]["qwen"]
    key = text(box, "etc", "engines", "qwen", "api-key").strip()
    for name in ("unit.service", "release.json"):
        assert key not in text(box, "root", "releases", "qwen", identity, name)


CHANGES = [
    {"command": ["vllm", "serve", "/model", "--max-num-seqs", "4"]},
    {"env": {"A": "2"}},
    {"gpus": [1]},
    {"port": 8001},
    {"bind": "0.0.0.0"},
    {"shm_size": "8g"},
    {"outgoing": False},
    {"weights": {"revision": "c" * 40}},
    {"quantize": {"method": "autoawq", "bits": 4, "group_size": 128, "source": {}, "directory": "x"}},
]


@pytest.mark.parametrize("changes", CHANGES)
def test_what_changes_what_runs_is_another_release(release, changes):
    before = release()["releases"]["qwen"]
    after = release(changes)
    assert after["changed"] is True
    assert after["releases"]["qwen"] != before
    assert release()["releases"]["qwen"] == before, "and going back is the old one"


@pytest.mark.parametrize(
    "changes", [{"gate": {"prompt": "y"}}, {"speed": {"low": 1}}, {"devices": ["GPU-aaaa"]}]
)
def test_what_does_not_is_the_same(release, changes):
    before = release()["releases"]
    after = release(changes)
    assert (after["changed"], after["releases"]) == (False, before)


def test_another_name_for_the_same_image_is_the_same_release(release, host):
    before = release()["releases"]
    host.images["vllm/vllm-openai:latest"] = host.images["vllm/vllm-openai:v1"]
    after = release({"image": "vllm/vllm-openai:latest"})
    assert (after["changed"], after["releases"]) == (False, before)


def test_another_image_under_the_same_name_is_another_release(release, host):
    before = release()["releases"]
    host.images["vllm/vllm-openai:v1"] = Image("sha256:id2", "sha256:" + "c" * 64, 1)
    assert release()["releases"] != before


def test_the_locked_content_is_what_counts(release, host):
    locked = "sha256:" + "d" * 64
    assert release(digests={"qwen": locked})["images_missing"] == [
        {"name": "qwen", "image": "vllm/vllm-openai:v1", "digest": locked}
    ]
    host.images[f"vllm/vllm-openai@{locked}"] = Image("sha256:id3", locked, 1)
    assert release(digests={"qwen": locked})["digests"]["qwen"]["digest"] == locked


def test_an_image_that_is_missing_is_told_and_the_others_are_made(release, box):
    result = release(deployments=[deployment(box, name="a", image="x:v2"), deployment(box, name="b")])
    assert result["images_missing"] == [{"name": "a", "image": "x:v2", "digest": None}]
    assert list(result["releases"]) == ["b"]


@pytest.mark.parametrize(
    ("version", "known", "devices"),
    [
        ("26.1.5", CDI, ["GPU-aaaa", "GPU-bbbb"]),
        ("28.0.0", ["0", "1", "all"], ["0", "1"]),
        ("20.10.24+dfsg1", [], ["GPU-aaaa", "GPU-bbbb"]),
    ],
)
def test_cards_by_uuid_where_it_can_be(release, host, box, version, known, devices):
    host.version, host.cdi = version, known
    identity = release({"gpus": [0, 1]})["releases"]["qwen"]
    document = json.loads(text(box, "root", "releases", "qwen", identity, "release.json"))
    assert document["devices"] == devices
    assert document["access"] == ("gpus" if version.startswith("20") else "cdi")


def test_no_cards_no_access(release, host, box):
    host.smi = Result(127, "", "nvidia-smi: not found")
    identity = release({"gpus": []})["releases"]["qwen"]
    assert json.loads(text(box, "root", "releases", "qwen", identity, "release.json"))["access"] == "none"


FAILURES = [
    ({"gpus": [0, 7]}, {}, "card 7 is not here; nvidia-smi shows 0, 1"),
    ({"devices": ["GPU-zzzz"]}, {}, "GPU-zzzz"),
    ({}, {"cdi": ["all"]}, "container_runtime"),
    ({}, {"smi": Result(18, "Failed to initialize NVML: Driver/library version mismatch", "")}, "mismatch"),
    ({}, {"error": "Docker does not answer on /run/docker.sock"}, "Docker does not answer"),
    ({"model_directory": "/nowhere"}, {}, "/nowhere is not there"),
    ({"env": {"HF_TOKEN": "hf_secret"}}, {}, "HF_TOKEN looks like a secret"),
    ({"command": ["vllm", "a\nb"]}, {}, "line break"),
]


@pytest.mark.parametrize(("changes", "state", "said"), FAILURES)
def test_what_cannot_be_made_says_why(release, host, changes, state, said):
    for name, value in state.items():
        setattr(host, name, value)
    result = release(changes)
    assert result["failed"] is True
    assert result["msg"].startswith("qwen: no release can be made: ")
    assert said in result["msg"]
    assert "hf_secret" not in result["msg"]


def test_check_mode_writes_nothing_and_shows_the_unit(release, box):
    result = release(check=True, diff=True)
    assert result["changed"] is True
    assert "docker run" in result["diff"][0]["after"]
    assert [entry.name for entry in box.iterdir()] == ["model"]


@pytest.mark.parametrize(
    "state", [{"error": "Docker does not answer"}, {"smi": Result(127, "", "not found")}]
)
def test_check_mode_on_a_bare_host_is_a_change_and_no_failure(release, host, state):
    for name, value in state.items():
        setattr(host, name, value)
    result = release(check=True)
    assert (result.get("failed", False), result["changed"]) == (False, True)


@pytest.fixture
def parser(monkeypatch):
    """The image's parser; what it says, and what it was asked."""
    asked = []
    found = SimpleNamespace(asked=asked, says=Parsed(None, None))

    def parsed(state, program):
        asked.append((state["command"], program))
        return found.says

    monkeypatch.setattr(engine_release, "parsed", parsed)
    return found


def test_the_options_of_what_is_to_replace_something_are_read_by_its_image(release, box, parser):
    runtime = {"parse": "program"}
    first = release({"runtime": runtime})["releases"]["qwen"]
    assert parser.asked == [], "what replaces nothing is told by its start"
    Store(str(box / "root"), "qwen").promote(first)
    release({"runtime": runtime})
    assert parser.asked == [], "what is made was read"
    command = ["vllm", "serve", "/model", "--swap-space", "4"]
    assert "failed" not in release({"runtime": runtime, "command": command})
    assert parser.asked == [(command, "program")]


def test_options_that_the_image_refuses_make_no_release(release, box, parser):
    first = release({"runtime": {"parse": "program"}})["releases"]["qwen"]
    Store(str(box / "root"), "qwen").promote(first)
    parser.says = Parsed("unrecognized arguments: --swap-space", None)
    changes = {"runtime": {"parse": "program"}, "command": ["vllm", "--swap-space", "4"]}
    result = release(changes)
    assert "does not take its options: unrecognized arguments: --swap-space" in result["msg"]
    assert Store(str(box / "root"), "qwen").releases() == [first]
    parser.says = Parsed(None, "no python3")
    result = release(changes)
    assert "could not read its options beforehand: no python3" in str(result["warnings"])
    assert result["releases"]["qwen"] != first


def test_the_guard_lies_in_the_release_and_is_part_of_it(release, box, monkeypatch):
    plain = release()["releases"]["qwen"]
    guarded = {"runtime": {"guard": "--middleware"}}
    first = release(guarded)["releases"]["qwen"]
    assert first != plain
    text_of_guard = text(box, "root", "releases", "qwen", first, "engine_guard.py")
    assert text_of_guard == Path(engine_guard.__file__).read_text()
    opened = release({**guarded, "open_paths": ["/metrics"]})["releases"]["qwen"]
    assert opened not in (first, plain)
    (box / "root" / "releases" / "qwen" / first / "engine_guard.py").write_text("# tampered with\n")
    assert release(guarded)["changed"] is True
    assert text(box, "root", "releases", "qwen", first, "engine_guard.py") == text_of_guard
