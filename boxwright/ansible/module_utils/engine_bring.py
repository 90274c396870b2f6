"""Bringing deployments to their releases: one run at a time on a host, all that start let go first."""

from __future__ import annotations

import contextlib
import os
from typing import Any, Dict, Iterator, List, Tuple

from ansible.module_utils import engine_exam, engine_vector_exam, systemctl
from ansible.module_utils.docker_api import Docker, DockerError
from ansible.module_utils.engine_return import describe, go_back
from ansible.module_utils.engine_switch import Gate
from ansible.module_utils.engine_watch import GateError
from ansible.module_utils.progress import Progress
from ansible.module_utils.store_room import alone

#: Beside the releases, held while engines are started and stopped.
LOCK = ".lock"
#: The parts of both exams, each of which can be left out.
PARTS = list(dict.fromkeys([*engine_exam.PARTS, *engine_vector_exam.PARTS]))
#: What every module that starts engines is told.
ARGUMENTS: Dict[str, Any] = {
    "start_timeout_s": {"type": "int", "default": 1800},
    "stage_timeouts_s": {"type": "dict", "default": {}},
    "drain_seconds": {"type": "int", "default": 60},
    "warm_tokens": {"type": "int", "default": 8192},
    "gate_skip": {"type": "list", "elements": "str", "default": [], "choices": PARTS},
    "progress_file": {"type": "path"},
}


@contextlib.contextmanager
def engines_alone(params: Dict[str, Any]) -> Iterator[None]:
    """Be the only one who starts and stops engines here. Raises store_room.BusyError.

    Two runs would take each other's engine for their own, and start and stop it in turns.
    """
    progress = Progress(params["progress_file"])
    lock = os.path.join(params["root_dir"], "releases", LOCK)
    with alone(lock, lambda holder: progress.update("waiting for %s" % holder), params["start_timeout_s"]):
        yield


def bring_all(gates: List[Gate], docker: Docker) -> Tuple[List[Dict[str, Any]], List[Dict[str, Any]]]:
    """Start what must be started and have it examined; one that fails makes way for the one before it.

    Returns what became of those that serve, and what there is to tell of those that do not. Raises
    systemctl.UnitError before anything is stopped where starting would not start them.
    """
    for gate in gates:
        gate.refuse_overridden()
    results: List[Dict[str, Any]] = []
    failures: List[Dict[str, Any]] = []
    _install(gates)
    for gate in gates:
        try:
            results.append(gate.serve())
        except GateError as error:
            gate.record(error)
            failures.append(describe(gate, error, go_back(gate, docker)))
    return results, failures


def message(failures: List[Dict[str, Any]]) -> str:
    """What to say of releases that do not serve; the controller puts the causes from their logs into it."""
    return "\n\n".join("%(what)s\n%(after)s\n%(where)s" % failure for failure in failures)


def _install(gates: List[Gate]) -> None:
    """Put the units of releases that are to start in place, and have systemd read them once."""
    written = [gate.service.install(gate.release) for gate in gates if gate.reasons]
    if any(written) or any(gate.service.state().stale for gate in gates):
        systemctl.call("daemon-reload")
    starting = [gate for gate in gates if gate.reasons]
    if len(starting) > 1:
        # They may have swapped cards or ports: none may hold what another one needs.
        for gate in starting:
            # What cannot be stopped is that one's failure, when it is its turn.
            with contextlib.suppress(systemctl.UnitError, DockerError, OSError):
                gate.stop()
