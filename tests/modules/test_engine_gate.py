"""From one release to the next: live when it has answered, back to the one before when it has not."""

import fcntl
import json
import sys
from pathlib import Path

import pytest
from ansible.module_utils import engine_switch, engine_watch
from ansible.module_utils.engine_store import Store
from ansible.module_utils.systemctl import UnitError

from boxwright.ansible.modules import engine_gate

sys.path.insert(0, str(Path(__file__).parent))
from engine_doubles import ANSWER, KEY, Server, unit_state


class Box:
    """A host with units, containers and one server; what a release's plan says is how its engine behaves."""

    def __init__(self, root, monkeypatch):
        self.root, self.units, self.running, self.enabled = root, {}, {}, set()
        self.calls, self.log = [], []
        self.server = Server()
        self.crashes, self.cards = set(), {}
        self.states = {}
        (root / "key").write_text(KEY + "\n")
        box = self

        class Service:
            def __init__(self, name, docker):
                self.name, self.container = name, f"boxwright-{name}"

            def state(self):
                return box.states.get(self.name, unit_state(enabled=self.name in box.enabled))

            def running_release(self):
                return box.running.get(self.name)

            def lacks(self, release):
                reasons = [] if box.units.get(self.name) == release.unit else ["its unit is another's"]
                return (
                    reasons if box.running.get(self.name) == release.id else [*reasons, "it is not running"]
                )

            def install(self, release):
                changed = box.units.get(self.name) != release.unit
                box.units[self.name] = release.unit
                return changed

            def start(self, release):
                box.calls.append(("start", release.id))
                if release.id in box.crashes:
                    box.running.pop(self.name, None)
                    box.states[self.name] = unit_state("activating", "auto-restart", status=1)
                    box.log.append("ValueError: no room")
                    if release.plan.get("unstartable"):
                        raise UnitError("systemctl restart failed")
                else:
                    box.states.pop(self.name, None)
                    box.running[self.name] = release.id
                    box.server.models = [release.plan.get("behaves", self.name)]

            def stop(self):
                box.calls.append(("stop", self.name))
                box.running.pop(self.name, None)

            def enable(self):
                new = self.name not in box.enabled
                box.enabled.add(self.name)
                return new

            def remove(self):
                box.calls.append(("remove", self.name))
                box.running.pop(self.name, None)

            def cards(self):
                return box.cards.get(box.running.get(self.name))

        class Journal:
            @classmethod
            def of_start(cls, invocation):
                return cls()

            def new(self):
                found, box.log = box.log, []
                return found

        for module in (engine_gate, engine_switch):
            monkeypatch.setattr(module, "Service", Service)
        monkeypatch.setattr(engine_gate.systemctl, "Journal", Journal)
        monkeypatch.setattr(engine_gate.systemctl, "call", lambda *words, **kw: box.calls.append(words))
        monkeypatch.setattr(engine_watch, "POLL_S", 0.01)
        monkeypatch.setattr(
            engine_watch.Watch.__init__, "__defaults__", (engine_watch.time.monotonic, lambda s: None)
        )

    def release(self, identity, name="qwen", **plan):
        """Put a release on the disk, as engine_release does."""
        state = {"name": name, "bind": "127.0.0.1", "port": self.server.port,
                 "key_file": str(self.root / "key"),
                 "access": "cdi", "stop_timeout_s": 1}  # fmt: skip
        plan = {
            "name": name,
            "served_name": name,
            "gate": {"prompt": "?", "expect": "Paris", "timeout_s": 5},
            **plan,
        }
        Store(str(self.root), name).write(identity, state, plan, f"unit of {identity}\n")
        return plan

    def link(self, link, name="qwen"):
        return Store(str(self.root), name).link(link)


@pytest.fixture
def box(tmp_path, monkeypatch):
    found = Box(tmp_path, monkeypatch)
    yield found
    found.server.close()


@pytest.fixture
def gate(box, run_module):
    """gate({name: id}, plans) -> result."""

    def call(releases, *plans, **arguments):
        return run_module("engine_gate", deployments=list(plans), releases=releases, root_dir=str(box.root),
                          start_timeout_s=3, **arguments)  # fmt: skip

    return call


def served(box, gate, identity="old"):
    """A box on which a release already serves."""
    plan = box.release(identity)
    assert "failed" not in gate({"qwen": identity}, plan)
    box.calls.clear()
    return plan


