"""One INT4 checkpoint on a host: looked for, made, checked, put in its place."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import signal
import time
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from ansible.module_utils import (
    awq_checkpoint,
    checkpoint,
    command,
    compressed_checkpoint,
    store_manifest,
    store_room,
    worker,
)
from ansible.module_utils.awq_checkpoint import Estimate
from ansible.module_utils.checkpoint import Tensor
from ansible.module_utils.progress import Progress

#: Bytes that Python and torch take beside the model and what its calibration keeps.
TOOLS_BYTES = 2_000_000_000
#: What each method makes: its objections, sizes, flaws.
FORMS: Dict[str, Any] = {"autoawq": awq_checkpoint, "llmcompressor": compressed_checkpoint}
#: States of a token, as wide as the model, that a layer's calibration keeps at a time.
CALIBRATION_STATES = 6
THERE, ABSENT = "there", "absent"
#: The file of the program that is started.
PROGRAM = "quantize.py"


class QuantizeError(Exception):
    """A checkpoint that cannot be made; the text says which, why and what to do."""


class Tool(NamedTuple):
    """One method's quantizer: its requirement, and the values of model_type that it knows."""

    requirement: str
    architectures: List[str]


class Settings(NamedTuple):
    """What is the same for all checkpoints of a host; as in the module quantized_model."""

    store: str
    calibration: str
    blocks: int
    block_tokens: int
    worse_percent: int
    device: str
    reserve: int
    timeout_s: int


