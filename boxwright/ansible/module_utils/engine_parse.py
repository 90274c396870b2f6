"""The options of a release, read by the parser of its own image while the release before it serves."""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Optional

from ansible.module_utils.command import run
from ansible.module_utils.engine_container import BASE_ENV, MODEL_DIRECTORY
from ansible.module_utils.engine_unit import DOCKER, devices, mount

#: Seconds for an engine's libraries to be read and its parser to be made; 14 on two idle processors.
TIMEOUT_S = 300
#: The exit status of a parser that does not take its arguments.
REFUSED = 2
_LONGEST = 600


class Parsed(NamedTuple):
    """What came of it. refusal: the parser's words where it takes them not. doubt: why it was not asked."""

    refusal: Optional[str]
    doubt: Optional[str]


def parsed(state: Dict[str, Any], program: str) -> Parsed:
    """Have the image's own parser read the release's options. program: Python, of the plan."""
    done = run(command(state, program), timeout=TIMEOUT_S)
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    last = (lines[-1] if lines else done.stdout.strip() or "exit status %d" % done.rc)[:_LONGEST]
    if done.rc == 0:
        return Parsed(None, None)
    if done.rc == REFUSED and "error:" in last:
        return Parsed(last.partition("error:")[2].strip(), None)
    return Parsed(None, last)


def command(state: Dict[str, Any], program: str) -> List[str]:
    """A container that can do nothing but read its arguments. It sees the cards, which some depend on."""
    env = dict(BASE_ENV, **state["env"])
    env["HOME"] = "/tmp"
    words = [DOCKER, "run", "--rm", "--pull", "never", "--network", "none", "--log-driver", "none"]
    words += ["--read-only", "--tmpfs", "/tmp:exec", "--cap-drop", "ALL"]
    words += ["--security-opt", "no-new-privileges"]
    words += ["--user", state["user"]] if state.get("user") else []
    words += ["--label", "boxwright.parses=" + state["name"], *devices(state)]
    words += ["--mount", mount(state["model_directory"], MODEL_DIRECTORY, read_only=True)]
    words += [word for item in sorted(env.items()) for word in ("--env", "%s=%s" % item)]
    return [*words, "--entrypoint", "python3", state["reference"], "-c", program, *state["command"][1:]]
