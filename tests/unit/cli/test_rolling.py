"""Boxes behind gateways are changed one after another: who waits, who is out of use, what ends it."""

import pytest
import yaml

from boxwright.cli import gateways as at_gateways
from boxwright.cli import rolling
from boxwright.cli.ansible_run import HostReport, RunReport
from boxwright.cli.gateways import Fleet
from boxwright.cli.rolling import in_turns, provision
from boxwright.errors import UserError
from boxwright.spec import inventory

UNREACHABLE = {"kind": "unreachable", "message": "no route"}
BROKEN = {"kind": "failed", "message": "CUDA out of memory", "role": "engine"}
CURRENT = [{"id": "a", "deployment": "q", "current": True}]


class Gateways:
    """Gateways as the module gateway_server leaves them. out: boxes that get nothing, by gateway."""

    def __init__(self):
        self.out, self.log, self.off, self.refuse, self.alone = {}, [], set(), {}, set()

    def play(self, playbook, hosts, inventories, *, quiet, variables):
        assert (playbook, quiet) == ("gateway_server.yml", True)
        state, wanted = variables["gateway_turn_state"], variables["gateway_turn"]
        assert sorted(wanted) == sorted(hosts)
        found = {}
        for gateway in hosts:
            self.log.append((state, gateway, *wanted[gateway]))
            found[gateway] = HostReport(gateway, **self.answer(gateway, state, wanted[gateway]))
        return RunReport(0, 1.0, found)

    def answer(self, gateway, state, boxes):
        if gateway in self.off:
            return {"failure": UNREACHABLE}
        if state in self.refuse:
            return {"failure": {"kind": "failed", "message": self.refuse[state]}}
        out = self.out.setdefault(gateway, set())
        before = set(out)
        going = [box for box in boxes if box not in self.alone]
        (out.update if state == "drained" else out.difference_update)(going)
        told = [f"{box} alone serves q" for box in boxes if box in self.alone]
        result = {"changed": out != before, "drained": going if state == "drained" else [], "told": told}
        return {"results": {"gateway_server": [result]}}


@pytest.fixture
def gateways(monkeypatch):
    made = Gateways()
    monkeypatch.setattr(at_gateways, "play", made.play)
    return made


def fleet(**behind):
    return Fleet(behind, dict.fromkeys(behind, ("q",)))


class Boxes:
    """What the playbook makes of boxes. bad: those that fail, and of what; due: that are to be changed."""

    def __init__(self, gateways, *, bad=None, due=(), refused=None, new=()):
        self.gateways, self.bad, self.due, self.refused, self.new = (
            gateways,
            bad or {},
            due,
            refused or {},
            new,
        )
        self.log, self.stop = [], None

    def run(self, names, variables):
        # Whom every gateway leaves out at this moment.
        out = {box for boxes in self.gateways.out.values() for box in boxes}
        self.log.append((list(names), sorted(out)))
        if self.stop == list(names):
            raise KeyboardInterrupt
        return RunReport(0, 1.0, {name: self.host(name, variables) for name in names})

    def host(self, name, variables):
        if name in self.refused:
            return HostReport(name, failure=self.refused[name])
        due = name in self.due
        plan = {"visits": {"engine": ["another image"]} if due else {},
                "facts": {"releases": [] if name in self.new else CURRENT}}  # fmt: skip
        waits = due and name not in self.new and name in variables.get("roll_boxes", ())
        failure = None if waits else self.bad.get(name)
        changed = int(due and not waits and not failure)
        return HostReport(
            name, changed, failure=failure, results={"plan": [{"ansible_facts": {"box_plan": plan}}]}
        )

    def provision(self, fleet, *names):
        told = []
        report = provision(fleet, list(names), self.run, told.append)
        return report.hosts, told


def test_boxes_are_changed_one_after_another_and_out_of_use_meanwhile(gateways):
    boxes = Boxes(gateways, due=("box1", "box2", "free"))
    hosts, told = boxes.provision(fleet(box1=("gw",), box2=("gw",)), "gw", "box1", "box2", "free")
    assert boxes.log == [
        (["gw", "box1", "box2", "free"], []), (["box1"], ["box1"]), (["box2"], ["box2"]), (["gw"], []),
    ]  # fmt: skip
    assert [line[:2] for line in gateways.log] == [("drained", "gw"), ("ready", "gw")] * 2
    assert [hosts[name].changed for name in ("box1", "box2", "free")] == [1, 1, 1]
    assert not any(one.failure for one in hosts.values())
    assert "box1: its gateway gw finds it well and sends it requests again" in told


