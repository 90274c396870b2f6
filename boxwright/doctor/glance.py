"""How a box fares at one moment, out of what the module box_status read there."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from boxwright.doctor import readings
from boxwright.doctor.host import state_of

#: Counters of generated tokens, of vLLM and of SGLang; and of tokens that were read.
GENERATED = ("vllm:generation_tokens_total", "sglang:generation_tokens_total")
READ = ("vllm:prompt_tokens_total", "sglang:prompt_tokens_total")
TEXT = "text"


@dataclass(frozen=True)
class CardNow:
    """A card at this moment. Temperature in °C, power in W, clock in MHz, memory in MiB; None: not told."""

    index: int
    name: str | None
    driver: str | None
    temperature: int | None
    power: float | None
    power_limit: float | None
    clock: int | None
    memory_used: int | None
    memory_total: int | None
    utilization: int | None


@dataclass(frozen=True)
class DeploymentNow:
    """A deployment at this moment.

    state: serving, loading, failed, stopped, or drifted: it serves, and not as its current release says.
    what: why it does not, in systemd's words. drift: what of it is not as that release says, in words.
    trial: a run is trying another release in its place. serves: text, embeddings or reranking. model: on its
    hub, or where it lies. context: tokens. tokens_per_s: generated, or read where no text is served, over
    the moment between two readings. kv_usage, acceptance: shares 0 to 1, the latter since the engine's start.
    uptime_s: of the container.
    """

    name: str
    state: str
    what: str
    release: str | None
    image: str | None
    model: str | None
    context: int | None
    running: int | None
    waiting: int | None
    tokens_per_s: float | None
    kv_usage: float | None
    acceptance: float | None
    uptime_s: float | None
    serves: str = TEXT
    drift: tuple[str, ...] = ()
    trial: bool = False


@dataclass(frozen=True)
class Glance:
    """A box. cards_problem: a word of nvidia_smi.outcome where the cards do not all answer.

    drifted: what differs from what the roles' last runs left, in words; None where no run is recorded.
    """

    cards: tuple[CardNow, ...]
    cards_problem: str | None
    deployments: tuple[DeploymentNow, ...]
    drifted: tuple[str, ...] | None

    def to_json(self) -> dict[str, Any]:
        """Plain values by stable keys."""
        return asdict(self)


def glance(raw: Mapping[str, Any]) -> Glance:
    """The box as it was read."""
    smi = _object(raw.get("cards"))
    outcome = str(smi.get("outcome") or "failed")
    rows = smi.get("rows")
    deployments = tuple(_deployment(_object(one), raw.get("now")) for one in _list(raw.get("deployments")))
    return Glance(
        tuple(_card(row) for row in (rows if isinstance(rows, list) else ()) if isinstance(row, dict)),
        None if outcome == "ok" else outcome,
        deployments,
        _drifted(_object(raw.get("receipts")), [word for one in deployments for word in one.drift]),
    )


def _drifted(receipts: Mapping[str, Any], told: list[str]) -> tuple[str, ...] | None:
    """In words; what is declared otherwise is no drift of the box, and is told as such.

    told: what is said of the deployments already, an edited unit among it.
    """
    if not receipts:
        return None
    found: list[str] = []
    for receipt in receipts.values():
        known = _object(receipt)
        found += [
            f"{one.get('subject')} {one.get('now')}"
            for one in map(_object, _list(known.get("drift")))
            if one.get("kind") not in ("beside", "list")
        ]
        found += [
            f"{name} is declared otherwise"
            for name in map(str, _list(known.get("differs")))
            if name != "code"
        ]
    return tuple(dict.fromkeys(one for one in found if one.partition(" ")[0] not in _paths(told)))


def _paths(told: list[str]) -> set[str]:
    return {one.partition(" ")[0] for one in told if one.startswith("/")}


def _card(row: Mapping[str, Any]) -> CardNow:
    def number(name: str) -> float | None:
        found = re.match(r"-?\d+(?:\.\d+)?", str(row.get(name) or ""))
        return readings.finite(found.group(0)) if found else None

    def whole(name: str) -> int | None:
        found = number(name)
        return None if found is None else int(found)

    return CardNow(
        index=whole("index") or 0,
        name=_text(row.get("name")),
        driver=_text(row.get("driver_version")),
        temperature=whole("temperature.gpu"),
        power=number("power.draw"),
        power_limit=number("power.limit"),
        clock=whole("clocks.current.graphics"),
        memory_used=whole("memory.used"),
        memory_total=whole("memory.total"),
        utilization=whole("utilization.gpu"),
    )


def _deployment(one: Mapping[str, Any], now: Any) -> DeploymentNow:
    values, plan = readings.of_deployment(one), _object(one.get("plan"))
    state = state_of(one, values)
    drift = tuple(str(word) for word in _list(one.get("drift")))
    context = plan.get("context")
    serves = _text(plan.get("serves")) or TEXT
    return DeploymentNow(
        name=state.name,
        state="drifted" if drift and state.state == "serving" else state.state,
        what=state.what,
        release=state.release,
        image=_text(plan.get("image")),
        model=_text(plan.get("model")) or _model_of(str(one.get("model_directory") or "")),
        context=context if isinstance(context, int) else None,
        running=values.get("running"),
        waiting=values.get("waiting"),
        tokens_per_s=_rate(one, GENERATED if serves == TEXT else READ),
        kv_usage=values.get("kv_usage"),
        acceptance=values.get("acceptance"),
        uptime_s=_uptime(str(one.get("started") or ""), now) if state.state == "serving" else None,
        serves=serves,
        drift=drift,
        trial=one.get("trial") is True,
    )


def _model_of(directory: str) -> str | None:
    """The model of a directory of the store: `…/org--name/revision`; another directory is told whole."""
    parts = directory.rstrip("/").split("/")
    return parts[-2].replace("--", "/", 1) if len(parts) > 2 and "--" in parts[-2] else directory or None


def _rate(one: Mapping[str, Any], counters: tuple[str, str]) -> float | None:
    """Tokens a second between the two readings of the counters."""
    seconds = readings.finite(one.get("interval_s"))
    before = readings.total(str(one.get("metrics_before") or ""), counters)
    after = readings.total(str(one.get("metrics") or ""), counters)
    if not seconds or before is None or after is None or after < before:
        return None
    return (after - before) / seconds


def _uptime(started: str, now: Any) -> float | None:
    """Seconds since Docker's time of start (`2026-11-30T06:00:00.123456789Z`)."""
    found = re.match(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)", started)
    moment = readings.finite(now)
    if not found or moment is None:
        return None
    try:
        began = datetime.fromisoformat(found.group(1)).replace(tzinfo=UTC).timestamp()
    except ValueError:
        return None
    return max(0.0, moment - began)


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else []


def _text(value: Any) -> str | None:
    return str(value) if value else None
