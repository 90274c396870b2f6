"""`invoke key`: of one box as it is, of several each with its name, and changed on each."""

import base64
import json
from pathlib import Path

import pytest

from boxwright.cli import gateways, keys
from boxwright.cli.ansible_run import HostReport, RunReport
from boxwright.errors import UserError

OFF = {"kind": "unreachable", "message": "ssh: connect to host box2 port 22: No route to host", "role": None}
#: Of a run's report: that the file is not there, and what is to be typed after any failure.
NO_KEY = {"kind": "failed", "message": "file not found: /etc/boxwright/engines/qwen/api-key", "role": None,
          "next": ["./invoke doctor --host box1"]}  # fmt: skip
DEPLOYMENT = "box_deployments: [{name: qwen, model: qwen3-8b-awq, image: 'vllm/vllm-openai:v0.29.0'}]\n"


@pytest.fixture
def verb(monkeypatch, tmp_path, capsys):
    """Run keys.show or keys.rotate on three boxes, of which box3 declares nothing."""
    (tmp_path / "host_vars").mkdir()
    (tmp_path / "hosts.yml").write_text("all: {hosts: {box1: {}, box2: {}, box3: {}}}\n")
    for name in ("box1", "box2"):
        (tmp_path / "host_vars" / f"{name}.yml").write_text(DEPLOYMENT)

    def call(function, *hosts, off=(), failure=OFF, **options):
        call.asked = []

        def play(playbook, names, *_, variables, **__):
            call.asked.append((playbook, list(names), variables))
            seen = {}
            for name in names:
                content = base64.b64encode(f"key-of-{name}\n".encode()).decode()
                results = {"slurp": [{"content": content}]}
                seen[name] = (
                    HostReport(name, failure=failure) if name in off else HostReport(name, results=results)
                )
            return RunReport(0, 1.0, seen)

        monkeypatch.setattr(keys, "play", play)
        function(list(hosts), [str(tmp_path)], **options)
        return capsys.readouterr().out

    call.place, call.said = tmp_path, capsys.readouterr
    return call


def test_of_one_box_alone_for_a_pipe(verb):
    assert verb(keys.show, "box1") == "key-of-box1\n"
    assert verb(keys.show, "box1", header=True) == "Authorization: Bearer key-of-box1\n"
    assert json.loads(verb(keys.show, "box1", as_json=True)) == {
        "box1": {"key": "key-of-box1", "failure": None}
    }


def test_of_every_box_that_serves_in_one_trip(verb):
    assert verb(keys.show, every=True) == "box1  key-of-box1\nbox2  key-of-box2\n"
    [(playbook, names, variables)] = verb.asked
    assert (playbook, names) == ("key.yml", ["box1", "box2"])
    assert variables["key_paths"]["box2"] == "/etc/boxwright/engines/qwen/api-key"


def test_a_box_that_is_off_holds_up_no_other(verb):
    with pytest.raises(SystemExit) as ended:
        verb(keys.show, every=True, off=("box1",))
    assert ended.value.code == 1
    said = verb.said()
    assert said.out == "box2  key-of-box2\n"
    assert "box1: could not be read: the box does not answer" in " ".join(said.err.split())
    with pytest.raises(SystemExit):
        verb(keys.show, every=True, off=("box1",), as_json=True)
    found = json.loads(verb.said().out)
    assert (found["box1"]["key"], found["box2"]) == (None, {"key": "key-of-box2", "failure": None})
    with pytest.raises(UserError, match="does not answer"):
        verb(keys.show, "box1", off=("box1",))


def test_a_box_that_has_no_key_yet_is_to_be_provisioned(verb):
    with pytest.raises(UserError, match="the box has made no key") as told:
        verb(keys.show, "box1", off=("box1",), failure=NO_KEY)
    assert told.value.ways_out == ("provision it first: ./invoke provision --host box1",)
    with pytest.raises(SystemExit):
        verb(keys.show, every=True, off=("box1",), failure=NO_KEY)
    said = " ".join(verb.said().err.split())
    path = "/etc/boxwright/engines/qwen/api-key"
    assert f"box1: could not be read: the box has made no key: it was not provisioned: {path} is not" in said


def test_each_key_is_changed_though_one_box_is_off(verb):
    with pytest.raises(SystemExit) as ended:
        verb(keys.rotate, every=True, off=("box1",))
    assert ended.value.code == 1
    assert [(playbook, names) for playbook, names, _ in verb.asked] == [
        ("rotate_key.yml", ["box1"]),
        ("rotate_key.yml", ["box2"]),
    ]
    assert "box1: its key could not be changed: the box does not answer" in " ".join(verb.said().err.split())


@pytest.mark.parametrize("ill", [(), ("box3",)])
def test_a_gateway_knows_the_new_key_before_the_box_is_back(verb, monkeypatch, ill):
    (verb.place / "host_vars" / "box3.yml").write_text("gateway_boxes: [box1]\n")
    states = []

    def at_gateways(playbook, names, *_, variables, **__):
        states.append((variables["gateway_turn_state"], [line[0] for line in verb.asked]))
        return RunReport(0, 1.0, {name: HostReport(name) for name in names})

    monkeypatch.setattr(gateways, "play", at_gateways)
    asked = ["rotate_key.yml", "gateway_keys.yml"]
    if ill:
        with pytest.raises(UserError, match="not know the new one: box3: no configuration"):
            verb(keys.rotate, "box1", off=ill, failure={"kind": "failed", "message": "no configuration"})
        # It would be asked by its old key.
        assert states == [("drained", [])]
    else:
        verb(keys.rotate, "box1")
        assert states == [("drained", []), ("ready", asked)]
    assert [line[:2] for line in verb.asked] == list(zip(asked, [["box1"], ["box3"]], strict=True))


def test_a_declared_key_stops_it_before_any_is_changed(verb):
    declared = DEPLOYMENT.replace("}]", ", api_key: s3cret-planted-0123456789}]")
    Path(verb.place / "host_vars" / "box2.yml").write_text(declared)
    with pytest.raises(UserError, match="declared in the inventory"):
        verb(keys.rotate, every=True)
    assert verb.asked == []


def test_no_box_that_serves_has_no_key(verb):
    for name in ("box1", "box2"):
        (verb.place / "host_vars" / f"{name}.yml").unlink()
    with pytest.raises(UserError, match="no host declares a deployment") as raised:
        verb(keys.show, every=True)
    assert raised.value.status == 2
    with pytest.raises(UserError, match="nothing is deployed there"):
        verb(keys.show, "box3")