def test_the_first_release(box, gate):
    result = gate({"qwen": "new"}, box.release("new"))
    (found,) = result["results"]
    assert (result["changed"], found["answer"], found["release"]) == (True, ANSWER, "new")
    assert box.calls == [("daemon-reload",), ("start", "new")]
    assert (box.link("current"), box.enabled) == ("new", {"qwen"})


def test_a_second_run_changes_nothing(box, gate):
    plan = served(box, gate)
    result = gate({"qwen": "old"}, plan)
    assert (result["changed"], box.calls) == (False, [])
    assert result["results"][0]["answer"] == ANSWER


def test_two_runs_do_not_take_turns(box, gate):
    plan = box.release("new")
    with (box.root / "releases" / ".lock").open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        result = gate({"qwen": "new"}, plan)
        assert "another run" in result["msg"]
        assert box.calls == []
    assert gate({"qwen": "new"}, plan)["changed"] is True


def test_the_next_release(box, gate):
    served(box, gate)
    result = gate({"qwen": "new"}, box.release("new"))
    assert (result["changed"], result["results"][0]["previous"]) == (True, "old")
    assert (box.link("current"), box.link("previous"), box.running) == ("new", "old", {"qwen": "new"})


@pytest.mark.parametrize(
    ("way", "said"),
    [
        ("crash", "ended with exit status 1"),
        ("unstartable", "systemctl restart failed"),
        ("other model", "it serves another, not qwen"),
        ("no cards", "does not see its cards: Failed to initialize NVML"),
    ],
)
def test_one_that_does_not_serve_makes_way_for_the_one_before(box, gate, way, said):
    served(box, gate)
    plan = box.release(
        "bad", behaves="another" if way == "other model" else "qwen", unstartable=way == "unstartable"
    )
    if way in ("crash", "unstartable"):
        box.crashes.add("bad")
    if way == "no cards":
        box.cards["bad"] = "Failed to initialize NVML: Unknown Error"
    result = gate({"qwen": "bad"}, plan)
    assert result["failed"] is True
    assert said in result["msg"]
    assert "The release before it, old, serves again." in result["msg"]
    assert (box.link("current"), box.running, box.units) == (
        "old",
        {"qwen": "old"},
        {"qwen": "unit of old\n"},
    )
    failure = json.loads((box.root / "releases" / "qwen" / "bad" / "failure.json").read_text())
    assert said in failure["what"]


def test_the_log_comes_along_for_the_cause_to_be_found_in_it(box, gate):
    served(box, gate)
    (box.root / "key").write_text("0123456789abcdef\n")
    box.crashes.add("bad")
    failure = gate({"qwen": "bad"}, box.release("bad"))["failures"][0]
    assert (failure["name"], failure["release"], failure["kind"]) == ("qwen", "bad", "crashed")
    assert failure["log"][-1].endswith("ValueError: no room")
    assert failure["after_log"] == []
    assert "0123456789abcdef" not in json.dumps(failure)


def test_when_neither_serves_that_is_said_first(box, gate):
    served(box, gate)
    box.crashes.update({"bad", "old"})
    result = gate({"qwen": "bad"}, box.release("bad"))
    assert "NOTHING SERVES qwen NOW" in result["msg"]
    assert result["failures"][0]["after_log"][-1].endswith("ValueError: no room")


def test_a_first_release_that_does_not_serve_is_stopped_and_not_enabled(box, gate):
    box.crashes.add("bad")
    result = gate({"qwen": "bad"}, box.release("bad"))
    assert "no release of qwen has served before" in result["msg"]
    assert ("stop", "qwen") in box.calls
    assert (box.link("current"), box.enabled) == (None, set())


def test_what_failed_once_may_serve_later(box, gate):
    served(box, gate)
    box.crashes.add("bad")
    plan = box.release("bad")
    gate({"qwen": "bad"}, plan)
    box.crashes.clear()
    assert "failed" not in gate({"qwen": "bad"}, plan)
    assert box.link("current") == "bad"
    assert not (box.root / "releases" / "qwen" / "bad" / "failure.json").exists()


def test_a_draft_head_that_is_lost_is_not_promoted(box, gate):
    served(box, gate)
    counters = (
        "vllm:spec_decode_num_draft_tokens_total{%s} 40\nvllm:spec_decode_num_accepted_tokens_total{%s} %d\n"
    )
    box.server.metrics = counters % ("", "", 0)
    plan = box.release("mtp", speculative={"method": "mtp", "tokens": 2})
    assert "none was accepted" in gate({"qwen": "mtp"}, plan)["msg"]
    assert box.link("current") == "old"
    box.server.metrics = counters % ("", "", 30)
    assert gate({"qwen": "mtp"}, plan)["results"][0]["drafts"] == {"drafted": 40, "accepted": 30}


