"""Reading what tells why a host does not serve: bounded texts, without secrets."""

from __future__ import annotations

import glob
import http.client
import json
import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Dict, List, Optional, Sequence

from ansible.module_utils import host_reading, systemctl
from ansible.module_utils.command import read as read_file
from ansible.module_utils.command import run
from ansible.module_utils.docker_api import Docker, DockerError
from ansible.module_utils.engine_container import container_name
from ansible.module_utils.engine_probe import Endpoint, ProbeError, endpoint_of
from ansible.module_utils.engine_store import FAILURE_FILE, LINKS, Store
from ansible.module_utils.engine_store import deployments as recorded
from ansible.module_utils.engine_unit import unit_name
from ansible.module_utils.masking import mask

#: Version of this format.
FORMAT = 1
#: Seconds for one program; a driver that hangs must not hang the doctor.
TIMEOUT_S = 15
PROBE_TIMEOUT_S = 5
#: Most characters of one text; of a longer one the end is kept.
LARGEST = 2 << 20
#: Counters of engines that say how they fare; the others are left on the host.
COUNTERS = ("vllm:", "sglang:")
THROTTLE_FIELDS = ("clocks_event_reasons.active", "clocks_throttle_reasons.active")
JOURNAL = ["journalctl", "--no-pager", "--quiet", "--output=short-unix"]


def read(params: Dict[str, Any]) -> Dict[str, Any]:
    """The whole raw answer."""
    secrets = keys(params["config_dir"])
    lines = "--lines=%d" % params["lines"]
    names = sorted(set(recorded(params["root_dir"])) | set(params["deployments"]))
    with ThreadPoolExecutor(max_workers=8) as pool:
        kernel = pool.submit(kernel_log, lines)
        docker = pool.submit(said, [*JOURNAL, "--boot", "--unit=docker.service", "--lines=400"])
        docker_unit = pool.submit(unit, "docker.service")
        previous = pool.submit(said, [*JOURNAL, "--boot=-1", "--lines=40"])
        smi = pool.submit(said, ["nvidia-smi"])
        throttled = pool.submit(throttle)
        found = [
            pool.submit(deployment, params["root_dir"], name, lines, params["releases"]) for name in names
        ]
        raw = {
            "format": FORMAT,
            "kernel": kernel.result(),
            "docker": docker.result(),
            "docker_unit": docker_unit.result(),
            "previous_boot": previous.result(),
            "smi": smi.result(),
            "throttle": throttled.result(),
            "pci": host_reading.cards(),
            "filesystems": [
                host_reading.filesystem(path) for path in ("/", params["root_dir"], "/var/lib/docker")
            ],
            "reboot_required": os.path.exists("/run/reboot-required"),
            "deployments": [one.result() for one in found],
        }
    whole: Dict[str, Any] = masked(raw, secrets)
    return whole


def keys(config_dir: str) -> List[str]:
    """The secrets that this host keeps: they must be in nothing that leaves it."""
    paths = glob.glob(os.path.join(glob.escape(config_dir), "engines", "*", "api-key"))
    return [text for text in ((read_file(path) or "").strip() for path in sorted(paths)) if text]


def masked(value: Any, secrets: Sequence[str]) -> Any:
    """A value without secrets in any of its texts."""
    if isinstance(value, dict):
        return {key: masked(one, secrets) for key, one in value.items()}
    if isinstance(value, list):
        return [masked(one, secrets) for one in value]
    return mask(value, secrets) if isinstance(value, str) else value


def said(argv: Sequence[str]) -> Dict[str, Any]:
    """What a program said, its end where it is long, and its exit status."""
    done = run(list(argv), timeout=TIMEOUT_S)
    return {"rc": done.rc, "text": end_of(done.text)}


def end_of(text: str) -> str:
    """The end of a long text, from the beginning of a line on: half a secret is none that is known."""
    end = text[-LARGEST:]
    return end.partition("\n")[2] or end if len(text) > LARGEST else text


def kernel_log(lines: str) -> Dict[str, Any]:
    """The kernel's lines since the last boot; from its own buffer where the journal does not keep them."""
    found = said([*JOURNAL, "--dmesg", "--boot", lines])
    return found if found["text"].strip() else said(["dmesg"])


