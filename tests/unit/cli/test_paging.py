"""The verb page: what it takes out, and where it writes."""

import importlib.util
import json
from pathlib import Path

import pytest

from boxwright.cli import paging
from boxwright.cli.ansible_run import HostReport, RunReport
from boxwright.errors import UserError

UNIT = Path(__file__).parents[1]


def loaded(name, path):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


glances = loaded("glances", UNIT / "doctor" / "test_glance.py")
KEPT = json.loads((UNIT / "bench" / "recorded" / "kept.json").read_text())
SECRET = "s3cret-planted-0123456789"
PLANTED = (SECRET, "192.0.2.44", "mallory", "bastion.example", "office-pc", "carol")
HOST = {
    "ansible_host": "192.0.2.44",
    "ansible_user": "mallory",
    "ansible_ssh_common_args": "-J carol@bastion.example",
    "box_hub": {"token": SECRET},
}


OFF = {"kind": "unreachable", "message": "ssh: connect to host box1 port 22: No route to host", "role": None}


def results():
    raw = {
        "deployments": [],
        "kernel": {"text": ""},
        "docker": {"text": f'level=error msg="pull from 192.0.2.44 as mallory failed, token {SECRET}"\n'},
    }
    advice = {"id": "x", "message": f"mallory@192.0.2.44 through bastion.example with {SECRET}", "fix": []}
    plan = {"gates": [], "deployments": [], "advice": [advice]}
    start = {"event": "begun", "run": "a", "verb": "provision", "user": "carol", "controller": "office-pc",
             "at": 1_764_486_000, "process": 1}  # fmt: skip
    failure = {"role": "engine", "task": "t", "message": f"no way to 192.0.2.44, {SECRET}"}
    end = {"event": "ended", "run": "a", "at": 1_764_486_009, "outcome": "failed", "failure": failure}
    return {
        "box_status": [{"raw": glances.RAW}],
        "diagnosis": [{"raw": raw}],
        "plan": [{"ansible_facts": {"box_plan": plan}}],
        "run_history": [{"lines": [json.dumps(start), json.dumps(end)]}],
        "bench_runs": [{"results": [{"found": {"last": [KEPT]}}, {"msg": "no release of it"}]}],
    }


@pytest.fixture
def verb(monkeypatch, tmp_path, capsys):
    """Run the verb on a box of which this was seen."""
    (tmp_path / "hosts.yml").write_text(json.dumps({"all": {"hosts": {"box1": HOST, "box2": {}}}}))

    def call(*hosts, seen=None, failure=None, off=(), **options):
        made = {
            name: HostReport(name, results=results() if seen is None else seen, failure=failure)
            if name not in off
            else HostReport(name, failure=OFF)
            for name in hosts or ["box1"]
        }
        monkeypatch.setattr(paging, "play", lambda *_, **__: RunReport(0, 1.0, made))
        paging.page(list(hosts or ["box1"]), [str(tmp_path / "hosts.yml")], **options)
        return capsys.readouterr().out

    call.said = capsys.readouterr
    return call


def test_no_secret_address_or_user_is_on_it(verb, tmp_path):
    path = tmp_path / "box.html"
    assert f"written: {path}" in verb(output=str(path))
    text = path.read_text()
    for planted in PLANTED:
        assert planted not in text, planted
    for part in ("box1", "user-", "host-", "RTX 5090", KEPT["deployment"], "provision"):
        assert part in text, part


def test_a_page_is_replaced_and_nothing_else(verb, tmp_path):
    path = tmp_path / "box.html"
    assert json.loads(verb(output=str(path), as_json=True))["box1"]["file"] == str(path)
    verb(output=str(path))
    other = tmp_path / "thesis.html"
    other.write_text("<html>mine</html>")
    with pytest.raises(UserError, match="no page of a box") as raised:
        verb(output=str(other))
    assert raised.value.status == 2
    assert other.read_text() == "<html>mine</html>"


def test_a_box_of_which_little_is_known_has_a_page(verb, tmp_path):
    path = tmp_path / "box.html"
    verb(output=str(path), seen={"box_status": [{"raw": {}}]})
    assert "needs attention" in path.read_text()


def test_what_cannot_be_done_says_why(verb, tmp_path):
    for match, status, hosts, options in (
        ("is a directory", 2, [], {"output": str(tmp_path)}),
        ("there is no directory", 2, [], {"output": str(tmp_path / "none" / "x.html")}),
        ("reach|answer|SSH", 1, [], {"output": str(tmp_path / "x.html"), "seen": {}, "failure": OFF}),
    ):
        with pytest.raises(UserError, match=match) as raised:
            verb(*hosts, **options)
        assert raised.value.status == status
    assert not (tmp_path / "x.html").exists()


def test_a_box_that_is_off_holds_up_no_other(verb, tmp_path):
    with pytest.raises(SystemExit) as ended:
        verb("box1", "box2", off=("box1",), output=str(tmp_path / "pages"))
    assert ended.value.code == 1
    said = verb.said()
    assert "box1: could not be read: the box does not answer" in " ".join(said.err.split())
    assert said.out == f"written: {tmp_path / 'pages' / 'box2.html'}\n"
    assert [one.name for one in (tmp_path / "pages").iterdir()] == ["box2.html"]
    with pytest.raises(SystemExit):
        verb("box1", "box2", off=("box1",), output=str(tmp_path / "pages"), as_json=True)
    found = json.loads(verb.said().out)
    assert found["box1"]["file"] is None
    assert "does not answer" in found["box1"]["failure"]
    assert found["box2"]["failure"] is None
    (tmp_path / "pages" / "box1.html").write_text("mine")
    with pytest.raises(UserError, match="no page of a box"):
        verb("box1", "box2", output=str(tmp_path / "pages"))
