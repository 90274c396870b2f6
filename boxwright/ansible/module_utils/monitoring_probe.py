"""Whether a node exporter and a Prometheus do what they are there for, by what they answer."""

from __future__ import annotations

import http.client
import json
import re
import time
from typing import Any, Callable, Dict, List, Sequence, Tuple

TIMEOUT_S, PAUSE_S = 10, 1.0
#: The exporter of the cards writes twice a minute.
NEWEST_S = 120
_SAMPLE = re.compile(r"^([a-zA-Z_:][\w:]*)(?:\{[^}]*\})? (\S+)$", re.M)


def get(host: str, port: int, path: str) -> Tuple[int, str]:
    """Status and text of an answer; 0 and the reason where there is none."""
    connection = http.client.HTTPConnection(host, port, timeout=TIMEOUT_S)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode("utf-8", "replace")
    except (OSError, http.client.HTTPException) as error:
        return 0, str(error) or type(error).__name__
    finally:
        connection.close()


def exporter_problems(status: int, text: str, now: float) -> List[str]:
    """What is wrong with what a node exporter answers at the time `now`."""
    if status != 200:
        return ["the node exporter does not answer (%s)" % (status or text)]
    values = {name: float(value) for name, value in _SAMPLE.findall(text)}
    written = values.get("boxwright_collected_timestamp_seconds")
    if written is None:
        return ["it has nothing of the cards: see journalctl -u boxwright-gpu-metrics"]
    found = []
    if now - written > NEWEST_S:
        found.append("what it has of the cards is %d s old" % (now - written))
    if values.get("node_textfile_scrape_error"):
        found.append("it cannot read a file of its collector: see journalctl -u prometheus-node-exporter")
    present, answered = values.get("boxwright_gpu_present", 0), values.get("boxwright_gpu_answered", 0)
    if answered < present:
        found.append("%d of %d cards answer" % (answered, present))
    return found


def server_problems(
    targets: Dict[str, Any], rules: Dict[str, Any], expected: Sequence[Sequence[str]]
) -> List[str]:
    """What is wrong with what a Prometheus says of itself. expected: job and host:port of each target.

    That an engine is down is no fault of the Prometheus that tells it.
    """
    active = targets.get("data", {}).get("activeTargets") or []
    health = {(one["labels"].get("job"), one["labels"].get("instance")): one.get("health") for one in active}
    found = []
    for job, where in expected:
        if (job, where) not in health:
            found.append("it does not ask %s (%s)" % (where, job))
        elif health[job, where] == "unknown":
            found.append("it has not asked %s (%s) yet" % (where, job))
    groups = rules.get("data", {}).get("groups") or []
    if not groups:
        found.append("it has no rules")
    found += [
        "the rule %s fails: %s" % (rule.get("name"), rule.get("lastError"))
        for group in groups
        for rule in group.get("rules") or []
        if rule.get("health") == "err"
    ]
    return found


def exporter(host: str, port: int) -> List[str]:
    """Ask a node exporter."""
    status, text = get(host, port, "/metrics")
    return exporter_problems(status, text, time.time())


def server(host: str, port: int, expected: Sequence[Sequence[str]]) -> List[str]:
    """Ask a Prometheus."""
    status, text = get(host, port, "/-/ready")
    if status != 200:
        return ["Prometheus is not ready (%s)" % (text.strip() or status)]
    answers = []
    for path in ("/api/v1/targets?state=active", "/api/v1/rules"):
        status, text = get(host, port, path)
        try:
            answers.append(json.loads(text))
        except ValueError:
            return ["Prometheus does not answer %s (%s)" % (path, status or text)]
    return server_problems(answers[0], answers[1], expected)


def settled(ask: Callable[[], List[str]], wait_s: float) -> List[str]:
    """What is still wrong once everything is well, or the time is over."""
    until = time.monotonic() + wait_s
    while True:
        found = ask()
        if not found or time.monotonic() >= until:
            return found
        time.sleep(PAUSE_S)
