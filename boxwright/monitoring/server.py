"""The files of a Prometheus, its configuration and what it discovers: settings and targets in, texts out."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from boxwright.ansible.module_utils.systemd_unit import exec_line, render
from boxwright.monitoring import scrape
from boxwright.monitoring.exporter import KEPT, ROOT

DIRECTORY = "/etc/prometheus/boxwright"
CONFIG, RULES, PASSWORD = (f"{DIRECTORY}/{name}" for name in ("prometheus.yml", "rules.yml", "remote-write"))
TARGETS = {job: f"{DIRECTORY}/targets/{job}.json" for job in (scrape.ENGINES, scrape.NODES)}
UNIT = "prometheus.service"
DROP_IN = f"/etc/systemd/system/{UNIT}.d/boxwright.conf"
#: Prometheus's own port, and where the distribution's package keeps samples.
PORT, SAMPLES = 9090, "/var/lib/prometheus/metrics2/"
#: Seconds that a stop waits for samples to be sent away, and for the whole of it. The distribution's unit
#: waits 20 and kills nobody: with Prometheus's minute, a stop while the other end is away would leave a
#: process that keeps the next one from starting. What was not sent is on the disk, and is sent then.
FLUSH_S, STOP_S = 10, 60
#: What refuses a configuration that Prometheus would not take.
CHECK = ("/usr/bin/promtool", "check", "config", CONFIG)
#: The Prometheus itself: whether its rules fail and its samples are lost is to be seen too.
OWN = "prometheus"
HEADER = f"# {KEPT[0]}\n"
_RULES = ROOT / "roles" / "monitoring" / "files" / "rules.yml"


@dataclass(frozen=True)
class Settings:
    """What is declared of a Prometheus. bind: its address. interval_s: seconds between two questions.

    alertmanagers: host:port of each. remote_write: url, username and password, or nothing.
    """

    bind: str = "127.0.0.1"
    interval_s: int = 15
    retention_days: int = 30
    retention_gb: int = 10
    alertmanagers: Sequence[str] = ()
    remote_write: Mapping[str, str] = field(default_factory=dict)

    @property
    def local(self) -> str:
        """The address at which the box itself asks it."""
        return scrape.local(self.bind)


def files(settings: Settings, targets: Sequence[scrape.Target], rules: Path = _RULES) -> dict[str, str]:
    """Path -> text of every file that anybody may read."""
    return {
        CONFIG: config(settings),
        RULES: rules.read_text(encoding="utf-8"),
        DROP_IN: drop_in(settings),
        **{
            path: json.dumps(scrape.groups(targets, job), indent=1, sort_keys=True) + "\n"
            for job, path in TARGETS.items()
        },
    }


def secret_files(settings: Settings) -> dict[str, str]:
    """Path -> text of what only Prometheus may read."""
    password = settings.remote_write.get("password")
    return {PASSWORD: password} if password else {}


def drop_in(settings: Settings) -> str:
    """What the distribution's unit has otherwise; its defaults listen on every address, and keep 15 days."""
    host = "" if settings.bind == "*" else settings.bind.strip("[]")
    words = [
        ["/usr/bin/prometheus"],
        [f"--config.file={CONFIG}"],
        [f"--storage.tsdb.path={SAMPLES}"],
        [f"--storage.tsdb.retention.time={settings.retention_days}d"],
        [f"--storage.tsdb.retention.size={settings.retention_gb}GB"],
        [f"--storage.remote.flush-deadline={FLUSH_S}s"],
        [f"--web.listen-address={scrape.joined(host, PORT)}"],
    ]
    lines = [("ExecStart", ""), ("ExecStart", exec_line(words))]
    lines += [("TimeoutStopSec", f"{STOP_S}s"), ("SendSIGKILL", "yes")]
    return render([("Service", lines)], KEPT)


def config(settings: Settings) -> str:
    """The main file. No secret is in it."""
    seconds = f"{settings.interval_s}s"
    own = scrape.joined(settings.local, PORT)
    document: dict[str, Any] = {
        "global": {"scrape_interval": seconds, "evaluation_interval": seconds, "scrape_timeout": seconds},
        "rule_files": [RULES],
        "scrape_configs": [
            {"job_name": OWN, "static_configs": [{"targets": [own]}]},
            *({"job_name": job, "file_sd_configs": [{"files": [path]}]} for job, path in TARGETS.items()),
        ],
    }
    if settings.alertmanagers:
        document["alerting"] = {
            "alertmanagers": [{"static_configs": [{"targets": list(settings.alertmanagers)}]}]
        }
    if settings.remote_write:
        document["remote_write"] = [_remote(settings.remote_write)]
    return HEADER + yaml.safe_dump(document, sort_keys=False)


def _remote(declared: Mapping[str, str]) -> dict[str, Any]:
    one: dict[str, Any] = {"url": declared["url"]}
    if declared.get("username"):
        one["basic_auth"] = {"username": declared["username"], "password_file": PASSWORD}
    elif declared.get("password"):
        one["authorization"] = {"type": "Bearer", "credentials_file": PASSWORD}
    return one
