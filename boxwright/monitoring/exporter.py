"""The exporters of a box: the distribution's node exporter, and what writes the cards' metrics for it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from boxwright.ansible.module_utils.systemd_unit import exec_line, render
from boxwright.monitoring.scrape import NODE_PORT, is_loopback, joined

ROOT = Path(__file__).resolve().parents[2]
_UTILS = ROOT / "boxwright" / "ansible" / "module_utils"
#: The program of the cards' metrics, and where it lies on a host with the modules that it imports.
SCRIPT, DIRECTORY = "gpu_metrics.py", "/usr/local/lib/boxwright/monitoring"
#: The textfile collector's directory, of the distribution's package.
TEXTFILES = "/var/lib/prometheus/node-exporter"
OUTPUT = f"{TEXTFILES}/boxwright.prom"
_UNITS = "/etc/systemd/system"
NODE_UNIT, TIMER = "prometheus-node-exporter.service", "boxwright-gpu-metrics.timer"
DROP_IN = f"{_UNITS}/{NODE_UNIT}.d/boxwright.conf"
SERVICE_FILE, TIMER_FILE = f"{_UNITS}/boxwright-gpu-metrics.service", f"{_UNITS}/{TIMER}"
KEPT = ("Kept by Boxwright; edits are overwritten.",)
#: Seconds between two looks at the cards.
INTERVAL_S = 30


def parts() -> dict[str, Path]:
    """Name on the host -> file of ours; they need nothing but Python and each other."""
    return {
        SCRIPT: ROOT / "roles" / "monitoring" / "files" / SCRIPT,
        "command.py": _UTILS / "command.py",
        "file_state.py": _UTILS / "file_state.py",
        "nvidia_smi.py": ROOT / "boxwright" / "facts" / "parsers" / "nvidia_smi.py",
    }


def files(bind: str, allow_from: Sequence[str], config_dir: str) -> dict[str, str]:
    """Path -> text. allow_from: networks that may ask beside the box itself; empty for all that reach it."""
    return {
        DROP_IN: drop_in(bind, allow_from),
        SERVICE_FILE: service(config_dir),
        TIMER_FILE: timer(),
        **{f"{DIRECTORY}/{name}": path.read_text(encoding="utf-8") for name, path in parts().items()},
    }


def drop_in(bind: str, allow_from: Sequence[str]) -> str:
    """What the distribution's unit has otherwise; its own defaults listen on every address."""
    host = "" if bind == "*" else bind.strip("[]")
    words = [
        ["/usr/bin/prometheus-node-exporter"],
        [f"--web.listen-address={joined(host, NODE_PORT)}"],
        [f"--collector.textfile.directory={TEXTFILES}"],
    ]
    settings = [("ExecStart", ""), ("ExecStart", exec_line(words))]
    if allow_from and not is_loopback(bind):
        # Of the unit's own control group: no rule of any firewall is touched.
        settings += [("IPAddressDeny", "any"), ("IPAddressAllow", " ".join(["localhost", *allow_from]))]
    return render([("Service", settings)], KEPT)


def service(config_dir: str) -> str:
    """The unit that looks at the cards once. It reads receipts, which are root's, and writes one file."""
    program = ["/usr/bin/python3", "-E", "-s", f"{DIRECTORY}/{SCRIPT}", OUTPUT, config_dir]
    return render(
        [
            (
                "Unit",
                [("Description", "Metrics of the cards and of drift for the node exporter")],
            ),
            (
                "Service",
                [
                    ("Type", "oneshot"),
                    ("ExecStart", exec_line([program])),
                    ("TimeoutStartSec", "90"),
                    # Twice a minute, a line that it began and one that it ended would drown what matters.
                    ("LogLevelMax", "notice"),
                    ("ProtectSystem", "strict"),
                    ("ReadWritePaths", TEXTFILES),
                    ("ProtectHome", "yes"),
                    ("PrivateNetwork", "yes"),
                    ("PrivateTmp", "yes"),
                    ("NoNewPrivileges", "yes"),
                ],
            ),
        ],
        KEPT,
    )


def timer() -> str:
    """What starts it, at once and then again and again."""
    return render(
        [
            ("Unit", [("Description", "Look at the cards for the node exporter")]),
            (
                "Timer",
                [
                    ("OnActiveSec", "1s"),
                    ("OnUnitInactiveSec", f"{INTERVAL_S}s"),
                    ("AccuracySec", "5s"),
                ],
            ),
            ("Install", [("WantedBy", "timers.target")]),
        ],
        KEPT,
    )
