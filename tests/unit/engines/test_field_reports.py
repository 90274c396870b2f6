"""Every option that the field reports name and no engine has is refused, with what to write instead."""

from __future__ import annotations

import pytest

from boxwright import catalog
from boxwright.engines.vllm_options import Checker

TABLE = catalog.load().options["vllm"]
#: Row of facts/seeds.md -> option as written there.
INVENTED = {
    "000-41": {"enable-mtp": True},
    "000-42": {"enable-mtp": True, "speculative-model": "mtp", "mtp-num": 2},
    "000-44": {"speculative-algorithm": "MTP"},
    "000-55": {"decode-kernel": "flash2"},
    "000-56": {"decode-kernel": "flash2"},
}


@pytest.mark.parametrize("release", TABLE.releases)
@pytest.mark.parametrize("row", INVENTED)
def test_invented_options_are_refused_in_every_release(row, release):
    checked = Checker(TABLE, release, exact=True).options(INVENTED[row])
    assert [problem.rule for problem in checked.problems] == ["option-in-no-release"] * len(INVENTED[row])
    assert not checked.argv
    assert all(problem.fix for problem in checked.problems)
    assert all(problem.sure for problem in checked.problems)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("mm-encoder-tp-mode", "data"),
        ("enable_auto_tool_choice", True),
        ("tool-call-parser", "qwen3_xml"),
        ("reasoning-parser", "qwen3"),
        ("trust-remote-code", True),
        ("enforce-eager", True),
    ],
)
def test_options_of_the_working_report_pass(option, value):
    """facts/seeds.md 003-14, 003-17, 003-21: vLLM 0.29."""
    assert not Checker(TABLE, "0.29.0", exact=True).options({option: value}).problems


@pytest.mark.parametrize(
    "option",
    [
        "swap-space",
        "disable-log-requests",
        "task",
        "guided-decoding-backend",
        "num-scheduler-steps",
        "use-v2-block-manager",
        "enable-reasoning",
        "rope-scaling",
        "calculate-kv-scales",
    ],
)
def test_options_that_newer_releases_lost_name_their_replacement(option):
    (problem,) = Checker(TABLE, "0.32.0", exact=True).options({option: None}).problems
    assert problem.rule in ("option-removed", "option-in-no-release")
    assert problem.fix
