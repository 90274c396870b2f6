"""The verb logs."""

import json

import pytest

from boxwright.cli import journals
from boxwright.cli.ansible_run import HostReport, RunReport
from boxwright.errors import UserError

OFF = {
    "kind": "unreachable",
    "message": "ssh: connect to host box2 port 22: Connection refused",
    "role": None,
}


def journal(name, *lines, cursor="c1", problem=None):
    return {"name": name, "lines": list(lines), "cursor": cursor, "problem": problem}


@pytest.fixture
def show(monkeypatch, tmp_path, capsys):
    """Run the verb on boxes with these journals (None: off); status, streams, variables of each run."""
    (tmp_path / "hosts.yml").write_text("all: {hosts: {box1: {}, box2: {}}}\n")

    def call(looks, **options):
        given, looks = [], iter(looks)

        def play(*_, variables, **__):
            given.append(json.loads(json.dumps(variables)))
            try:
                boxes = next(looks)
            except StopIteration:
                raise KeyboardInterrupt from None
            return RunReport(0, 1.0, {
                name: HostReport(name, results={"engine_journal": [{"journals": one}]} if one else {},
                                 failure=None if one else OFF)
                for name, one in boxes.items()
            })  # fmt: skip

        monkeypatch.setattr(journals, "play", play)
        monkeypatch.setattr(journals, "FOLLOW_S", 0)
        hosts = options.pop("hosts", ["box1"])
        status = 0
        try:
            journals.logs(hosts, [str(tmp_path)], **options)
        except SystemExit as error:
            status = error.code
        except KeyboardInterrupt:
            status = 130
        return status, capsys.readouterr(), given

    return call


def test_one_journal_is_printed_as_it_is(show):
    status, said, _ = show([{"box1": [journal("qwen", "a: b", "c")]}])
    assert (status, said.out) == (0, "a: b\nc\n")


def test_several_are_told_apart(show):
    _, said, _ = show([{"box1": [journal("a", "x"), journal("b", "y")]}])
    assert said.out == "box1 a: x\nbox1 b: y\n"


def test_a_box_that_is_off_holds_nobody_up(show):
    status, said, _ = show([{"box1": [journal("qwen", "x")], "box2": None}], hosts=["box1", "box2"])
    assert status == 1
    assert said.out == "box1 qwen: x\n"
    assert "box2: could not be read" in said.err


def test_follow_goes_on_where_it_was(show):
    status, said, given = show(
        [{"box1": [journal("qwen", "x")]}, {"box1": [journal("qwen", "y", cursor="c2")]}], follow=True
    )
    assert (status, said.out) == (130, "x\ny\n")
    assert [one["logs_cursors"] for one in given] == [{}, {"box1": {"qwen": "c1"}}, {"box1": {"qwen": "c2"}}]


def test_a_box_that_was_away_for_a_look_goes_on_where_it_was(show):
    looks = [{"box1": [journal("qwen", "x")]}, {"box1": None}, {"box1": [journal("qwen", "y", cursor="c2")]}]
    given = show(looks, follow=True)[2]
    assert [one["logs_cursors"] for one in given[1:3]] == [{"box1": {"qwen": "c1"}}] * 2


def test_no_line_can_draw_on_the_terminal(show):
    assert "\033" not in show([{"box1": [journal("qwen", "\033[2Jx")]}])[1].out


def test_json(show):
    _, said, _ = show([{"box1": [journal("qwen", "x")]}], as_json=True)
    assert json.loads(said.out)["box1"] == {"failure": None, "journals": [journal("qwen", "x")]}


@pytest.mark.parametrize(
    ("given", "meant"), [("10m", "-10m"), ("-2h", "-2h"), ("2026-11-30", "2026-11-30"), ("", "")]
)
def test_since(given, meant):
    assert journals.moment(given) == meant


@pytest.mark.parametrize("given", ["yesterday-ish", "--vacuum-size=1", "1 week", "2026-13", "10m; reboot"])
def test_what_is_no_time(given):
    with pytest.raises(UserError, match="--since"):
        journals.moment(given)


@pytest.mark.parametrize("given", ["0", "-1", "", "1e3", "9999999", "x"])
def test_what_is_no_number_of_lines(given):
    with pytest.raises(UserError, match="--lines"):
        journals.count(given)
