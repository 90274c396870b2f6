"""The verb test: its parts run, each one's failure is the whole's, the second checkout comes and goes."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from boxwright.cli import second_checkout, testing
from boxwright.errors import UserError


@pytest.fixture
def run(monkeypatch, capfd, tmp_path):
    """Run with programs in the place of pytest that end so: (of PURE, of ON_HOSTS, of WHOLE_WAY).

    checkout: whether there is one to be copied.
    """

    def call(*statuses, checkout=False, **options):
        ends = dict(zip((testing.PURE, testing.ON_HOSTS, testing.WHOLE_WAY), statuses, strict=False))

        def pretend(levels):
            end = max(
                (status for part, status in ends.items() if set(part) <= set(levels)), key=abs, default=0
            )
            said = f"ran {' '.join(levels)}"
            argv = [sys.executable, "-c", f"print({said!r}); raise SystemExit({end})"]
            return testing.Command(argv, tmp_path, {})

        monkeypatch.setattr(testing, "ensure_test_tools", lambda: None)
        monkeypatch.setattr(testing, "_pytest", lambda levels, name, *, verbose: pretend(tuple(levels)))
        monkeypatch.setattr(testing, "_elsewhere", lambda place, level, *, verbose: pretend((level,)))
        monkeypatch.setattr(second_checkout, "tracked", lambda root: [] if checkout else None)
        with pytest.raises(SystemExit) as ended:
            testing.run(**options)
        return ended.value.code, capfd.readouterr().out

    return call


def test_all_parts_are_told(run):
    status, out = run(0, 0)
    assert status == 0
    assert sorted(out.splitlines()) == ["ran roles faults e2e", "ran unit modules style"]


def test_the_whole_way_has_a_checkout_of_its_own(run, monkeypatch, tmp_path, needs_git):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    status, out = run(0, 0, 0, checkout=True)
    assert status == 0
    assert sorted(out.splitlines()) == ["ran e2e", "ran roles faults", "ran unit modules style"]
    assert run(0, 0, 1, checkout=True)[0] == 1


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


def test_every_level_is_something_that_pytest_finds():
    for level in (*testing.LEVELS, *testing.ON_REQUEST):
        command = testing._pytest([level], None, verbose=False)
        given = [word for word in command.argv if word.startswith("tests/")]
        assert given
        assert all((testing.ROOT / word).exists() for word in given), given


def test_a_level_that_there_is_not():
    with pytest.raises(UserError, match="there is no level"):
        testing.run(level="x")


def test_what_still_runs_is_ended_with_the_run_and_what_it_started(monkeypatch, tmp_path):
    child = "import os, time; open('pid', 'w').write(f'{os.getpid()} '); time.sleep(60)"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    slow = testing.Command([sys.executable, "-c", parent], tmp_path, {})
    pid = tmp_path / "pid"

    def waits_for(what):
        deadline = time.monotonic() + 60
        while not what() and time.monotonic() < deadline:
            time.sleep(0.05)
        return what()

    def stop(*_, **__):
        assert waits_for(lambda: pid.exists() and pid.read_text().endswith(" "))
        raise KeyboardInterrupt

    monkeypatch.setattr(testing.subprocess, "run", stop)
    with pytest.raises(KeyboardInterrupt):
        testing._side_by_side([slow, slow])
    status = Path("/proc", pid.read_text().strip(), "status")
    assert waits_for(lambda: not status.exists() or "State:\tZ" in status.read_text())


def test_a_second_checkout_is_what_a_clone_would_have_and_goes_again(tmp_path, monkeypatch, needs_git):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    root = tmp_path / "a clone"
    (root / "sub").mkdir(parents=True)
    for name, text in {
        "kept": "x",
        "sub/new": "y",
        "ignored": "z",
        "gone": "",
        ".gitignore": "ignored",
    }.items():
        (root / name).write_text(text)
    (root / "kept").chmod(0o755)
    git = ["git", "-C", str(root), "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "add", "kept", "gone", ".gitignore"], check=True)
    subprocess.run([*git, "commit", "-qm", "x"], check=True)
    (root / "gone").unlink()
    with second_checkout.second_checkout(root) as place:
        found = sorted(str(path.relative_to(place)) for path in place.rglob("*") if path.is_file())
        assert [name for name in found if not name.startswith(".git/")] == [".gitignore", "kept", "sub/new"]
        assert sorted(map(str, second_checkout.tracked(place))) == [".gitignore", "kept", "sub/new"]
        assert (place / "kept").stat().st_mode & 0o777 == 0o755
        # As a run that was killed leaves it.
        (place / "left").write_text("")
        with second_checkout.second_checkout(root) as again:
            assert again == place
            assert not (again / "left").exists()
    assert not place.exists()


def test_what_is_no_git_checkout_has_no_second(tmp_path):
    with second_checkout.second_checkout(tmp_path) as place:
        assert place is None


def test_the_second_checkout_finds_an_environment_of_its_own(monkeypatch):
    monkeypatch.setenv("VIRTUAL_ENV", "/a/.venv")
    monkeypatch.setenv("PATH", "/a/.venv/bin:/usr/bin")
    surroundings = second_checkout.environment("/a/.venv/bin")
    assert surroundings["PATH"] == "/usr/bin"
    assert "VIRTUAL_ENV" not in surroundings
