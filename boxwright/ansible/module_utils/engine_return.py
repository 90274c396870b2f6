"""After a release that does not serve: the one before it back, and what there is to tell."""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple

from ansible.module_utils import systemctl
from ansible.module_utils.docker_api import Docker, DockerError
from ansible.module_utils.engine_switch import Gate
from ansible.module_utils.engine_watch import STAGE_TIMEOUTS_S, GateError


class Return(NamedTuple):
    """What became of going back. text: a sentence. log: of a release that did not come back either."""

    text: str
    log: List[str]


def go_back(gate: Gate, docker: Docker) -> Return:
    """After a release failed: bring the one before it back."""
    previous = gate.store.read(gate.store.link("current"))
    if previous is not None and previous.id == gate.release.id:
        return Return(
            "It is the release that served until now, so there is none to go back to; "
            "systemd starts it again up to its limit.",
            [],
        )
    try:
        if previous is None:
            gate.service.stop()
            return Return("It was stopped; no release of %s has served before." % gate.name, [])
        # It has served before: a stage of it that lasts long is a busy host's, not a hang.
        patient = dict.fromkeys(STAGE_TIMEOUTS_S, gate.params["start_timeout_s"])
        params = dict(gate.params, stage_timeouts_s=patient)
        return _return_to(Gate(previous.plan, previous, params, docker, thorough=False), gate)
    except (systemctl.UnitError, DockerError, OSError) as error:
        return Return("NOTHING SERVES %s NOW: %s" % (gate.name, error), [])


def _return_to(old: Gate, failed: Gate) -> Return:
    old.progress.update("%s: going back to release %s" % (old.name, old.release.id))
    old.reasons = ["release %s did not serve" % failed.release.id]
    if old.service.install(old.release):
        systemctl.call("daemon-reload")
    try:
        old.serve()
    except GateError as error:
        old.record(error)
        return Return(
            "NOTHING SERVES %s NOW: the release before it, %s, did not come back either: %s"
            % (old.name, old.release.id, error),
            old.masked(error.log),
        )
    return Return("The release before it, %s, serves again." % old.release.id, [])


def describe(gate: Gate, error: GateError, back: Return) -> Dict[str, Any]:
    """A release that does not serve, for the controller, which finds the cause in the logs.

    what: what was seen; after: what became of it; where: where to look; log, after_log: what this release and
    the one before it have written.
    """
    return {
        "name": gate.name,
        "release": gate.release.id,
        "kind": error.kind,
        "stage": error.stage,
        "what": "%s: release %s does not serve: %s" % (gate.name, gate.release.id, error),
        "after": back.text,
        "where": "Its log: journalctl -t %s; %s"
        % (
            gate.service.container,
            "it could not be kept: " + gate.unrecorded if gate.unrecorded else "kept in " + gate.failure_path,
        ),
        "log": gate.masked(error.log),
        "after_log": back.log,
    }
