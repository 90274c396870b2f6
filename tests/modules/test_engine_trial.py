"""Releases on trial: examined and not promoted, and what counts comes back, whatever happens."""

import json
import sys
from pathlib import Path

import pytest
from ansible.module_utils import engine_trial
from ansible.module_utils.command import Result
from ansible.module_utils.docker_api import Image
from ansible.module_utils.engine_store import Store
from ansible.module_utils.systemctl import UnitError

sys.path.insert(0, str(Path(__file__).parent))
from engine_box import Box
from engine_doubles import unit_state


@pytest.fixture
def box(tmp_path, monkeypatch):
    """A host on which release old1 serves, and before it old0 did; `timers` are systemd's calls for them."""
    found = Box(tmp_path, monkeypatch)
    found.timers, found.limits = [], "active"
    for identity in ("old0", "old1", "new1", "new2"):
        found.images[f"vllm@{identity}"] = Image(f"id-{identity}", f"sha256:{identity}", 1)

    def run(argv, **options):
        found.timers.append(argv)
        return Result(0, "", "")

    monkeypatch.setattr(engine_trial, "run", run)
    monkeypatch.setattr(engine_trial.systemctl, "show", lambda unit: unit_state(found.limits))
    yield found
    found.server.close()


@pytest.fixture
def serving(box, run_module):
    for identity in ("old0", "old1"):
        plan = box.release(identity, declared={"concurrency": 4})
        run_module("engine_gate", deployments=[plan], releases={"qwen": identity}, root_dir=str(box.root))
    box.calls.clear()


@pytest.fixture
def trial(box, run_module):
    return lambda state, **words: run_module(
        "engine_trial", state=state, root_dir=str(box.root), start_timeout_s=3, measure_s=60, **words
    )


def record(box):
    path = Path(box.root) / "releases" / "qwen" / ".trial.json"
    return json.loads(path.read_text()) if path.exists() else None


def untouched(box):
    """What counts is as before: the links, the unit of the next boot."""
    return (box.link("current"), box.link("previous"), box.boot) == (
        "old1",
        "old0",
        {"qwen": "unit of old1\n"},
    )


def test_begun_records_what_counts_and_arms_the_way_back(box, serving, trial):
    result = trial("begun")
    assert (result["changed"], result["origin"], result["deployment"]) == (False, "old1", "qwen")
    assert result["releases"]["old1"] == {"concurrency": 4}
    assert record(box)["known"] == ["old0", "old1"]
    assert box.timers[-1][:4] == ["systemd-run", "--quiet", "--collect", "--unit=boxwright-return_qwen"]
    assert "--on-active=360s" in box.timers[-1]
    assert box.timers[-1][-3:] == [
        "/run/systemd/system.control/boxwright-qwen.service",
        "boxwright-qwen.service",
        "boxwright-gpu-tuning.service",
    ]
    assert box.deeds == []


def test_a_release_on_trial_is_examined_and_runs_and_nothing_else_changes(box, serving, trial):
    trial("begun")
    plan = box.release("new1")
    result = trial("tried", plan=plan, release="new1")
    assert result["changed"]
    assert result["results"][0]["exam"]["reference"]
    assert box.running == {"qwen": "new1"}
    assert untouched(box)
    assert "qwen" in box.trials
    result = trial("ended")
    assert (result["serves"], result["removed"], result["origin"]) == (True, ["new1"], "old1")
    assert box.running == {"qwen": "old1"}
    assert untouched(box)
    assert (box.trials, record(box)) == (set(), None)
    assert Store(str(box.root), "qwen").releases() == ["old0", "old1"]
    # Its image goes with it; those of releases that stay do not.
    assert box.removed == ["vllm@new1"]
    assert ["systemctl", "stop", "boxwright-return_qwen.timer"] in box.timers
    assert ("reload", "boxwright-gpu-tuning.service") in box.calls


def test_one_after_the_other_without_going_back_between_them(box, serving, trial):
    trial("begun")
    for identity in ("new1", "new2"):
        trial("tried", plan=box.release(identity), release=identity)
    starts = [call[1] for call in box.calls if call[0] == "start"]
    assert starts == ["new1", "new2"]
    trial("ended")
    assert box.running == {"qwen": "old1"}


def test_the_release_that_counts_is_tried_without_a_start(box, serving, trial):
    trial("begun")
    result = trial("tried", plan=box.found("qwen").plan, release="old1")
    assert (result["changed"], box.deeds) == (False, [])


def test_one_that_fails_makes_way_for_what_counts_and_says_why(box, serving, trial):
    trial("begun")
    box.crashes.add("new1")
    result = trial("tried", plan=box.release("new1"), release="new1")
    assert "qwen: release new1 does not serve" in result["msg"]
    assert "The release before it, old1, serves again." in result["msg"]
    assert box.running == {"qwen": "old1"}
    assert untouched(box)


