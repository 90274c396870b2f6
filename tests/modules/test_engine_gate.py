"""From one release to the next: live when it has answered, back to the one before when it has not."""

import fcntl
import json
import sys
from pathlib import Path

import pytest
from ansible.module_utils import engine_switch
from ansible.module_utils.docker_api import DockerError, Image
from ansible.module_utils.engine_store import Store, checkpoint
from ansible.module_utils.systemctl import UnitError

from boxwright.ansible.modules import engine_gate
from boxwright.planner.result import PROMPTS

sys.path.insert(0, str(Path(__file__).parent))
from engine_box import Box
from engine_doubles import ANSWER, Vectors


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
    reload = ("daemon-reload",)
    assert box.calls == [reload, ("stop", "qwen"), ("start", "new"), reload, reload]
    assert (box.link("current"), box.enabled) == ("new", {"qwen"})
    assert (box.boot, box.trials) == ({"qwen": "unit of new\n"}, set())


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
    assert box.deeds == [("stop", "qwen"), ("start", "old")]
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


def test_a_release_on_trial_is_not_the_one_that_boots_start(box, gate):
    served(box, gate)
    box.crashes.add("bad")
    gate({"qwen": "bad"}, box.release("bad"))
    assert (box.boot, box.trials) == ({"qwen": "unit of old\n"}, set())


def test_what_a_killed_run_left_running_is_examined_and_promoted_without_a_restart(box, gate):
    served(box, gate)
    plan = box.release("new")
    box.units["qwen"], box.running["qwen"] = "unit of new\n", "new"
    box.trials.add("qwen")
    result = gate({"qwen": "new"}, plan)
    assert box.deeds == []
    assert (result["changed"], box.link("current"), box.boot) == (True, "new", {"qwen": "unit of new\n"})
    assert result["results"][0]["exam"]["stream_parts"] > 1


def test_what_a_killed_run_left_goes_when_the_declaration_went_back(box, gate):
    plan = served(box, gate)
    box.release("new")
    box.units["qwen"], box.running["qwen"] = "unit of new\n", "new"
    box.trials.add("qwen")
    gate({"qwen": "old"}, plan)
    assert (box.running, box.trials, box.link("current")) == ({"qwen": "old"}, set(), "old")


def test_cards_without_room_are_told_and_the_one_before_is_started_all_the_same(box, gate):
    served(box, gate)
    box.full = "card 0 has 900 MiB free, and the engine takes 20000: in use by Xorg (process 7, 100 MiB)"
    result = gate({"qwen": "new"}, box.release("new"))
    assert "release new does not serve: its cards have no room for it: card 0 has 900 MiB" in result["msg"]
    assert "The release before it, old, serves again." in result["msg"]
    assert ("start", "new") not in box.calls


def test_what_the_checkpoint_answered_is_held_against_the_next_release(box, gate):
    served(box, gate)
    plan = box.release("new")
    box.server.reply = {"choices": [{"message": {"content": "Paris Paris Paris Paris Paris"}}]}
    result = gate({"qwen": "new"}, plan)
    assert "asked what this checkpoint has answered before: it answers 'Paris Paris" in result["msg"]
    assert "failed" not in gate({"qwen": "new"}, plan, gate_skip=["reference"])
    store = Store(str(box.root), "qwen")
    assert store.reference(checkpoint(store.read("new").state)) is None


@pytest.fixture
def vectors(box):
    """The box with an engine that makes vectors and ranks, and a plan that asks it for these."""
    box.server.close()
    box.server = Vectors()

    def plan(identity, serves="embeddings"):
        gate = {"serves": serves, "prompt": PROMPTS[serves], "expect": None, "timeout_s": 5}
        return box.release(identity, serves=serves, gate=gate)

    return plan


@pytest.mark.parametrize(
    ("serves", "answer"),
    [("embeddings", "a vector of 26 numbers: "), ("reranking", ": The capital of France is Paris.;")],
)
def test_what_serves_no_text_goes_live_when_it_has_answered_in_its_own_way(
    box, gate, vectors, serves, answer
):
    plan = vectors("one", serves)
    result = gate({"qwen": "one"}, plan)
    assert answer in result["results"][0]["answer"]
    assert box.link("current") == "one"
    assert not any("messages" in body for body in box.server.asked)
    asked = len(box.server.asked)
    assert gate({"qwen": "one"}, plan)["changed"] is False
    assert len(box.server.asked) == asked + 1, "a rerun asks once"


def test_vectors_that_are_garbled_bring_the_release_before_back(box, gate, vectors):
    assert "failed" not in gate({"qwen": "old"}, vectors("old"))
    plan, made = vectors("new"), box.server.made
    box.server.made = lambda text: [number + 40 * (place == 3) for place, number in enumerate(made(text))]
    result = gate({"qwen": "new"}, plan)
    assert "another one than the release before it made" in result["msg"]
    assert "The release before it, old, serves again." in result["msg"]
    assert (box.running, box.link("current")) == ({"qwen": "old"}, "old")


def test_an_engine_that_chats_instead_is_no_engine_for_vectors(box, gate, vectors):
    plan = vectors("new")
    box.server.status = 404
    result = gate({"qwen": "new"}, plan)
    assert "/v1/embeddings answered HTTP 404" in result["msg"]


def test_a_rerun_examines_nothing(box, gate):
    plan = served(box, gate)
    asked = len(box.server.asked)
    gate({"qwen": "old"}, plan)
    assert len(box.server.asked) == asked + 1


