"""All that a box's monitoring is, from its declaration: what the module monitoring_files is told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from boxwright.monitoring import exporter, scrape, server

#: Nothing of a part is left where it is not declared.
_OF_EXPORTERS = (
    exporter.DROP_IN,
    exporter.SERVICE_FILE,
    exporter.TIMER_FILE,
    exporter.OUTPUT,
    *(f"{exporter.DIRECTORY}/{name}" for name in exporter.parts()),
)
_OF_SERVER = (server.DROP_IN, server.CONFIG, server.RULES, server.PASSWORD, *server.TARGETS.values())


@dataclass(frozen=True)
class Declared:
    """What a box declares. bind: of its node exporter. server: None where it has no Prometheus."""

    exporters: bool
    bind: str
    allow_from: Sequence[str]
    config_dir: str
    server: server.Settings | None


def declared(values: Mapping[str, Any]) -> Declared:
    """The declaration among a box's variables, the role's defaults with them."""

    def own(name: str) -> Any:
        return values[f"monitoring_{name}"]

    return Declared(
        exporters=own("exporters"),
        bind=own("bind"),
        allow_from=values.get("box_allow_from") or (),
        config_dir=values.get("box_config_dir") or "/etc/boxwright",
        server=server.Settings(
            bind=own("server_bind"),
            interval_s=own("interval_s"),
            retention_days=own("retention_days"),
            retention_gb=own("retention_gb"),
            alertmanagers=own("alertmanagers"),
            remote_write=own("remote_write") or {},
        )
        if own("server")
        else None,
    )


def kept(one: Declared, targets: Sequence[scrape.Target]) -> dict[str, Any]:
    """The files, and what is not meant any more."""
    files: dict[str, str] = {}
    secrets: dict[str, str] = {}
    if one.exporters:
        files |= exporter.files(one.bind, one.allow_from, one.config_dir)
    if one.server:
        files |= server.files(one.server, targets)
        secrets = server.secret_files(one.server)
    every = (*_OF_EXPORTERS, *_OF_SERVER)
    meant = {*files, *secrets, *((exporter.OUTPUT,) if one.exporters else ())}
    return {
        "files": files,
        "secrets": secrets,
        "gone": [path for path in every if path not in meant],
        "ended": [
            *([] if one.exporters else [_ours(exporter.TIMER, exporter.TIMER_FILE)]),
            *([] if one.exporters else [_ours(exporter.NODE_UNIT, exporter.DROP_IN)]),
            *([] if one.server else [_ours(server.UNIT, server.DROP_IN)]),
        ],
        "check": list(server.CHECK) if one.server else [],
    }


def _ours(unit: str, mark: str) -> dict[str, str]:
    """A unit of the distribution's is ours to end only where a file of ours is with it."""
    return {"name": unit, "mark": mark}


def units(one: Declared) -> list[dict[str, Any]]:
    """The units that run, with the files that each reads when it starts."""
    found: list[dict[str, Any]] = []
    if one.exporters:
        found.append({"name": exporter.TIMER, "files": [exporter.TIMER_FILE]})
        found.append({"name": exporter.NODE_UNIT, "files": [exporter.DROP_IN]})
    if one.server:
        # What it discovers is read again whenever it changes.
        read = [server.DROP_IN, server.CONFIG, server.RULES]
        found.append({"name": server.UNIT, "files": [*read, *server.secret_files(one.server)]})
    return found


def asked(one: Declared, targets: Sequence[scrape.Target]) -> dict[str, Any]:
    """What is to be asked to see that it works."""
    found: dict[str, Any] = {}
    if one.exporters:
        found["exporter"] = {"host": scrape.local(one.bind), "port": scrape.NODE_PORT}
    if one.server:
        expected = [[target.job, target.where] for target in targets]
        found["server"] = {"host": one.server.local, "port": server.PORT, "expected": expected}
    return found
