"""What is written of a release, and what all formats have in common."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from boxwright.ansible.module_utils.engine_container import GUARD_FILE, PORT, Container
from boxwright.ansible.module_utils.engine_guard import CLOSING
from boxwright.texts import printable

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


_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


def checked(container: Container) -> Container:
    """The container, when all of it is what it should be: it may come from a box, and files are named by it.

    Raises ValueError naming what is not.
    """
    box = container
    lists = {"entrypoint": box.entrypoint, "command": box.command, "devices": box.devices}
    texts = {"image": box.image, "bind": box.bind, "shm_size": box.shm_size, "access": box.access}
    texts |= {f"{one.what} of the host": one.source for one in box.mounts}
    numbers = {"port": (box.port, 65535), "stop_timeout_s": (box.stop_timeout_s, 86400)}
    wrong = [
        *(what for what, name in (("name", box.deployment), ("id", box.release)) if not _is_name(name)),
        *(what for what, value in lists.items() if not _are_texts(value)),
        *(what for what, text in texts.items() if not isinstance(text, str) or not text.isprintable()),
        *(what for what, (number, most) in numbers.items() if not _is_number(number, most)),
        *([] if isinstance(box.env, dict) and _are_texts([*box.env, *box.env.values()]) else ["env"]),
    ]
    if box.user is not None and not re.fullmatch(r"[0-9]{1,10}:[0-9]{1,10}", str(box.user)):
        wrong.append("user")
    if wrong:
        raise ValueError(f"not as it should be: {', '.join(wrong)}")
    return box


def _is_name(value: object) -> bool:
    return isinstance(value, str) and bool(_NAME.fullmatch(value))


def _are_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _is_number(value: object, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value <= most


def head(release: Release, steps: Iterable[str]) -> str:
    """The comment above a file: what it is of, and what to do before it is used."""
    state = "which serves there" if release.running else "as planned, not yet made there"
    lines = [
        f"Written by Boxwright for {release.name} on {release.host}:",
        f"release {release.container.release}, {state}. The cards and the port have room for one of them:",
        f"before this serves there, systemctl disable --now {release.container.name}.service",
        *steps,
    ]
    return "".join(f"# {printable(line)}".rstrip() + "\n" for line in lines)


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