def test_what_does_not_answer_as_the_exam_wants_is_no_candidate(box, serving, trial):
    trial("begun")
    plan = box.release("new1", gate={"prompt": "?", "expect": "London", "timeout_s": 5})
    result = trial("tried", plan=plan, release="new1")
    assert "which does not match 'London'" in result["msg"]
    assert box.running == {"qwen": "old1"}


def test_ended_without_a_beginning_touches_nothing(box, serving, trial):
    result = trial("ended")
    assert (result["changed"], result["serves"], box.deeds) == (False, True, [])


def test_what_a_killed_run_left_is_taken_over_and_ended(box, serving, trial):
    trial("begun")
    trial("tried", plan=box.release("new1"), release="new1")
    # The next run begins while new1 still is on trial; it does not take it for something that counts.
    assert trial("begun")["origin"] == "old1"
    assert record(box)["known"] == ["old0", "old1"]
    trial("ended")
    assert Store(str(box.root), "qwen").releases() == ["old0", "old1"]


def test_a_release_that_was_promoted_meanwhile_stays(box, serving, trial, run_module):
    trial("begun")
    plan = box.release("new2")
    run_module("engine_gate", deployments=[plan], releases={"qwen": "new2"}, root_dir=str(box.root))
    result = trial("ended")
    assert (result["origin"], box.running) == ("new2", {"qwen": "new2"})
    assert "new2" in Store(str(box.root), "qwen").releases()


def test_what_counts_and_does_not_come_back_is_told_and_tried_again(box, serving, trial):
    trial("begun")
    trial("tried", plan=box.release("new1"), release="new1")
    box.crashes.add("old1")
    result = trial("ended")
    assert "NOTHING SERVES qwen NOW" in result["msg"]
    assert record(box) is not None
    box.crashes.clear()
    assert trial("ended")["serves"]
    assert box.running == {"qwen": "old1"}


def test_no_trial_without_a_release_that_counts_or_a_timer(box, trial, monkeypatch, run_module):
    assert "no release of a deployment" in trial("begun", deployment="other")["msg"]
    box.release("new1")
    assert "no release of qwen has served on this host yet" in trial("begun")["msg"]
    run_module(
        "engine_gate", deployments=[box.found_plan("new1")], releases={"qwen": "new1"}, root_dir=str(box.root)
    )
    monkeypatch.setattr(
        engine_trial, "run", lambda argv, **options: Result(1, "", "Failed to connect to bus")
    )
    box.calls.clear()
    result = trial("tried", plan=box.release("new2"), release="new2")
    assert "so nothing was begun: Failed to connect to bus" in result["msg"]
    assert box.deeds == []


def test_a_release_that_is_not_there_is_no_trial(box, serving, trial):
    trial("begun")
    assert "release nope of qwen is not on the host" in trial("tried", release="nope")["msg"]


def test_cards_that_do_not_come_back_to_their_limits_are_told(box, serving, trial, monkeypatch):
    trial("begun")

    def call(*words, **options):
        if words[0] == "reload":
            raise UnitError("systemctl reload failed")

    monkeypatch.setattr(engine_trial.systemctl, "call", call)
    result = trial("ended")
    assert result["limits"] == "systemctl reload failed"
    assert result["serves"]


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"origin": 1}'])
def test_a_record_that_is_not_whole_counts_as_none(tmp_path, text):
    store = Store(str(tmp_path), "qwen")
    Path(store.directory).mkdir(parents=True)
    Path(engine_trial.record_path(store)).write_text(text)
    assert engine_trial.kept(store) is None


def test_whoever_waits_for_the_lock_ends_what_is_on_trial_and_not_what_counts():
    class Service:
        running, stopped = "new1", 0

        def running_release(self):
            return self.running

        def stop(self):
            self.stopped += 1
            self.running = None

    service = Service()
    waiting = engine_trial.end_foreign(service, "old1")
    waiting("process 1")
    waiting("process 1")
    service.running = "old1"
    waiting("process 1")
    assert service.stopped == 1


def test_what_was_provisioned_after_a_tuning_was_killed_is_no_trial(box, serving, trial, run_module):
    trial("begun")
    # It is killed here; then the box is provisioned three times, and tuned again.
    for identity in ("new1", "new2", "old0"):
        plan = box.release(identity)
        run_module("engine_gate", deployments=[plan], releases={"qwen": identity}, root_dir=str(box.root))
    assert "new1" not in (box.link("current"), box.link("previous"))
    trial("begun")
    assert trial("ended")["removed"] == []
    assert "new1" in Store(str(box.root), "qwen").releases()