def test_one_that_is_as_declared_or_serves_nothing_yet_does_not_wait(gateways):
    boxes = Boxes(gateways, due=("box2",), new=("box2",))
    boxes.provision(fleet(box1=("gw",), box2=("gw",)), "box1", "box2")
    assert boxes.log == [(["box1", "box2"], [])]
    assert gateways.log == []


def test_a_box_that_fails_ends_it_and_the_rest_serves_as_before(gateways, monkeypatch):
    monkeypatch.setattr(rolling.run_logs.call, "verb", "provision")
    boxes = Boxes(gateways, due=("box1", "box2", "box3"), bad={"box2": BROKEN})
    behind = fleet(box1=("gw",), box2=("gw",), box3=("gw",))
    hosts, told = boxes.provision(behind, "gw", "box1", "box2", "box3")
    assert [names for names, _ in boxes.log[1:]] == [["box1"], ["box2"]]
    assert hosts["box1"].failure is None
    assert hosts["box2"].failure == BROKEN
    for name in ("box3", "gw"):
        failure = hosts[name].failure
        assert (failure["kind"], failure["message"]) == ("not begun", "the roll ended at box2")
        assert failure["left"] == ["nothing was changed: it is as before"]
        assert failure["next"] == [f"once that is mended: ./invoke provision --host box2 --host {name}"]
    # The one that failed is back as soon as the gateway finds it well, and is not waited for.
    assert gateways.log[-1] == ("offered", "gw", "box2")
    assert gateways.out == {"gw": set()}
    assert "box2: its gateway gw sends it requests again once it answers" in told


@pytest.mark.parametrize("failure", [UNREACHABLE, {"kind": "refused", "message": "no room"}])
def test_one_that_cannot_be_planned_leaves_all_behind_its_gateway_as_they_are(gateways, failure):
    boxes = Boxes(gateways, due=("box1", "box2", "far"), refused={"box2": failure})
    behind = fleet(box1=("gw",), box2=("gw",), far=("other",))
    hosts, _ = boxes.provision(behind, "box1", "box2", "far")
    assert [names for names, _ in boxes.log[1:]] == [["far"]]
    assert hosts["box1"].failure["message"] == "the roll ended at box2"
    assert hosts["box2"].failure == failure
    assert hosts["far"].failure is None


def test_boxes_of_different_gateways_go_at_once_and_end_each_other_not(gateways):
    boxes = Boxes(gateways, due=("a1", "a2", "b1", "b2"), bad={"a1": BROKEN})
    behind = fleet(a1=("a",), a2=("a",), b1=("b",), b2=("b",))
    hosts, _ = boxes.provision(behind, "a1", "a2", "b1", "b2", "a", "b")
    assert boxes.log[1:] == [(["a1", "b1"], ["a1", "b1"]), (["b2"], ["b2"]), (["b"], [])]
    assert [name for name, one in hosts.items() if one.failure] == ["a1", "a2", "a"]


def test_a_box_is_drained_at_each_of_its_gateways(gateways):
    hosts, _ = Boxes(gateways, due=("box1",)).provision(fleet(box1=("gw1", "gw2")), "box1")
    assert gateways.log == [
        ("drained", "gw1", "box1"),
        ("drained", "gw2", "box1"),
        ("ready", "gw1", "box1"),
        ("ready", "gw2", "box1"),
    ]
    assert hosts["box1"].failure is None


def test_a_gateway_that_is_off_is_told_and_done_without(gateways):
    gateways.off = {"gw1"}
    hosts, told = Boxes(gateways, due=("box1",)).provision(fleet(box1=("gw1", "gw2")), "box1")
    assert hosts["box1"].failure is None
    assert "gw1 cannot be reached: it is changed without being drained there" in told[0]


