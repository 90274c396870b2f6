"""What Docker says of itself, as its client prints it: asked at its socket, which costs next to nothing.

Each call of the client is some fifty milliseconds of a processor. It is called where the engine at the socket
is not Docker's own or does not answer: what it then says is what a person reads.
"""

from __future__ import annotations

import json
from typing import Any, Dict, List, Optional

from ansible.module_utils.command import run
from ansible.module_utils.docker_api import Docker, DockerError

COMMANDS = {
    "docker-version": ["docker", "version", "--format", "{{json .}}"],
    "docker-info": ["docker", "info", "--format", "{{json .}}"],
    "containers": ["docker", "ps", "--no-trunc", "--format", "{{json .}}"],
}
#: Seconds for one answer.
TIMEOUT = 15
#: How Docker's own engine calls itself; Podman answers at the same socket.
ENGINE = "Engine"


def look(docker: Optional[Docker] = None) -> Dict[str, Dict[str, Any]]:
    """Name of a command -> rc, stdout, stderr."""
    engine = docker or Docker(timeout=TIMEOUT)
    try:
        if not any(one.get("Name") == ENGINE for one in engine.about().get("Components") or []):
            return _by_client()
        info, containers = engine.info(), engine.listed()
    except DockerError:
        return _by_client()
    lines = [json.dumps({"Names": _names(one), "Ports": _ports(one)}) for one in containers]
    return {"docker-info": _said(json.dumps(info)), "containers": _said("\n".join(lines))}


def _by_client() -> Dict[str, Dict[str, Any]]:
    found = {}
    for name, argv in COMMANDS.items():
        answer = run(argv, timeout=TIMEOUT)
        found[name] = {"rc": answer.rc, "stdout": answer.stdout, "stderr": answer.stderr}
    return found


def _said(text: str) -> Dict[str, Any]:
    return {"rc": 0, "stdout": text, "stderr": ""}


def _names(container: Dict[str, Any]) -> str:
    return ",".join(name.lstrip("/") for name in container.get("Names") or [])


def _ports(container: Dict[str, Any]) -> str:
    """`0.0.0.0:8000->8000/tcp, …`."""
    texts: List[str] = []
    for port in container.get("Ports") or []:
        inner = "%s/%s" % (port.get("PrivatePort"), port.get("Type"))
        outer = "%s:%s->" % (port.get("IP", ""), port["PublicPort"]) if port.get("PublicPort") else ""
        texts.append(outer + inner)
    return ", ".join(texts)
