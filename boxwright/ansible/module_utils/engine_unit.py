"""The systemd unit of a served model: a container in the foreground, restarted and logged by systemd."""

from __future__ import annotations

import csv
import io
import os
import re
from typing import Any, Dict, List, Optional

from ansible.module_utils.engine_container import (
    NETWORK,
    PORT,
    container_name,
    container_of,
    runtime_of,
)
from ansible.module_utils.engine_guard import CLOSING, WORKING
from ansible.module_utils.systemd_unit import exec_line, render, specifiers

#: Where the unit of a release on trial lies: systemd prefers it to the one in /etc, and a reboot takes it
#: away, so that a run which is killed leaves the release that has answered to be started at the next boot.
TRIAL_DIRECTORY = "/run/systemd/system.control"
DOCKER = "/usr/bin/docker"
#: After a boot the device nodes may come later than Docker (nvidia-docker issue 288); a container that starts
#: before them fails. nvidia-modprobe makes the node that the module alone does not.
DEVICE_WAIT = (
    "nvidia-modprobe -c=0 -u 2>/dev/null; n=0; until test -c /dev/nvidia-uvm; do n=$((n+1)); "
    "test $n -lt 60 || { echo 'no /dev/nvidia-uvm after 60 s: is the NVIDIA driver loaded?' >&2; exit 1; }; "
    "sleep 1; done"
)
#: Its bridge tells at once; to ask Docker takes time in which nobody is answered.
NETWORK_MADE = (
    "test -d /sys/class/net/boxwright0 || docker network inspect %s >/dev/null 2>&1 || docker network create "
    "--opt com.docker.network.bridge.name=boxwright0 "
    "--opt com.docker.network.bridge.enable_ip_masquerade=false "
    "--opt com.docker.network.bridge.enable_icc=false %s >/dev/null" % (NETWORK, NETWORK)
)
FLOCK = "/usr/bin/flock"
#: Ends a container once its last answer has been handed to the network: `NAME FILE SECONDS`, of the lock that
#: its requests hold and the longest wait for them. One that goes on with some has its own time to end.
END = (
    '%s --exclusive --timeout "$2" "$1" /bin/sh -c \'sleep 0.2; exec %s kill "$0"\' "$0" || '
    'exec %s stop --time "$3" "$0"' % (FLOCK, DOCKER, DOCKER)
)
_SECRET_NAME = re.compile(r"(?i)(^|_)(api_?key|key|token|secret|password|passwd)$")
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def unit_name(deployment: str) -> str:
    """The unit of a deployment; also, without `.service`, the name of its container and of its log."""
    return "boxwright-%s.service" % deployment


def refusals(state: Dict[str, Any]) -> List[str]:
    """What must not go into a unit that anybody on the host can read: empty when all is well."""
    found = []
    runtime = runtime_of(state)
    for name in state["env"]:
        if not _ENV_NAME.fullmatch(name):
            found.append("env: %r is no name of an environment variable" % name)
        elif name == runtime["key"].get("variable"):
            found.append("env: %s would be readable in `docker inspect`; declare api_key instead" % name)
        elif _SECRET_NAME.search(name):
            found.append(
                "env: %s looks like a secret and would be readable in `docker inspect` and in the unit; "
                "the engine runs offline and needs none" % name
            )
    if any(word == "--api-key" or word.startswith("--api-key=") for word in state["command"]):
        found.append("--api-key would be readable in the process list; declare api_key instead")
    if not runtime["key"]:
        found.append("the plan does not say how engine %s gets its key" % state["engine"])
    return found


