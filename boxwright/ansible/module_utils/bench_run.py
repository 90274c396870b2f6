"""One run of the benchmark: every repeat of every point, and what engine and cards did meanwhile."""

from __future__ import annotations

import os
import time
from typing import Any, Callable, Dict, List, Optional, Sequence

from ansible.module_utils import bench_client, card_samples, diagnosis_reading, nvidia_smi
from ansible.module_utils.bench_client import Client, ClientError
from ansible.module_utils.bench_points import DATASET, READY_OPTION, Point, argv, dataset
from ansible.module_utils.command import run
from ansible.module_utils.engine_container import PORT
from ansible.module_utils.engine_probe import endpoint_of
from ansible.module_utils.engine_store import Release

#: Version of a kept run.
FORMAT = 1
#: Counters of the engine that are told as what was added while a repeat ran.
COUNTED = {
    "prompt_tokens": ("vllm:prompt_tokens_total",),
    "generation_tokens": ("vllm:generation_tokens_total",),
    "cache_queries": ("vllm:prefix_cache_queries_total", "vllm:gpu_prefix_cache_queries_total"),
    "cache_hits": ("vllm:prefix_cache_hits_total", "vllm:gpu_prefix_cache_hits_total"),
    "drafts": ("vllm:spec_decode_num_drafts_total",),
    "drafted": ("vllm:spec_decode_num_draft_tokens_total",),
    "accepted": ("vllm:spec_decode_num_accepted_tokens_total",),
    "preemptions": ("vllm:num_preemptions_total",),
}
BUSY = ("vllm:num_requests_running", "vllm:num_requests_waiting")
CARD_FACTS = (
    "index",
    "uuid",
    "name",
    "driver_version",
    "memory.total",
    "power.limit",
    "clocks.max.graphics",
    "clocks.max.memory",
    "pcie.link.width.current",
)
#: Least seconds that one repeat gets, however little of the time is left.
SHORTEST_S = 60


def totals(text: str) -> Dict[str, float]:
    """Prometheus text: name -> the sum over its labels."""
    found: Dict[str, float] = {}
    for line in text.splitlines():
        name, _, value = line.rpartition(" ")
        try:
            number = float(value)
        except ValueError:
            continue
        name = name.partition("{")[0]
        if number == number and abs(number) != float("inf"):
            found[name] = found.get(name, 0.0) + number
    return found


def counted(before: Dict[str, float], after: Dict[str, float]) -> Dict[str, Optional[float]]:
    """What the engine's counters rose by; None for those that it does not have."""
    found: Dict[str, Optional[float]] = {}
    for word, names in COUNTED.items():
        name = next((one for one in names if one in after), None)
        found[word] = None if name is None else after[name] - before.get(name, 0.0)
    return found


class Bench:
    """The benchmark of a release that serves."""

    def __init__(
        self,
        release: Release,
        client: Client,
        prompts: Sequence[str],
        output: int,
        tell: Callable[[str, int, int], None],
    ) -> None:
        self._release, self._client, self._prompts, self._output = release, client, prompts, output
        self._tell = tell
        self._endpoint = endpoint_of(release.state)
        self._ready = True

    def busy(self) -> Optional[int]:
        """How many requests of others the engine has in hand; None where it does not tell."""
        values = totals(diagnosis_reading.counters(self._endpoint))
        known = [int(values[name]) for name in BUSY if name in values]
        return sum(known) if known else None

    def measure(self, points: Sequence[Point], repeats: int, limit_s: float) -> Dict[str, Any]:
        """Every point once, then every point again, so that a box that warms up does so for all of them.

        A repeat for which the time will not do is left out, and told.
        """
        began = time.monotonic()
        found = [dict(point._asdict(), requests=point.requests, repeats=[], failed=None) for point in points]
        left_out: List[Dict[str, Any]] = []
        took: Dict[Point, float] = {}
        total, done = repeats * len(points), 0
        for repeat in range(repeats):
            for point, entry in zip(points, found):  # noqa: B905
                done += 1
                rest = limit_s - (time.monotonic() - began)
                if done > 1 and rest < took.get(point, min(took.values()) if took else 0):
                    left_out.append({"point": point._asdict(), "repeat": repeat + 1})
                    continue
                if entry["failed"]:
                    continue
                self._tell("%s, repeat %d" % (point.title, repeat + 1), done - 1, total)
                started = time.monotonic()
                try:
                    entry["repeats"].append(self._once(point, max(SHORTEST_S, int(rest))))
                except ClientError as error:
                    entry["failed"] = str(error)
                took[point] = time.monotonic() - started
        return {"points": found, "left_out": left_out, "seconds": round(time.monotonic() - began, 1)}

    def _once(self, point: Point, limit_s: int) -> Dict[str, Any]:
        # Never the same twice: the engine would have the prompts of another repeat in its prefix cache.
        nonce = os.urandom(4)
        if not point.context:
            self._client.put(DATASET, dataset(self._prompts, point, nonce.hex()))
        seed = int.from_bytes(nonce, "big") >> 1
        before = totals(diagnosis_reading.counters(self._endpoint))
        with card_samples.Sampler(self._release.state["devices"]) as sampler:
            result = self._benchmark(point, seed, limit_s)
            ended = time.monotonic()
        if not result.get("completed"):
            why = "; ".join(bench_client.kept(result).get("errors") or ["it does not say why"])
            raise ClientError("no request was answered: %s" % why)
        after = totals(diagnosis_reading.counters(self._endpoint))
        start, end = bench_client.span(result, ended)
        return {
            "seed": seed,
            "engine": bench_client.kept(result),
            "counted": counted(before, after),
            "cards": card_samples.summary(sampler.samples, start, end),
        }

    def _benchmark(self, point: Point, seed: int, limit_s: int) -> Dict[str, Any]:
        state = self._release.state
        served = self._release.plan.get("served_name") or state["name"]
        while True:
            words = argv(state, served, PORT, point, self._output, seed, self._ready)
            try:
                found: Dict[str, Any] = self._client.measure(words, limit_s)
                return found
            except ClientError as error:
                if error.unknown != READY_OPTION or not self._ready:
                    raise
                self._ready = False


def facts(devices: Sequence[str]) -> Dict[str, Any]:
    """What of the host makes a speed the one it is: kernel, and the release's cards as they are set."""
    words = ["nvidia-smi", "--query-gpu=" + ",".join(CARD_FACTS), "--format=csv,noheader"]
    done = run(words, timeout=card_samples.TIMEOUT_S) if devices else None
    rows = nvidia_smi.query(done.stdout, done.stderr, CARD_FACTS).rows if done else []
    system = os.uname()
    return {
        "host": system.nodename,
        "kernel": system.release,
        "machine": system.machine,
        "processors": os.cpu_count(),
        "cards": [row for row in rows if row["uuid"] in set(devices)],
    }
