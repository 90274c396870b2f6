"""What a run that failed has left on a box, from what it recorded on its way there, and what to type next."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

#: Verbs of which a failure may leave a box changed. A tuning says itself what became of the way back.
CHANGING = frozenset({"provision", "rollback", "key"})
#: What only keeps Boxwright's own account of a box.
ACCOUNTS = frozenset({"run_record", "role_receipt"})
#: Steps that stop engines, or may: docker is started anew, the kernel's module is exchanged.
STOPPING = frozenset({"docker_daemon_config", "nvidia_module", "reboot", "engine_gate", "engine_rollback",
                      "engine_key", "engine_trial"})  # fmt: skip
#: Roles whose packages stop engines when they are exchanged.
STOPPING_PACKAGES = "container_runtime"
#: What a step that did not come to its end keeps for the next one, by its action.
KEPT = {
    "model_store": "what has arrived of the weights is kept, and the next run goes on there",
    "container_image": "what Docker has fetched of the image it keeps for the next time",
}
#: Changes that are named; of more the number is told.
MOST = 4


@dataclass(frozen=True)
class Aftermath:
    """left: sentences, what was left as it was and what not. ways_out: what to type, most likely first."""

    left: tuple[str, ...]
    ways_out: tuple[str, ...]


def aftermath(
    name: str,
    failure: Mapping[str, Any],
    changed_tasks: Sequence[Mapping[str, Any]],
    plan: Mapping[str, Any],
    verb: str,
    words: Sequence[str] = (),
) -> Aftermath:
    """What to tell of a host on which a run failed.

    failure, changed_tasks: of the run's report. plan: what it planned there, {} where it did not come so far.
    words: of the command line that repeat with the next command (--inventory …).
    """
    if verb not in CHANGING:
        return Aftermath((), () if verb in ("doctor", "init") else (_command("doctor", name, words),))
    done = [one for one in changed_tasks if not one.get("check") and str(one.get("action")) not in ACCOUNTS]
    left = [*_changes(done, failure), *_driver(done, failure, plan), *_engines(done, failure, plan)]
    return Aftermath(tuple(left), tuple(_ways_out(name, failure, verb, words)))


def _changes(done: Sequence[Mapping[str, Any]], failure: Mapping[str, Any]) -> list[str]:
    touched, kept = failure.get("touched"), KEPT.get(str(failure.get("action")))
    told = []
    if done:
        names = [str(one.get("task")) for one in done]
        more = len(names) - MOST
        told.append("done before it: " + "; ".join(names[:MOST]) + (f"; and {more} more" if more > 0 else ""))
    if touched:
        told.append("the step that failed had begun: run again, it goes on from there")
    elif kept and failure.get("kind") != "refused":
        told.append(kept)
    elif touched is None:
        before = "" if done else "nothing was changed before it; "
        told.append(before + "whether the step that failed changed anything is not known")
    elif not done:
        told.append("nothing was changed")
    return told


def _driver(
    done: Sequence[Mapping[str, Any]], failure: Mapping[str, Any], plan: Mapping[str, Any]
) -> list[str]:
    """Packages of another driver than the one that is loaded."""
    loaded = ((plan.get("facts") or {}).get("driver") or {}).get("loaded_version")
    actions = [(one.get("role"), one.get("action")) for one in done]
    packages = ("nvidia_driver", "held_packages")
    began = (failure.get("role"), failure.get("action")) == packages and failure.get("touched")
    if not loaded or not (packages in actions or began) or ("nvidia_driver", "nvidia_module") in actions:
        return []
    if failure.get("action") == "nvidia_module" and failure.get("touched") is not False:
        return []  # whether it had exchanged the module by then, its message says
    return [f"the driver's packages were changed; {loaded} is loaded as before, until a reboot at the latest"]


def _engines(
    done: Sequence[Mapping[str, Any]], failure: Mapping[str, Any], plan: Mapping[str, Any]
) -> list[str]:
    if failure.get("after"):
        return [str(one) for one in failure["after"]]
    releases = (plan.get("facts") or {}).get("releases") or ()
    current = [one for one in releases if isinstance(one, Mapping) and one.get("current")]
    if not current:
        return []
    failing = {**failure, "action": failure.get("action")}
    suspects = [*done, *([failing] if failure.get("touched") is not False else [])]
    named = ", ".join(f"release {one.get('id')} of {one.get('deployment')}" for one in current)
    suspects = [*done, *([failure] if failure.get("touched") is not False else [])]
    if any(_stops(one) for one in suspects):
        return [f"{named}: current as before; whether a model answers now was not looked at"]
    return [f"{named}: not touched"]


def _stops(one: Mapping[str, Any]) -> bool:
    action = one.get("action")
    return action in STOPPING or (action == "held_packages" and one.get("role") == STOPPING_PACKAGES)


def _ways_out(name: str, failure: Mapping[str, Any], verb: str, words: Sequence[str]) -> list[str]:
    again = _command(verb, name, words)
    if failure.get("kind") == "refused":
        return [f"declare it as said above, then see: {_command('plan', name, words)}"]
    if failure.get("kind") == "unreachable":
        return [f"once it answers: {again}"]
    found = []
    if failure.get("role") in ("engine", "nvidia_driver", "container_runtime", "gpu_tuning"):
        found.append(f"let it be looked at: {_command('doctor', name, words)}")
    if verb == "provision":
        found.append(f"once that is mended, the same again, which goes on from here: {again}")
    else:
        found.append(f"once that is mended: {_command('status', name, words)}")
    return found


def _command(verb: str, name: str, words: Sequence[str]) -> str:
    return shlex.join(["./invoke", verb, "--host", name, *words])
