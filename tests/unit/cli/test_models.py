"""`invoke models`: the table, what it says of wrong files, and what it asks before anything goes."""

import io
import json

import pytest

from boxwright.cli import models
from boxwright.cli.ansible_run import HostReport, RunReport
from boxwright.errors import UserError

BASE = {
    "directory": "/var/lib/boxwright/models/RedHatAI--Qwen3.8-27B-INT4-with-a-very-long-name-indeed/"
    + "1" * 40,
    "repo": "RedHatAI/Qwen3.8-27B-INT4-with-a-very-long-name-indeed",
    "revision": "1" * 40,
    "made": "",
    "size": 19_400_000_000,
    "files": 14,
    "by_sha256": 13,
    "state": "whole",
    "flaws": [],
    "used": ["qwen/20261130-abcdef (live)", "qwen/20261129-abcdef"],
    "declared": True,
}
OLD = {**BASE, "directory": "/var/lib/boxwright/models/acme--old/" + "2" * 40, "repo": "acme/old",
       "revision": "2" * 40, "used": [], "declared": False, "size": 5_000_000_000}  # fmt: skip
FLAWED = {**BASE, "state": "flawed", "flaws": [{"path": "model-00002.safetensors", "how": "truncated"}]}


OFF = {"kind": "unreachable", "message": "ssh: connect to host box2 port 22: No route to host", "role": None}


class Box:
    """Answers as the playbook would; removes what it is told to."""

    def __init__(self, *revisions):
        self.revisions, self.calls, self.off = list(revisions), [], ()

    def __call__(self, playbook, names, paths, *, quiet, variables):
        assert playbook == "models.yml"
        self.calls.append(variables)
        gone = variables["models_prune"].get("box1", [])
        freed = [one["directory"] for one in self.revisions if one["directory"] in gone]
        self.revisions = [one for one in self.revisions if one["directory"] not in freed]
        result = {"revisions": self.revisions, "freed": freed, "kept": [], "room": 10**12}
        seen = {
            name: HostReport(name, failure=OFF)
            if name in self.off
            else HostReport(name, results={"model_listing": [result]})
            for name in names
        }
        return RunReport(0, 1.0, seen)


@pytest.fixture
def box(monkeypatch, tmp_path):
    """A box of an inventory of its own: box(*revisions) -> the words that name it."""
    (tmp_path / "hosts.yml").write_text("all:\n  hosts:\n    box1: {ansible_host: 192.0.2.7}\n    box2: {}\n")

    def build(*revisions):
        made = Box(*revisions)
        monkeypatch.setattr(models, "play", made)
        return made, (["box1"], [str(tmp_path)])

    return build


def test_a_page(box, capsys):
    _, words = box(BASE, OLD)
    models.show(*words)
    page = capsys.readouterr().out
    assert max(map(len, page.splitlines())) <= 100
    flowing = " ".join(page.split())
    for part in ("19.4 GB", "13/14 sha256", "nothing", "2 in the store, 24.4 GB; 1.0 TB free"):
        assert part in flowing, page
    assert "nothing uses 1 of them (5.0 GB):  ./invoke models --host box1 --prune" in page


@pytest.mark.parametrize(("made", "words"), [("", "fetched in part"), ("autoawq-w4g64", "not finished")])
def test_what_is_half_there(made, words):
    assert models.verified({**OLD, "state": "unfinished", "made": made}, deep=False) == words


def test_wrong_files_are_named_with_the_way_out(box, capsys):
    _, words = box(FLAWED)
    with pytest.raises(SystemExit) as ended:
        models.show(*words, deep=True)
    assert ended.value.code == 1
    page = " ".join(capsys.readouterr().out.split())
    assert "model-00002.safetensors is wrong: truncated" in page
    assert "./invoke provision --host box1" in page


def test_json(box, capsys):
    _, words = box(BASE)
    models.show(*words, as_json=True)
    assert json.loads(capsys.readouterr().out)["box1"]["revisions"][0]["repo"] == BASE["repo"]


def test_prune_frees_what_nothing_uses(box, capsys):
    made, words = box(BASE, OLD)
    models.show(*words, prune=True, yes=True)
    assert made.calls[1]["models_prune"] == {"box1": [OLD["directory"]]}
    assert f"freed {OLD['directory']}" in capsys.readouterr().out


def test_prune_has_nothing_to_do(box):
    made, words = box(BASE)
    models.show(*words, prune=True, yes=True)
    assert len(made.calls) == 1


@pytest.mark.parametrize(("answer", "calls"), [("y\n", 2), ("\n", 1), ("n\n", 1)])
def test_prune_asks_on_a_terminal(box, monkeypatch, answer, calls):
    made, words = box(BASE, OLD)
    monkeypatch.setattr(models, "_asks", lambda: True)
    monkeypatch.setattr("sys.stdin", io.StringIO(answer))
    models.show(*words, prune=True)
    assert len(made.calls) == calls


def test_prune_without_a_terminal_wants_a_yes(box, monkeypatch):
    made, words = box(BASE, OLD)
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    with pytest.raises(UserError) as caught:
        models.show(*words, prune=True)
    assert caught.value.status == 2
    assert made.calls == []


def test_a_box_that_is_off_holds_up_no_other(box, capsys):
    made, (_, inventory) = box(BASE, OLD)
    made.off = ("box2",)
    with pytest.raises(SystemExit) as ended:
        models.show(["box2", "box1"], inventory, prune=True, yes=True)
    assert ended.value.code == 1
    said = capsys.readouterr()
    assert f"freed {OLD['directory']}" in said.out
    assert "box2: could not be read: the box does not answer" in " ".join(said.err.split())
    assert made.calls[1]["models_prune"] == {"box1": [OLD["directory"]]}
    with pytest.raises(SystemExit):
        models.show(["box2", "box1"], inventory, as_json=True)
    found = json.loads(capsys.readouterr().out)
    assert "does not answer" in found["box2"]["failure"]
    assert (found["box1"]["failure"], len(found["box1"]["revisions"])) == (None, 1)
    with pytest.raises(UserError, match="does not answer") as alone:
        models.show(["box2"], inventory)
    assert alone.value.ways_out
