"""The verb test: both parts run, and either one's failure is the whole's."""

import sys

import pytest

from boxwright.cli import testing
from boxwright.errors import UserError


@pytest.fixture
def run(monkeypatch, capfd):
    """Run all levels with programs in pytest's place that end so: (of PURE, of ON_HOSTS)."""

    def call(*statuses, **options):
        ends = dict(zip((testing.PURE, testing.ON_HOSTS), statuses, strict=False))

        def pretend(levels, name, *, verbose):
            said = f"ran {' '.join(levels)}"
            return [sys.executable, "-c", f"print({said!r}); raise SystemExit({ends.get(tuple(levels), 0)})"]

        monkeypatch.setattr(testing, "ensure_test_tools", lambda: None)
        monkeypatch.setattr(testing, "_pytest", pretend)
        with pytest.raises(SystemExit) as ended:
            testing.run(**options)
        return ended.value.code, capfd.readouterr().out

    return call


def test_both_parts_are_told(run):
    status, out = run(0, 0)
    assert status == 0
    assert sorted(out.splitlines()) == ["ran roles faults e2e", "ran unit modules style"]


@pytest.mark.parametrize("statuses", [(1, 0), (0, 1), (2, 0), (0, 3), (4, 0)])
def test_either_parts_failure_is_the_wholes(run, statuses):
    assert run(*statuses)[0] == 1


def test_a_name_may_be_in_one_part_only(run):
    assert run(5, 0, name="x")[0] == 0
    assert run(0, 5, name="x")[0] == 0
    assert run(5, 1, name="x")[0] == 1


def test_a_name_in_no_test(run):
    with pytest.raises(UserError, match="no test"):
        run(5, 5, name="x")


def test_one_level_is_one_part(run):
    assert run(0, 0, level="kills")[1] == "ran kills\n"


def test_a_level_that_there_is_not():
    with pytest.raises(UserError, match="there is no level"):
        testing.run(level="x")


def test_what_still_runs_is_ended_with_the_run(monkeypatch):
    slow = [sys.executable, "-c", "import time; time.sleep(60)"]
    started = []
    popen = testing.subprocess.Popen

    def remember(*args, **more):
        started.append(popen(*args, **more))
        return started[-1]

    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(testing.subprocess, "Popen", remember)
    monkeypatch.setattr(testing.subprocess, "run", stop)
    with pytest.raises(KeyboardInterrupt):
        testing._side_by_side([slow, slow])
    assert started[0].poll() is not None
