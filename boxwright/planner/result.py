"""The plan as a value, and as the JSON that roles and programs read. Its keys are stable."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from boxwright.catalog.purpose import EMBEDDINGS, RERANKING, TEXT
from boxwright.facts.model import HostFacts
from boxwright.planner import figures, visits
from boxwright.planner.case import Case
from boxwright.planner.changes import Change, runtime
from boxwright.planner.finding import Finding
from boxwright.planner.model_source import ModelSource, quantized_directory, store_directory
from boxwright.planner.quantizer import Needs
from boxwright.spec import flat
from boxwright.spec.box import Box

#: Seconds and tokens that a gate's question may take: a model that thinks first needs more of both.
GATE_TIMEOUT_S, GATE_TOKENS, GATE_TOKENS_THINKING = 300, 64, 2048
GATE_PROMPT = "Say hello."
#: What a deployment is asked that answers otherwise than in words.
PROMPTS = {EMBEDDINGS: "The cat sleeps on the sofa.", RERANKING: "What is the capital of France?"}


@dataclass(frozen=True)
class HostPlan:
    """A box's plan. It will work when there are no gates. changes: None where the host was not asked.

    full: whether every role is to be visited, whatever its receipt says. serves: whether it is a box of
    models at all; one that is a gateway alone needs neither a driver nor what follows it.
    """

    host: str
    facts: HostFacts
    cases: tuple[Case, ...]
    gates: tuple[Finding, ...]
    advice: tuple[Finding, ...]
    changes: tuple[Change, ...] | None
    full: bool = False
    serves: bool = True

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "host": self.host,
            "facts": self.facts.to_json(),
            "deployments": [deployment(case) for case in self.cases],
            "gates": [_finding(found) for found in self.gates],
            "advice": [_finding(found) for found in self.advice],
            "changes": None if self.changes is None else [change.to_json() for change in self.changes],
            "visits": visits.visits(self.facts, self.changes, full=self.full)
            if self.serves or self.changes is None
            else {},
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
        "serves": case.settings.serves,
        "image": declared.image,
        "declared": _declared(case),
        "release": case.settings.release,
        "runtime": case.engine.runtime(),
        "user": case.image.user,
        "weights": weights,
        "quantize": quantize,
        "drafter": _drafter(case),
        "model_directory": quantize["directory"] if quantize else weights["directory"],
        "served_name": declared.name,
        "port": declared.port,
        "bind": declared.bind,
        "open_paths": list(declared.open_paths),
        "outgoing": declared.outgoing,
        "selinux": runtime.confines(case.host),
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


def _declared(case: Case) -> dict[str, Any] | None:
    """The declaration, for who compares releases; none of one that is refused, which may hold a secret."""
    if any(problem.sure for problem in case.command.problems):
        return None
    return flat.written(case.declared)


def _drafter(case: Case) -> dict[str, Any] | None:
    """The draft model's files. native: its class is the engine's own, whatever code its config.json names."""
    if case.draft_model is None:
        return None
    known = case.drafter is not None and bool(case.drafter.since)
    return {**_files(case.draft_model, case.host.box), "native": known}


def _weights(case: Case) -> dict[str, Any]:
    return _files(case.model, case.host.box)


def _files(model: ModelSource, box: Box) -> dict[str, Any]:
    if model.path:
        return {
            "kind": "path",
            "repo": None,
            "revision": None,
            "hub": None,
            "endpoint": None,
            "directory": model.path,
            "bytes": model.weight_bytes,
            "parts": _parts(model),
            "files": [asdict(file) for file in model.files],
        }
    unresolved = store_directory(box, model.repo, "unresolved") if model.repo else None
    return {
        "kind": "hub",
        "repo": model.repo,
        "revision": model.revision,
        "hub": box.hub.kind,
        "endpoint": box.hub.address,
        "directory": model.directory or unresolved,
        "bytes": model.weight_bytes,
        "parts": _parts(model),
        "files": [asdict(file) for file in model.files],
    }


def _parts(model: ModelSource) -> dict[str, int] | None:
    """Bytes of the weights by kind, as the headers of the files have them; None where they were not read."""
    if not model.embedding_bytes:
        return None
    parts = {
        "embeddings": model.embedding_bytes,
        "vision": model.vision_bytes,
        "draft_layer": model.mtp_bytes,
    }
    return {**parts, "layers": max(0, (model.weight_bytes or 0) - sum(parts.values()))}


def _quantize(case: Case, weights: Mapping[str, Any]) -> dict[str, Any] | None:
    wanted = case.deployment.quantize
    if wanted is None or weights["directory"] is None:
        return None
    directory = quantized_directory(weights["directory"], wanted)
    return {
        "method": wanted.method,
        "bits": wanted.bits,
        "group_size": wanted.group_size,
        "calibration": wanted.calibration,
        "source": dict(weights),
        "directory": directory,
        "needs": _needs(case.quantizing),
    }


def _needs(needs: Needs | None) -> dict[str, Any] | None:
    """What quantizing takes: bytes, and seconds from and to; None of what is made, or where it is unknown."""
    if needs is None:
        return None
    times = {"card": needs.card, "processor": needs.processor}
    return {
        "memory_bytes": needs.memory,
        "disk_bytes": needs.disk,
        "seconds": {name: [round(one) for one in time] if time else None for name, time in times.items()},
    }


def _has(case: Case, option: str) -> bool:
    return any(word.partition("=")[0] == option for word in case.command.argv)


def _gate(case: Case) -> dict[str, Any]:
    declared, entry, serves = case.deployment, case.model.entry, case.settings.serves
    if serves != TEXT:
        return {
            "serves": serves,
            "prompt": PROMPTS[serves],
            "expect": None,
            "timeout_s": GATE_TIMEOUT_S,
            "tools": False,
            "reasoning": False,
            "guarded": case.engine.guard_option is not None,
        }
    prompt = declared.gate_prompt or (entry.gate_prompt if entry else GATE_PROMPT)
    expect = declared.gate_expect or (entry.gate_expect if entry and not declared.gate_prompt else None)
    thinks = entry is not None and entry.reasoning_parser is not None
    return {
        "serves": serves,
        "prompt": prompt,
        "expect": expect,
        "timeout_s": GATE_TIMEOUT_S,
        "max_tokens": GATE_TOKENS_THINKING if thinks else GATE_TOKENS,
        "tools": _has(case, "--tool-call-parser"),
        "reasoning": _has(case, "--reasoning-parser"),
        "guarded": case.engine.guard_option is not None,
    }