def throttle() -> Dict[str, Any]:
    """Why each card runs slower than it could, as `index, 0x…`; older drivers have another name for it."""
    found: Dict[str, Any] = {"rc": 127, "text": ""}
    for field in THROTTLE_FIELDS:
        found = said(["nvidia-smi", "--query-gpu=index," + field, "--format=csv,noheader"])
        if found["rc"] == 0 and "is not a valid field" not in found["text"]:
            break
    return found


def deployment(root_dir: str, name: str, lines: str, records: bool = False) -> Dict[str, Any]:
    """One deployment: unit, journal, container, health and counters, and its last failure.

    records: what is kept of its releases, too.
    """
    store = Store(root_dir, name)
    release = store.read(store.link("current"))
    found: Dict[str, Any] = {
        "name": name,
        "release": release.id if release else None,
        "journal": said([*JOURNAL, "--unit=" + unit_name(name), lines]),
        "unit": unit(unit_name(name)),
        "container": container(name),
        "failure": failure(store),
        "health": None,
        "metrics": "",
    }
    if release and found["unit"].get("running"):
        endpoint = endpoint_of(release.state)
        found["health"] = health(endpoint)
        found["metrics"] = counters(endpoint)
    if records:
        found["releases"] = [one for one in (record(store, link) for link in LINKS) if one]
    return found


def record(store: Store, link: str) -> Optional[Dict[str, Any]]:
    """What is kept of the release that `current` or `previous` points to; None where there is none."""
    release = store.read(store.link(link))
    if release is None:
        return None
    return {
        "id": release.id,
        "link": link,
        "state": release.state,
        "plan": release.plan,
        "unit": release.unit,
    }


def unit(name: str) -> Dict[str, Any]:
    """A unit as systemd sees it, by its whole name."""
    try:
        state = systemctl.show(name)
    except systemctl.UnitError as error:
        return {"error": str(error)}
    return {
        "load": state.load,
        "active": state.active,
        "sub": state.sub,
        "running": state.running,
        "down": state.down,
        "ending": state.ending,
        "restarts": state.restarts,
        "began": state.began,
    }


def container(name: str) -> Optional[Dict[str, Any]]:
    """The container's state; None where there is none, as after an engine that ended by itself."""
    try:
        return described(Docker().container(container_name(name)))
    except DockerError as error:
        return {"error": str(error)}


def described(found: Optional[Dict[str, Any]]) -> Optional[Dict[str, Any]]:
    """What counts of a container's state. found: as Docker shows it, None where there is none."""
    if found is None:
        return None
    state = found.get("State") or {}
    return {
        "status": state.get("Status"),
        "exit_code": state.get("ExitCode"),
        "oom_killed": bool(state.get("OOMKilled")),
        "message": state.get("Error") or "",
        "restarts": found.get("RestartCount") or 0,
    }


def failure(store: Store) -> Optional[Dict[str, Any]]:
    """What was kept of the release that failed last: when, what, and its log."""
    paths = glob.glob(os.path.join(glob.escape(store.directory), "*", FAILURE_FILE))
    for path in sorted(paths, key=os.path.getmtime, reverse=True):
        try:
            document = json.loads(read_file(path) or "")
        except ValueError:
            continue
        if isinstance(document, dict):
            log = [str(line) for line in document.get("log") or []]
            return {
                "release": os.path.basename(os.path.dirname(path)),
                "when": document.get("when"),
                "began": os.path.getmtime(path),
                "what": document.get("what"),
                "log": end_of("\n".join(log)),
            }
    return None


def health(endpoint: Endpoint) -> int:
    """The HTTP status of /health; 0 where nothing answers."""
    connection = http.client.HTTPConnection(endpoint.host, endpoint.port, timeout=PROBE_TIMEOUT_S)
    try:
        connection.request("GET", "/health")
        return connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return 0
    finally:
        connection.close()


def counters(endpoint: Endpoint) -> str:
    """The engine's own counters, as Prometheus text; empty where they cannot be had."""
    try:
        text = endpoint.metrics(timeout=PROBE_TIMEOUT_S)
    except ProbeError:
        return ""
    kept = [line for line in text.splitlines() if line.startswith(COUNTERS) and "_bucket{" not in line]
    return "\n".join(kept)[:LARGEST]
