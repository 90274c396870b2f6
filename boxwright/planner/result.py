"""The plan as a value, and as the JSON that roles and programs read. Its keys are stable."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from boxwright.facts.model import HostFacts
from boxwright.planner import figures
from boxwright.planner.case import Case
from boxwright.planner.finding import Finding
from boxwright.planner.model_source import quantized_directory, store_directory

#: Seconds and tokens that a gate's question may take: a model that thinks first needs more of both.
GATE_TIMEOUT_S, GATE_TOKENS, GATE_TOKENS_THINKING = 300, 64, 2048
GATE_PROMPT = "Say hello."


@dataclass(frozen=True)
class HostPlan:
    """A box's plan. It will work when there are no gates."""

    host: str
    facts: HostFacts
    cases: tuple[Case, ...]
    gates: tuple[Finding, ...]
    advice: tuple[Finding, ...]
    changes: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "host": self.host,
            "facts": self.facts.to_json(),
            "deployments": [deployment(case) for case in self.cases],
            "gates": [_finding(found) for found in self.gates],
            "advice": [_finding(found) for found in self.advice],
            "changes": list(self.changes),
        }


def _finding(found: Finding) -> dict[str, Any]:
    return {**asdict(found), "fix": list(found.fix)}


def deployment(case: Case) -> dict[str, Any]:
    """One deployment as the roles get it."""
    declared, config = case.deployment, case.host.box
    weights = _weights(case)
    quantize = _quantize(case, weights)
    return {
        "name": declared.name,
        "engine": declared.engine,
        "image": declared.image,
        "release": case.settings.release,
        "weights": weights,
        "quantize": quantize,
        "model_directory": quantize["directory"] if quantize else weights["directory"],
        "served_name": declared.name,
        "port": declared.port,
        "bind": declared.bind,
        "gpus": list(case.indices),
        "devices": [card.card.uuid for card in case.cards if card.card.uuid],
        "api_key_file": f"{config.config_dir}/engines/{declared.name}/api-key",
        "command": list(case.command.argv),
        "env": dict(case.command.env),
        "context": case.context if case.context is not None else declared.context,
        "concurrency": case.settings.concurrency,
        "tensor_parallel": case.settings.tensor_parallel,
        "speculative": {"method": case.settings.draft_method, "tokens": case.settings.draft_tokens}
        if case.settings.draft_method != "none"
        else None,
        "gate": _gate(case),
        "shm_size": "8g" if case.settings.tensor_parallel > 1 else "2g",
        "memory": figures.memory(case),
        "speed": figures.speed(case),
    }


def _weights(case: Case) -> dict[str, Any]:
    model, box = case.model, case.host.box
    if model.path:
        return {
            "kind": "path",
            "repo": None,
            "revision": None,
            "endpoint": None,
            "directory": model.path,
            "bytes": model.weight_bytes,
            "files": [asdict(file) for file in model.files],
        }
    unresolved = store_directory(box, model.repo, "unresolved") if model.repo else None
    return {
        "kind": "hub",
        "repo": model.repo,
        "revision": model.revision,
        "endpoint": box.hub.endpoint,
        "directory": model.directory or unresolved,
        "bytes": model.weight_bytes,
        "files": [asdict(file) for file in model.files],
    }


def _quantize(case: Case, weights: Mapping[str, Any]) -> dict[str, Any] | None:
    wanted = case.deployment.quantize
    if wanted is None or weights["directory"] is None:
        return None
    directory = quantized_directory(weights["directory"], wanted)
    return {
        "method": wanted.method,
        "bits": wanted.bits,
        "group_size": wanted.group_size,
        "source": dict(weights),
        "directory": directory,
    }


def _gate(case: Case) -> dict[str, Any]:
    declared, entry = case.deployment, case.model.entry
    prompt = declared.gate_prompt or (entry.gate_prompt if entry else GATE_PROMPT)
    expect = declared.gate_expect or (entry.gate_expect if entry and not declared.gate_prompt else None)
    thinks = entry is not None and entry.reasoning_parser is not None
    return {
        "prompt": prompt,
        "expect": expect,
        "timeout_s": GATE_TIMEOUT_S,
        "max_tokens": GATE_TOKENS_THINKING if thinks else GATE_TOKENS,
    }