def test_images_go_with_the_last_release_that_was_made_of_them(box, gate):
    for identity in ("r1", "r2", "r3"):
        box.images[f"vllm@{identity}"] = Image(f"id-{identity}", f"sha256:{identity}", 1)
    box.images["vllm:latest"] = Image("id-r1", "sha256:r1", 1)
    box.images["mine:latest"] = Image("id-r1", "sha256:r1", 1)
    gate({"qwen": "r1"}, box.release("r1"))
    gate({"qwen": "r2"}, box.release("r2"), keep_releases=2)
    assert box.removed == []
    result = gate({"qwen": "r3"}, box.release("r3"), keep_releases=2)
    assert result["pruned"] == {"releases": ["qwen/r1"], "images": ["vllm@r1", "vllm:latest"]}
    assert box.removed == ["vllm@r1", "vllm:latest"], "and the name that is somebody else's stays"


def test_an_image_that_another_release_is_made_of_stays(box, gate):
    for identity in ("r1", "r2", "r3", "o1"):
        box.images[f"vllm@{identity}"] = Image("id-one", "sha256:one", 1)
    other = box.release("o1", name="other")
    for identity in ("r1", "r2", "r3"):
        plan = box.release(identity)
        box.server.models = ["qwen", "other"]
        result = gate({"qwen": identity, "other": "o1"}, plan, other, keep_releases=1)
    assert result["pruned"]["releases"] == ["qwen/r1"]
    assert box.removed == []


def test_with_the_last_engine_their_network_goes(box, gate):
    served(box, gate)
    gate({})
    assert box.removed == ["boxwright"]


def test_what_would_not_start_as_its_unit_says_stops_nothing(box, gate):
    """A file beside the unit outlives every start: starting the engine anew would change nothing."""
    served(box, gate)
    box.overrides = ["/etc/systemd/system/boxwright-qwen.service.d/override.conf"]
    plan = box.release("new")
    result = gate({"qwen": "new"}, plan)
    assert box.overrides[0] in result["msg"]
    assert "nothing was stopped" in result["msg"]
    assert (box.deeds, box.link("current")) == ([], "old")


def test_check_mode_names_what_changes_a_unit_that_serves(box, gate):
    plan = served(box, gate)
    box.overrides = ["/etc/systemd/system/boxwright-qwen.service.d/override.conf"]
    result = gate({"qwen": "old"}, plan, check=True)
    assert (result["changed"], box.calls) == (True, [])
    assert box.overrides[0] in result["results"][0]["reasons"][0]


def full(*_, **__):
    raise OSError(28, "No space left on device", "/var/lib/boxwright")


def test_a_release_that_cannot_be_made_the_current_one_makes_way_too(box, gate, monkeypatch):
    served(box, gate)
    inner = Store.promote
    monkeypatch.setattr(Store, "promote", lambda self, one: full() if one == "new" else inner(self, one))
    result = gate({"qwen": "new"}, box.release("new"))
    assert "No space left on device" in result["msg"]
    assert "The release before it, old, serves again." in result["msg"]
    assert box.running == {"qwen": "old"}
    assert box.link("current") == "old"


def test_a_disk_that_takes_no_record_of_a_failure_keeps_nothing_from_serving_again(box, gate, monkeypatch):
    served(box, gate)
    box.crashes.add("bad")
    plan = box.release("bad")
    monkeypatch.setattr(engine_switch, "write", full)
    result = gate({"qwen": "bad"}, plan, progress_file=str(box.root / "none" / "progress"))
    assert "The release before it, old, serves again." in result["msg"]
    assert "it could not be kept: [Errno 28] No space left on device" in result["msg"]
    assert box.running == {"qwen": "old"}


def test_docker_that_is_started_anew_while_an_engine_loads_is_waited_for(box, gate, monkeypatch):
    served(box, gate)
    plan = box.release("new")
    answers = iter([DockerError("Docker does not answer"), None])
    inner = engine_switch.Service.running_release

    def running_release(self):
        found = next(answers, None) if box.running.get(self.name) == "new" else None
        if found:
            raise found
        return inner(self)

    monkeypatch.setattr(engine_switch.Service, "running_release", running_release)
    assert "failed" not in gate({"qwen": "new"}, plan)
    assert box.link("current") == "new"


def test_docker_that_is_gone_for_good_is_a_failure_with_a_way_back(box, gate, monkeypatch):
    served(box, gate)
    box.release("new", behaves="qwen")

    def cards(self):
        if box.running.get(self.name) == "new":
            raise DockerError("Docker does not answer on /run/docker.sock")
        return

    monkeypatch.setattr(engine_switch.Service, "cards", cards)
    result = gate({"qwen": "new"}, box.found_plan("new"))
    assert "Docker does not answer" in result["msg"]
    assert "The release before it, old, serves again." in result["msg"]
    assert result["failures"][0]["kind"] == "host"
    assert box.running == {"qwen": "old"}


def test_one_of_several_that_cannot_be_stopped_leaves_the_others_to_start(box, gate, monkeypatch):
    plans = [box.release("a", "first"), box.release("b", "second")]
    inner = engine_gate.Service.stop

    def stop(self):
        if self.name == "first":
            raise UnitError("systemctl stop: timed out")
        inner(self)

    monkeypatch.setattr(engine_gate.Service, "stop", stop)
    result = gate({"first": "a", "second": "b"}, *plans)
    assert "systemctl stop: timed out" in result["msg"]
    assert box.running == {"second": "b"}
    assert box.link("current", "second") == "b"


def test_who_waited_for_an_engine_is_answered_before_it_is_examined(box, gate, monkeypatch):
    asked = []
    monkeypatch.setattr(engine_switch.Watch, "give_way", lambda self: asked.append(len(box.server.asked)))
    plan = served(box, gate)
    assert asked == [0], "before it was asked anything"
    assert "failed" not in gate({"qwen": "old"}, plan)
    assert asked == [0], "one that serves already keeps nobody waiting"
