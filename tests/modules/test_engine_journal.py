"""The module engine_journal on a double of journalctl."""

import os
import stat

import pytest

KEY = "0123456789abcdef0123"
SCRIPT = f"""#!/bin/sh
printf '%s\\n' "$@" > "$CALLS"
echo "2026-11-30T06:00:00+0000 box1 docker[9]: ready, key {KEY} and hf_abcdefghijkl"
echo "2026-11-30T06:00:01+0000 box1 docker[9]: second"
echo "-- cursor: s=abc;i=2"
"""


@pytest.fixture
def read(tmp_path, monkeypatch, run_module):
    """read(names, …) -> journals and the arguments of the last journalctl."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "journalctl").write_text(SCRIPT)
    (folder / "journalctl").chmod(stat.S_IRWXU)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    calls = tmp_path / "calls"
    monkeypatch.setenv("CALLS", str(calls))
    place = tmp_path / "etc" / "engines" / "qwen"
    place.mkdir(parents=True)
    (place / "api-key").write_text(KEY)

    def call(*names, **arguments):
        result = run_module(
            "engine_journal", deployments=list(names), config_dir=str(tmp_path / "etc"), **arguments
        )
        assert result["changed"] is False
        return result["journals"], calls.read_text().splitlines() if calls.exists() else []

    return call


def test_the_end_of_a_journal_without_secrets(read):
    [journal], argv = read("qwen", lines=2)
    assert (journal["name"], journal["cursor"], journal["problem"]) == ("qwen", "s=abc;i=2", None)
    assert [line.rpartition(": ")[2] for line in journal["lines"]] == ["ready, key *** and ***", "second"]
    assert "--unit=boxwright-qwen.service" in argv
    assert "--lines=2" in argv


def test_what_came_after_a_cursor(read):
    [journal], argv = read("qwen", cursors={"qwen": "s=abc;i=1"}, since="-1h")
    assert "--after-cursor=s=abc;i=1" in argv
    assert not any(word.startswith(("--lines", "--since")) for word in argv)
    assert journal["cursor"] == "s=abc;i=2"


def test_a_time(read):
    assert "--since=-1h" in read("qwen", since="-1h")[1]


@pytest.mark.parametrize("name", ["", "--vacuum-size=1", "../x", "a b", "a\nb", "A"])
def test_a_name_that_is_none_asks_nothing(read, name):
    [journal], argv = read(name)
    assert journal["problem"] == "no deployment can have this name"
    assert argv == []


def test_all_that_came_after_a_cursor_is_there_however_much(read):
    [journal], _ = read("qwen", cursors={"qwen": "s=abc;i=1"}, lines=1)
    assert len(journal["lines"]) == 2


def test_a_key_where_a_long_line_is_cut_is_masked_before(read, tmp_path):
    script = tmp_path / "bin" / "journalctl"
    script.write_text(f"#!/bin/sh\nprintf '%08180d' 0\necho '{KEY}{KEY}'\n")
    [journal], _ = read("qwen")
    assert KEY[:8] not in journal["lines"][0]
    assert journal["lines"][0].endswith("******")