def unit_text(state: Dict[str, Any], release: str) -> str:
    """The unit file of a release. state: see engine_state.state_of. Raises ValueError (systemd_unit)."""
    name, stop = state["name"], state["stop_timeout_s"]
    container = container_name(name)
    unit = [
        ("Description", specifiers("Boxwright deployment %s, release %s" % (name, release))),
        ("After", "docker.service nvidia-persistenced.service boxwright-gpu-tuning.service"),
        ("Requires", "docker.service"),
        # An engine that dies at once, again and again, ends as failed instead of loading weights for ever.
        ("StartLimitIntervalSec", str(state["restart_window_s"])),
        ("StartLimitBurst", str(state["restart_limit"])),
    ]
    closing = closing_file(state)
    service = [
        ("Type", "exec"),
        ("ExecStartPre", "-" + exec_line([[DOCKER, "rm", "--force", container]])),
        ("ExecStart", exec_line(docker_run(state, release), width=4)),
        # It runs after an engine that ended by itself, too: then there is nothing to stop.
        ("ExecStop", "-" + exec_line([[DOCKER, "stop", "--time", str(stop), container]])),
        ("SuccessExitStatus", "143 137" if closing else "143"),
        # vLLM can die with exit status 0 (EngineDeadError ends its server orderly), so: always.
        ("Restart", "always"),
        ("RestartSec", "10"),
        ("TimeoutStartSec", "120"),
        # For each line of ExecStop: the wait for the requests and the end of one that goes on with some.
        ("TimeoutStopSec", str((state["guard"]["drain_seconds"] if closing else 0) + stop + 30)),
        ("SyslogIdentifier", container),
    ]
    if closing:
        drain = state["guard"]["drain_seconds"]
        # What asks for an answer from now on is told to come back; what is being answered goes on. Once it is
        # through there is nothing to lose, and an engine takes seconds to take itself apart.
        stops = [name for name, _ in service].index("ExecStop")
        working = os.path.join(os.path.dirname(closing), os.path.basename(WORKING))
        end = ["/bin/sh", "-c", END, container, working, str(drain), str(stop)]
        service[stops : stops + 1] = [
            ("ExecStop", "-" + exec_line([["/bin/touch", closing]])),
            ("ExecStop", "-" + exec_line([end])),
        ]
        service.insert(1, ("ExecStartPre", exec_line([["/bin/rm", "--force", closing, working]])))
    if state.get("network"):
        service.insert(2, ("ExecStartPre", exec_line([["/bin/sh", "-c", NETWORK_MADE]])))
    if state["access"] != "none":
        service.insert(2, ("ExecStartPre", exec_line([["/bin/sh", "-c", DEVICE_WAIT]])))
    text: str = render(
        [("Unit", unit), ("Service", service), ("Install", [("WantedBy", "multi-user.target")])],
        comments=[
            "Written by Boxwright for deployment %s, release %s; the next run replaces it." % (name, release)
        ],
    )
    return text


def closing_file(state: Dict[str, Any]) -> Optional[str]:
    """The file by whose presence a release's guard takes no new work; None where there is none that looks."""
    if not (state.get("guard") or {}).get("closing"):
        return None
    return os.path.join(str(state["cache_directory"]), os.path.basename(CLOSING))


def docker_run(state: Dict[str, Any], release: str) -> List[List[str]]:
    """The container's command line, in groups of what belongs together."""
    box = container_of(state, release)
    groups = [
        [DOCKER, "run", "--rm", "--name", box.name],
        # The unit is started with the image in place; a pull here would be unwatched and unbounded.
        ["--pull", "never", "--init", "--log-driver", "none"],
        ["--label", "boxwright.deployment=" + box.deployment, "--label", "boxwright.release=" + release],
        ["--read-only", "--tmpfs", "/tmp:exec", "--cap-drop", "ALL", "--security-opt", "no-new-privileges"],
        ["--user", box.user] if box.user else [],
        ["--shm-size", box.shm_size, "--stop-timeout", str(box.stop_timeout_s)],
        devices(state),
        [] if box.outgoing else ["--network", state["network"]],
        ["--publish", "%s:%d:%d" % (_address(box.bind), box.port, PORT)],
    ]
    groups += [["--mount", mount(one.source, one.target, one.read_only)] for one in box.mounts]
    groups += [["--env", "%s=%s" % item] for item in sorted(box.env.items())]
    program, *words = box.entrypoint
    groups += [["--entrypoint", program, box.image], words, list(box.command)]
    return [group for group in groups if group]


def devices(state: Dict[str, Any]) -> List[str]:
    """How the container gets its cards, and what it takes to use them and the mounts."""
    # Where Docker confines containers by SELinux, neither the cards' nodes nor the model's files have a label
    # that it lets them use; NVIDIA's way with CDI is to leave such a container out.
    words = ["--security-opt", "label=disable"] if state.get("selinux") else []
    if state["access"] == "none":
        return words
    if state["access"] == "cdi":
        return words + [
            word for device in state["devices"] for word in ("--device", "nvidia.com/gpu=" + device)
        ]
    # One CSV field with commas inside, hence the quotes (docker run --gpus).
    return [*words, "--gpus", '"device=%s"' % ",".join(state["devices"])]


def _address(bind: str) -> str:
    return "[%s]" % bind if ":" in bind else bind


def mount(source: str, target: str, read_only: bool = False) -> str:
    """A directory or file of the host in the container.

    Docker reads --mount as one CSV record, so a comma or a quote in a path must be quoted.
    """
    text = io.StringIO()
    fields = ["type=bind", "source=" + source, "target=" + target] + (["readonly"] if read_only else [])
    csv.writer(text, lineterminator="").writerow(fields)
    return text.getvalue()
