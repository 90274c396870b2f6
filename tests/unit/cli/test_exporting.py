"""The verb export: which releases it takes, and where it writes them."""

import importlib.util
import json
from pathlib import Path

import pytest
import yaml

from boxwright.cli import exporting
from boxwright.cli.ansible_run import HostReport, RunReport
from boxwright.errors import UserError

spec = importlib.util.spec_from_file_location(
    "releases", Path(__file__).parents[1] / "export" / "releases.py"
)
releases = importlib.util.module_from_spec(spec)
spec.loader.exec_module(releases)

KEPT = [
    {"deployment": "qwen", "current": True, "record": json.dumps({**releases.STATE, "id": "0123456789ab"})},
    {"deployment": "qwen", "current": False, "record": json.dumps({**releases.PLAIN, "id": "old"})},
    {"deployment": "small", "current": True, "record": json.dumps({**releases.PLAIN, "id": "ba9876543210"})},
]
PLANNED = {
    "name": "qwen",
    "engine": "vllm",
    "image": "vllm/vllm-openai:v0.29.0",
    "model_directory": "/var/lib/boxwright/models/x",
    "command": ["vllm", "serve", "/model"],
    "env": {},
    "gpus": [0],
    "devices": ["GPU-1"],
    "bind": "127.0.0.1",
    "port": 8000,
    "outgoing": False,
    "runtime": {"guard": "--middleware"},
    "open_paths": [],
}


@pytest.fixture
def verb(monkeypatch, tmp_path, capsys):
    """Run the verb on a box that keeps these releases, or is off, or is planned so."""
    inventory = tmp_path / "inventory"
    inventory.mkdir()
    (inventory / "hosts.yml").write_text("all: {hosts: {box1: {}, box2: {}}}\n")

    def call(*hosts, kept=KEPT, gates=(), off=(), **options):
        played = []

        def play(playbook, names, *_, **__):
            played.append(playbook)
            plan = {"deployments": [PLANNED], "gates": list(gates)}
            results = {
                "host_facts": [{"raw": {"releases": kept}}],
                "plan": [{"ansible_facts": {"box_plan": plan}}],
            }
            failure = {"kind": "unreachable", "message": "No route to host", "role": None}
            seen = {
                name: HostReport(name, failure=failure) if name in off else HostReport(name, results=results)
                for name in names
            }
            return RunReport(0, 1.0, seen)

        monkeypatch.setattr(exporting, "play", play)
        exporting.export(list(hosts or ["box1"]), [str(inventory)], **options)
        return capsys.readouterr(), played

    call.said = capsys.readouterr
    return call


def test_what_serves_is_printed_as_one_file_for_a_pipe(verb):
    said, played = verb(format_="compose", deployment="small")
    assert played == ["facts.yml"]
    whole = yaml.safe_load(said.out)
    assert list(whole["services"]) == ["small"]
    assert whole["services"]["small"]["labels"]["boxwright.release"] == "ba9876543210"
    assert "its image is not pinned" in said.err


def test_files_are_written_and_none_is_replaced(verb, tmp_path):
    place = tmp_path / "new" / "units"
    said, _ = verb(format_="quadlet", output=str(place))
    assert {path.name for path in place.iterdir()} == {
        "boxwright-qwen.container",
        "boxwright-qwen-engine_guard.py",
        "boxwright-small.container",
        "boxwright.network",
    }
    assert said.out.count("written: ") == 4
    with pytest.raises(UserError, match="already") as raised:
        verb(format_="quadlet", output=str(place))
    assert raised.value.status == 2


def test_json_has_the_texts(verb):
    said, _ = verb(format_="k8s", as_json=True)
    found = json.loads(said.out)["box1"]
    assert set(found["files"]) == {"boxwright-qwen.yaml", "boxwright-small.yaml", "values.yaml"}
    assert (found["written"], found["failure"]) == ([], None)


def test_several_files_are_told_apart(verb):
    said, _ = verb(format_="k8s")
    assert "# ---- boxwright-qwen.yaml\n" in said.out
    assert "# ---- values.yaml\n" in said.out


def test_what_is_planned(verb):
    said, played = verb(format_="compose", planned=True, as_json=True)
    assert played == ["plan.yml"]
    files = json.loads(said.out)["box1"]["files"]
    service = yaml.safe_load(files["compose.yaml"])["services"]["qwen"]
    assert service["image"] == "vllm/vllm-openai:v0.29.0"
    assert "as planned, not yet made there" in files["compose.yaml"]
    assert "class Guard" in files["boxwright-qwen-engine_guard.py"]
    assert "no lock knows its digest yet" in " ".join(said.err.split())


def test_what_cannot_be_written_says_why(verb):
    for match, status, options in (
        ("which format", 2, {"format_": ""}),
        ('none named "helm"', 2, {"format_": "helm"}),
        ('no deployment "other" serves', 2, {"format_": "compose", "deployment": "other"}),
        ("no deployment serves", 2, {"format_": "compose", "kept": []}),
        ("cannot be read", 1, {"format_": "compose", "kept": [{**KEPT[0], "record": "{"}]}),
        (
            "the plan refuses it: does-not-fit",
            1,
            {"format_": "k8s", "planned": True, "gates": [{"id": "does-not-fit"}]},
        ),
        ("box1", 1, {"format_": "compose", "off": ("box1",)}),
    ):
        with pytest.raises(UserError, match=match) as raised:
            verb(**options)
        assert raised.value.status == status, match
    with pytest.raises(UserError, match="several boxes are told apart"):
        verb("box1", "box2", format_="compose")


def test_a_box_that_is_off_holds_up_no_other(verb, tmp_path):
    place = tmp_path / "out"
    with pytest.raises(SystemExit) as ended:
        verb("box1", "box2", format_="compose", off=("box1",), output=str(place))
    assert ended.value.code == 1
    said = verb.said()
    assert "box1: nothing was written: the box does not answer" in " ".join(said.err.split())
    assert said.out.count("written: ") == len(list((place / "box2").iterdir())) >= 1
    assert not (place / "box1").exists()
    with pytest.raises(SystemExit):
        verb("box1", "box2", format_="compose", off=("box1",), as_json=True)
    found = json.loads(verb.said().out)
    assert "does not answer" in found["box1"]["failure"]
    assert (found["box1"]["files"], found["box2"]["failure"]) == (None, None)
    assert "compose.yaml" in found["box2"]["files"]


@pytest.mark.parametrize(
    "planted",
    [
        {"name": "../../etc/cron.d/x"},
        {"name": "x\nservices: {}"},
        {"id": "a\n- b"},
        {"command": "vllm serve"},
        {"command": ["vllm", 1]},
        {"env": ["A"]},
        {"env": {"A": 1}},
        {"port": "8000"},
        {"port": True},
        {"reference": "image\x1b[2J"},
        {"bind": "127.0.0.1\n"},
        {"devices": [0]},
        {"user": "0:0; x"},
        {"model_directory": None},
        {"runtime": {"key": "x"}},
    ],
)
def test_a_box_that_lies_writes_no_file_of_its_own_making(verb, tmp_path, planted):
    record = json.dumps({**releases.STATE, "id": "0123456789ab", **planted})
    with pytest.raises(UserError, match="cannot be read"):
        verb(
            format_="quadlet",
            output=str(tmp_path / "out"),
            kept=[{"deployment": "qwen", "current": True, "record": record}],
        )
    assert not (tmp_path / "out").exists()
