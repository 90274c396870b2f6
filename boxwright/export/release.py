"""What is written of a release, and what all formats have in common."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from boxwright.ansible.module_utils.engine_container import GUARD_FILE, PORT, Container
from boxwright.ansible.module_utils.engine_guard import CLOSING

#: Asks the engine how it is, by the Python that every engine's image has.
HEALTH = (
    "python3",
    "-c",
    f"import urllib.request as r; r.urlopen('http://127.0.0.1:{PORT}/health', timeout=4)",
)
HEALTH_INTERVAL_S, HEALTH_TIMEOUT_S, HEALTH_RETRIES = 30, 5, 4
#: Seconds until a start that loads weights and compiles kernels counts as failed.
START_S = 1800


@dataclass(frozen=True)
class Release:
    """A release of a deployment. host: the box's name; guard: the text of its guard, None where it has none.

    running: whether it serves there; otherwise a plan makes it so. key_variable: by which the engine gets its
    key, None where it reads a file of options.
    """

    host: str
    container: Container
    guard: str | None = None
    running: bool = True
    key_variable: str | None = "VLLM_API_KEY"

    @property
    def name(self) -> str:
        """The deployment's name."""
        return self.container.deployment

    @property
    def entrypoint(self) -> list[str]:
        """The container's, behind what the box's own unit does before it: what closed the last one goes."""
        program, option, script, *rest = self.container.entrypoint
        return [program, option, f"rm -f {CLOSING}; {script}" if self.guard is not None else script, *rest]

    @property
    def guard_file(self) -> str:
        """The name of the guard's file beside what is written."""
        return f"{self.container.name}-{GUARD_FILE}"


def head(release: Release, steps: Iterable[str]) -> str:
    """The comment above a file: what it is of, and what to do before it is used."""
    state = "which serves there" if release.running else "as planned, not yet made there"
    lines = [
        f"Written by Boxwright for {release.name} on {release.host}:",
        f"release {release.container.release}, {state}. The cards and the port have room for one of them:",
        f"before this serves there, systemctl disable --now {release.container.name}.service",
        *steps,
    ]
    return "".join(f"# {line}".rstrip() + "\n" for line in lines)


def documents(*values: Mapping[str, Any]) -> str:
    """Values as YAML documents, in the order given, long texts as they are."""
    return "---\n".join(
        yaml.dump(
            value, Dumper=_Dumper, sort_keys=False, default_flow_style=False, width=110, allow_unicode=True
        )
        for value in values
    )


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as blocks, and every list within its key."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> Any:
        """Lists are indented as people do."""
        return super().increase_indent(flow, False)

    def ignore_aliases(self, data: Any) -> bool:
        """What is said twice is written twice: not every reader knows aliases."""
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)