def test_a_gateway_that_goes_away_meanwhile_may_have_the_box_out_of_use(gateways):
    boxes = Boxes(gateways, due=("box1",))
    run = boxes.run

    def goes(names, variables):
        gateways.off = {"gw"} if names == ["box1"] and not variables else set()
        return run(names, variables)

    boxes.run = goes
    hosts, _ = boxes.provision(fleet(box1=("gw",), box2=("gw",)), "box1", "box2")
    assert "gw cannot be reached any more, and may still send it nothing" in hosts["box1"].failure["message"]


def test_a_gateway_that_does_not_do_as_it_is_told_keeps_the_box_from_being_changed(gateways):
    gateways.refuse = {"drained": "Permission denied"}
    boxes = Boxes(gateways, due=("box1", "box2"))
    hosts, _ = boxes.provision(fleet(box1=("gw",), box2=("gw",)), "box1", "box2")
    assert boxes.log[1:] == []
    assert "Permission denied" in hosts["box1"].failure["message"]
    assert hosts["box2"].failure["kind"] == "not begun"


def test_a_box_that_the_gateway_does_not_find_well_ends_it(gateways):
    gateways.refuse = {"ready": "box1 answers, but not to the gateway"}
    hosts, _ = Boxes(gateways, due=("box1", "box2")).provision(
        fleet(box1=("gw",), box2=("gw",)), "box1", "box2"
    )
    assert "not to the gateway" in hosts["box1"].failure["message"]
    assert hosts["box2"].failure["kind"] == "not begun"


def test_the_only_box_of_a_model_is_changed_in_use_and_told(gateways):
    gateways.alone = {"box1"}
    boxes = Boxes(gateways, due=("box1",))
    hosts, told = boxes.provision(fleet(box1=("gw",)), "box1")
    assert boxes.log[1:] == [(["box1"], [])]
    assert told == ["box1: its gateway gw: box1 alone serves q"]
    assert hosts["box1"].failure is None


def test_a_run_that_is_stopped_leaves_no_box_out_of_use(gateways):
    boxes = Boxes(gateways, due=("box1", "box2"))
    boxes.stop = ["box1"]
    with pytest.raises(KeyboardInterrupt):
        boxes.provision(fleet(box1=("gw",), box2=("gw",)), "box1", "box2")
    assert gateways.out == {"gw": set()}


def test_what_was_made_ready_is_no_change_of_what_serves(gateways):
    first = HostReport("box2", changed=1)
    later = in_turns(fleet(box2=("gw",)), ["box2"], lambda names: {}, print, unlucky=["box1"], among=["box2"])
    assert rolling.merged(first, later["box2"]).failure is not None
    later = in_turns(
        fleet(box1=("gw",), box2=("gw",)), ["box2"], lambda names: {}, print,
        unlucky=["box1"], among=["box1", "box2"],
    )  # fmt: skip
    left = rolling.merged(first, later["box2"]).failure["left"]
    assert left == ["what takes long was made ready; what serves was not touched"]


def declared(tmp_path, **hosts):
    (tmp_path / "hosts.yml").write_text(yaml.safe_dump({"pool": {"hosts": hosts}}))
    return inventory.load([tmp_path / "hosts.yml"])


BOX = {
    "box_deployments": [{"name": "q", "model": "smollm2-135m-instruct", "image": "vllm/vllm-openai:v0.32.0"}]
}


def test_who_is_behind_which_gateway_is_known_from_the_inventory(tmp_path):
    known = declared(
        tmp_path, box1=BOX, box2=BOX, box3=BOX, gw1={"gateway_boxes": ["box1", "box2"]},
        gw2={"gateway_boxes": ["{{ 'box2' }}"]},
    )  # fmt: skip
    found = at_gateways.fleet(known, ["box2", "box3", "box1"], ["here"])
    assert found.gateways == {"box2": ("gw1", "gw2"), "box1": ("gw1",)}
    assert found.models == {"box2": ("q",), "box1": ("q",)}
    assert found.all_gateways == ("gw1", "gw2")
    assert at_gateways.fleet(known, ["box3"], []).all_gateways == ()


def test_without_gateways_there_is_no_fleet(tmp_path):
    assert at_gateways.fleet(declared(tmp_path, box1=BOX), ["box1"], []) == Fleet()


def test_a_gateway_of_strangers_is_refused(tmp_path):
    known = declared(tmp_path, box1=BOX, gw={"gateway_boxes": ["bx1"]})
    with pytest.raises(UserError, match="bx1"):
        at_gateways.fleet(known, ["box1"], [])