class Checkpoint:
    """One checkpoint to have, from the plan: method, bits, group_size, source (weights), directory.

    calibration: its own text, none for that of all.
    """

    def __init__(self, settings: Settings, tools: Dict[str, Tool], wanted: Dict[str, Any]) -> None:
        self.settings, self.method = settings, wanted["method"]
        if self.method not in FORMS or self.method not in tools:
            raise QuantizeError(
                "%s is no way to quantize; there are %s" % (self.method, ", ".join(sorted(FORMS)))
            )
        self.form, self.tool = FORMS[self.method], tools[self.method]
        self.bits, self.group_size = int(wanted["bits"]), int(wanted["group_size"])
        self.weights = wanted["source"]
        self.calibration = str(wanted.get("calibration") or settings.calibration)
        self.source = os.path.normpath(self.weights["directory"])
        self.directory = os.path.normpath(wanted["directory"])
        if not self.directory.startswith(os.path.normpath(settings.store) + os.sep):
            raise QuantizeError("%s lies outside the store %s" % (self.directory, settings.store))
        self.name = self.weights.get("repo") or self.source
        relative = os.path.relpath(self.directory, settings.store)
        self.staging = os.path.join(settings.store, ".staging", relative.replace(os.sep, "--"))
        self.output = os.path.join(self.staging, "output")

    # Looking

    def recipe(self) -> Dict[str, Any]:
        """What the result depends on by choice: two results of one recipe are the same thing."""
        hub = self.weights.get("kind") == "hub"
        return {
            "source": {key: self.weights[key] for key in ("repo", "revision")}
            if hub
            else {"path": self.source},
            "method": self.method,
            "bits": self.bits,
            "group_size": self.group_size,
            **self.form.RECIPE,
            "tool": self.tool.requirement,
            "calibration_sha256": hashlib.sha256(self.calibration.encode("utf-8")).hexdigest(),
            "blocks": self.settings.blocks,
            "block_tokens": self.settings.block_tokens,
        }

    def state(self) -> str:
        """THERE, ABSENT, or what is flawed. Raises QuantizeError for one that was made by another recipe."""
        manifest = store_manifest.load(self.directory)
        if manifest is None:
            return ABSENT
        made = (manifest.recipe or {}).get("recipe", {})
        differing = [
            "%s: %s, now %s" % (name, made.get(name), value)
            for name, value in sorted(self.recipe().items())
            if made.get(name) != value
        ]
        if differing:
            raise QuantizeError(
                "%s was made otherwise than is declared now (%s), and a finished checkpoint is not replaced "
                "under an "
                "engine. Either set that back, or stop the deployment and remove the directory"
                % (self.directory, "; ".join(differing))
            )
        flaws = store_manifest.inspect(self.directory, manifest.files).flaws
        return ", ".join("%s (%s)" % flaw for flaw in flaws) if flaws else THERE

    def look_at_source(self) -> Tuple[Dict[str, Tensor], Estimate]:
        """The source's tensors and the sizes that follow. Raises QuantizeError if it cannot be quantized."""
        try:
            config = checkpoint.config(self.source)
            refused = awq_checkpoint.objection(
                config,
                self.form.widths(config),
                self.group_size,
                self.tool.architectures,
                self.tool.requirement,
            )
            if refused:
                raise QuantizeError("%s cannot be quantized: %s" % (self.name, refused))
            tensors = checkpoint.tensors(self.source)
        except checkpoint.CheckpointError as error:
            raise QuantizeError(
                "%s cannot be quantized: %s. Bring its weights first (role model_weights)"
                % (self.name, error)
            ) from error
        estimate = self.form.estimate(tensors, self.bits, self.group_size)
        return tensors, estimate._replace(calibration=self._calibration_bytes(config))

    def _calibration_bytes(self, config: Dict[str, Any]) -> int:
        """Bytes that a layer's calibration keeps: what goes in and out of its parts, for every token."""
        sides = self.form.widths(config)
        wide = max(sides.get(name, 0) for name in ("intermediate_size", "moe_intermediate_size"))
        a_token: int = 2 * (CALIBRATION_STATES * sides.get("hidden_size", 0) + wide)
        return a_token * self.settings.blocks * self.settings.block_tokens

    def check_resources(self, estimate: Estimate) -> None:
        """Raise QuantizeError when disk or memory do not suffice."""
        need = store_room.Need(self.settings.store, estimate.result, "the INT4 checkpoint of %s" % self.name)
        short = store_room.shortage([need], self.settings.reserve)
        if short:
            raise QuantizeError(short)
        needed, there = memory_needed(estimate), available_memory()
        if there is not None and needed > there:
            raise QuantizeError(
                "quantizing %s needs about %s of memory, and the host has %s available with its swap. Stop "
                "what "
                "uses it, add swap, or declare a published INT4 checkpoint"
                % (self.name, store_room.human(needed), store_room.human(there))
            )

    # Making

    def quantize(
        self, environment: str, program: Dict[str, str], estimate: Estimate, progress: Progress
    ) -> Dict[str, Any]:
        """Run the quantizing program into `output`; what it told. Raises QuantizeError.

        environment: directory of the tools' Python environment; program: text of each of its files.
        """
        shutil.rmtree(self.staging, ignore_errors=True)
        os.makedirs(self.staging, mode=0o755)
        folder = os.path.join(environment, "quantize")
        os.makedirs(folder, mode=0o755, exist_ok=True)
        for name, text in program.items():
            command.ensure(os.path.join(folder, os.path.basename(name)), text)
        order = os.path.join(self.staging, "job.json")
        command.write(order, json.dumps(self._job(estimate)))
        command.write(os.path.join(self.staging, "calibration.txt"), self.calibration)
        told: Dict[str, Any] = {}
        stage, until = "", time.monotonic() + self.settings.timeout_s
        python = os.path.join(environment, "bin", "python")
        argv = [python, "-I", os.path.join(folder, PROGRAM), order]
        with worker.Worker(argv, self._environment()) as quantizer:
            for event in quantizer.events():
                if time.monotonic() > until:
                    raise QuantizeError(
                        "%s was not quantized within %d s; see model_quantize_timeout_s"
                        % (self.name, self.settings.timeout_s)
                    )
                if event is None:
                    continue
                kind = event.pop("event")
                if kind == "error":
                    quantizer.end()
                    raise QuantizeError(self._trouble(event, estimate, quantizer.complaint))
                told.update(event)
                if kind == "stage":
                    stage = "%s: %s" % (self.name, event["stage"])
                    progress.update(stage)
                elif kind == "layers":
                    progress.update(stage, event["done"], event["total"], "layers")
            status = quantizer.end()
            if status != 0 or not {"peak_bytes", "perplexity"} <= set(told):
                event = {
                    "kind": "memory" if status == -9 else "",
                    "detail": _ended(status),
                }
                # What it said before a signal is no reason for it.
                complaint = quantizer.complaint if status >= 0 else ""
                raise QuantizeError(self._trouble(event, estimate, complaint))
        return told

    def check(self, source: Dict[str, Tensor]) -> None:
        """Raise QuantizeError when `output` is not what an engine can load."""
        try:
            result, config = checkpoint.tensors(self.output), checkpoint.config(self.output)
        except checkpoint.CheckpointError as error:
            raise QuantizeError("the INT4 checkpoint of %s is broken: %s" % (self.name, error)) from error
        flaws = self.form.flaws(source, result, config, self.bits, self.group_size)
        if flaws:
            raise QuantizeError(
                "the INT4 checkpoint of %s is not right: %s" % (self.name, "; ".join(flaws[:5]))
            )

    def check_perplexity(self, told: Dict[str, Any]) -> Dict[str, float]:
        """The perplexities of source and result.

        Raises QuantizeError when the result predicts the held-out text worse than is allowed.
        """
        was, became = float(told["perplexity_source"]), float(told["perplexity"])
        # Written so that a result that is no number fails.
        if not became <= was * (1 + self.settings.worse_percent / 100):
            raise QuantizeError(
                "the INT4 checkpoint of %s predicts a text that it was not calibrated with worse than its "
                "source (perplexity %.4g, was %.4g), by more than the %d %% of "
                "model_quantize_worse_percent; it is not kept. Either calibrate with more text like what the "
                "model will read, or set a smaller group_size, or allow more"
                % (self.name, became, was, self.settings.worse_percent)
            )
        return {"source": was, "result": became, "tokens": told["held_out_tokens"]}

    def publish(self, record: Dict[str, Any]) -> int:
        """Write the manifest and rename the whole into the store; its bytes. record: how it was made."""
        entries = []
        for name in sorted(os.listdir(self.output)):
            path = os.path.join(self.output, name)
            os.chmod(path, 0o644)
            with open(path, "rb+") as stream:
                os.fsync(stream.fileno())
            digest = store_manifest.sha256_of(path)
            entries.append(store_manifest.entry_of(self.output, name, digest, "sha256"))
        os.chmod(self.output, 0o755)
        revision = os.path.basename(self.directory)
        manifest = store_manifest.Manifest("quantized", self.name, revision, entries, record)
        store_manifest.save(self.output, manifest)
        # Only a flawed one, or one without a manifest, can be in the way.
        shutil.rmtree(self.directory, ignore_errors=True)
        os.makedirs(os.path.dirname(self.directory), mode=0o755, exist_ok=True)
        os.rename(self.output, self.directory)
        shutil.rmtree(self.staging, ignore_errors=True)
        return sum(entry.size for entry in entries)

    def _job(self, estimate: Estimate) -> Dict[str, Any]:
        return {
            "method": self.method,
            "kept": self.form.RECIPE.get("kept", []),
            "source": self.source,
            "output": self.output,
            "view": os.path.join(self.staging, "view"),
            "calibration": os.path.join(self.staging, "calibration.txt"),
            "bits": self.bits,
            "group_size": self.group_size,
            "blocks": self.settings.blocks,
            "block_tokens": self.settings.block_tokens,
            "device": self.settings.device,
            "layer_bytes": estimate.layer,
        }

    def _environment(self) -> Dict[str, str]:
        environment: Dict[str, str] = worker.environment(
            HF_HOME=os.path.join(self.staging, "home"),
            HF_HUB_OFFLINE="1",
            HF_HUB_DISABLE_TELEMETRY="1",
            TRANSFORMERS_OFFLINE="1",
            HF_DATASETS_OFFLINE="1",
            TOKENIZERS_PARALLELISM="false",
        )
        return environment

    def _trouble(self, event: Dict[str, Any], estimate: Estimate, complaint: str) -> str:
        """The message for a quantization that failed."""
        kind, detail = event.get("kind"), event.get("detail")
        if kind == "memory":
            return (
                "quantizing %s ran out of memory: it needs about %s. Stop what else runs on the host, add "
                "swap, or "
                "declare a published INT4 checkpoint" % (self.name, store_room.human(memory_needed(estimate)))
            )
        if kind == "card-memory":
            return (
                "quantizing %s ran out of the card's memory (%s). Either stop the deployment that uses the "
                "card, or "
                "set model_quantize_device: cpu" % (self.name, detail)
            )
        if kind == "no-card":
            return (
                "%s cannot be quantized on a card: %s. Set model_quantize_device: auto, or see "
                "model_quantize_torch: the torch build must know the card" % (self.name, detail)
            )
        if kind in ("unsupported", "calibration"):
            return "%s cannot be quantized: %s" % (self.name, detail)
        # Only the last line of a traceback says what happened.
        lines = [
            line for line in complaint.splitlines() if line.strip() and not re.match(r"\s|Traceback", line)
        ]
        last = lines[-1][:400] if lines else ""
        return "quantizing %s failed: %s%s" % (
            self.name,
            detail,
            "; " + last if last not in str(detail) else "",
        )


def memory_needed(estimate: Estimate) -> int:
    """Bytes of main memory that quantizing takes."""
    needed: int = estimate.loaded + estimate.calibration + TOOLS_BYTES
    return needed


def available_memory() -> Optional[int]:
    """Bytes of memory and swap that a new process can have; None where the kernel does not say."""
    text = command.read("/proc/meminfo") or ""
    found = re.findall(r"^(?:MemAvailable|SwapFree):\s+(\d+) kB", text, re.MULTILINE)
    return sum(int(number) for number in found) * 1024 if found else None


def _ended(status: int) -> str:
    """How a program ended. status: as subprocess has it, negative for a signal."""
    if status >= 0:
        return "it ended with status %d" % status
    names = {int(one): one.name for one in signal.Signals}
    return "a signal ended it (%s)" % names.get(-status, str(-status))