def test_when_even_stopping_fails_the_cause_is_still_told(box, gate, monkeypatch):
    box.crashes.add("bad")

    def stop(self):
        raise UnitError("systemctl stop: timed out")

    monkeypatch.setattr(engine_gate.Service, "stop", stop)
    message = gate({"qwen": "bad"}, box.release("bad"))["msg"]
    assert "NOTHING SERVES qwen NOW: systemctl stop: timed out" in message
    assert "qwen: release bad does not serve" in message


def test_one_that_does_not_answer_any_more_is_started_once_more(box, gate):
    plan = served(box, gate)
    box.server.models = ["garbled"]
    result = gate({"qwen": "old"}, plan)
    assert box.calls == [("start", "old")]
    assert "it serves garbled" in result["results"][0]["reasons"][0]


def test_why_a_release_that_served_is_started_anew_is_told(box, gate):
    plan = served(box, gate)
    box.units["qwen"] = "edited by hand"
    tried = gate({"qwen": "old"}, plan, check=True)
    assert tried["said"] == "qwen would serve release old again, for its unit is another's"
    assert gate({"qwen": "old"}, plan)["said"] == "qwen serves release old again, for its unit is another's"
    new = gate({"qwen": "new"}, box.release("new"))
    assert new["said"] == "qwen serves release new", "that a new one was not there is no news"


def test_one_that_stays_silent_is_told_and_left_to_systemd(box, gate):
    plan = served(box, gate)
    box.running.clear()
    box.crashes.add("old")
    result = gate({"qwen": "old"}, plan)
    assert "there is none to go back to" in result["msg"]


def test_what_is_declared_no_more_goes(box, gate):
    plan = served(box, gate)
    other = box.release("xxx", name="other")
    (box.root / "cache" / "other").mkdir(parents=True)
    gate({"qwen": "old"}, plan)
    assert other["name"] == "other"
    assert ("remove", "other") in box.calls
    assert [entry.name for entry in (box.root / "releases").iterdir() if entry.is_dir()] == ["qwen"]
    assert not (box.root / "cache" / "other").exists()


def test_one_renamed_is_no_second_copy(box, gate):
    served(box, gate)
    gate({"smart": "new"}, box.release("new", name="smart"))
    assert box.calls[0] == ("remove", "qwen")
    assert box.running == {"smart": "new"}


def test_several_that_start_let_go_of_cards_and_ports_first(box, gate):
    plans = [box.release("aaa", name="a"), box.release("bbb", name="b")]
    result = gate({"a": "aaa", "b": "bbb"}, *plans)
    assert [entry["name"] for entry in result["results"]] == ["a", "b"]
    assert box.calls[:3] == [("daemon-reload",), ("stop", "a"), ("stop", "b")]


def test_check_mode_tells_and_does_nothing(box, gate):
    result = gate({"qwen": "new"}, box.release("new"), check=True)
    assert (result["changed"], box.calls, box.running) == (True, [], {})
    assert result["results"][0]["reasons"]


def test_check_mode_asks_what_runs(box, gate):
    plan = served(box, gate)
    result = gate({"qwen": "old"}, plan, check=True)
    assert (result["changed"], result["results"][0]["answer"], box.calls) == (False, ANSWER, [])


def test_check_mode_before_there_is_a_release(box, gate):
    plan = {"name": "qwen", "served_name": "qwen"}
    result = gate({}, plan, check=True)
    assert (result["changed"], result["results"][0]["reasons"]) == (True, ["it has no release yet"])


def test_without_a_release_it_says_what_makes_one(box, gate):
    assert "engine_release makes it" in gate({}, {"name": "qwen", "served_name": "qwen"})["msg"]


def test_old_releases_go(box, gate):
    for identity in ("r1", "r2", "r3", "r4"):
        gate({"qwen": identity}, box.release(identity), keep_releases=2)
    assert sorted(Store(str(box.root), "qwen").releases()) == ["r3", "r4"]


def test_a_pattern_that_is_none_is_refused_before_anything_stops(box, gate):
    served(box, gate)
    plan = box.release("new", gate={"prompt": "?", "expect": "(Paris"})
    result = gate({"qwen": "new"}, plan)
    assert "gate_expect '(Paris' is no regular expression" in result["msg"]
    assert (box.calls, box.running) == ([], {"qwen": "old"})
