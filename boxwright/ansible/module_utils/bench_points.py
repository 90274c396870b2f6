"""What a benchmark asks of an engine: the points of its two sweeps, and the command line of each."""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Optional, Sequence

#: Real prompts, several at once; and random tokens of one length, one after another.
PROMPTS, CONTEXT = "prompts", "context"
#: Tokens that a chat template or a tokenizer's round trip may add to a prompt of a given length.
MARGIN = 64
FIRST_CONTEXT = 1024
#: Requests of a point: enough for a median, and every place taken twice.
FEWEST_REQUESTS, CONTEXT_REQUESTS = 4, 2
#: In the container's own /tmp, which is in memory.
PLACE = "/tmp/boxwright-bench"
DATASET, RESULT = PLACE + "/prompts.json", PLACE + "/result.json"
#: Newer releases have it, and wait without it on their own; older ones ask a prompt twice (see `argv`).
READY_OPTION = "--ready-check-timeout-sec"


class Point(NamedTuple):
    """One place of a sweep. context: tokens of a random prompt; None: the prompts that came with the tool."""

    kind: str
    concurrency: int
    context: Optional[int] = None

    @property
    def requests(self) -> int:
        """How many requests one repeat sends."""
        return CONTEXT_REQUESTS if self.context else max(FEWEST_REQUESTS, 2 * self.concurrency)

    @property
    def title(self) -> str:
        """For a line of progress."""
        return (
            "%d tokens of context" % self.context
            if self.context
            else "%d request%s at once" % (self.concurrency, "" if self.concurrency == 1 else "s")
        )


class PointError(Exception):
    """What was asked for does not fit the release; the text says which number and what fits."""


def points(
    concurrencies: Sequence[int], contexts: Sequence[int], output: int, context: int, concurrency: int
) -> List[Point]:
    """Both sweeps. Empty lists mean: as far as the release goes, by twos and by fours; [0]: none of it.

    context, concurrency: tokens and sequences that the release was made for. Raises PointError.
    """
    longest = context - output - MARGIN
    for tokens in contexts:
        if tokens > longest:
            raise PointError(
                "a prompt of %d tokens and %d of an answer do not fit the release's context of %d: at most %d"
                % (tokens, output, context, max(0, longest))
            )
    steps = [one for one in concurrencies if one > 0] if concurrencies else _steps(1, 2, concurrency)
    lengths = [one for one in contexts if one > 0] if contexts else _steps(FIRST_CONTEXT, 4, longest)
    return [Point(PROMPTS, one) for one in steps] + [Point(CONTEXT, 1, one) for one in lengths]


def _steps(first: int, factor: int, last: int) -> List[int]:
    """first, first x factor, ..., and last."""
    found = []
    while first < last:
        found.append(first)
        first *= factor
    return [*found, last] if last > 0 else found


def dataset(prompts: Sequence[str], point: Point, nonce: str) -> List[Dict[str, Any]]:
    """The prompts of one repeat, in the form that needs no more than json (ShareGPT's).

    Each begins with what no prompt began with before, so that none of it is in the prefix cache.
    """
    return [
        {
            "conversations": [
                {"from": "human", "value": "[%s-%d] %s" % (nonce, number, prompts[number % len(prompts)])},
                {"from": "gpt", "value": "-"},
            ]
        }
        for number in range(point.requests)
    ]


def argv(
    release: Dict[str, Any], served: str, port: int, point: Point, output: int, seed: int, ready: bool = True
) -> List[str]:
    """The engine's own benchmark for one repeat of a point.

    ready: pass the option that keeps it from asking the first prompt once beforehand, out of the count.
    """
    command = [str(word) for word in release["command"]]
    program = command[0] if command and command[0].rpartition("/")[2] == "vllm" else "vllm"
    found = [program, "bench", "serve", "--host", "127.0.0.1", "--port", str(port), "--model", served]
    found += ["--tokenizer", "/model"]
    found += [word for word in ("--trust-remote-code",) if word in command]
    if point.context:
        found += ["--backend", "openai", "--endpoint", "/v1/completions", "--dataset-name", "random"]
        found += ["--random-input-len", str(point.context), "--random-output-len", str(output)]
    else:
        found += ["--backend", "openai-chat", "--endpoint", "/v1/chat/completions"]
        found += ["--dataset-name", "sharegpt", "--dataset-path", DATASET]
        found += ["--sharegpt-output-len", str(output)]
    found += ["--num-prompts", str(point.requests), "--max-concurrency", str(point.concurrency)]
    found += ["--seed", str(seed), "--ignore-eos", "--temperature", "0", "--disable-tqdm"]
    found += ["--percentile-metrics", "ttft,tpot,itl", "--metric-percentiles", "99"]
    found += ["--save-result", "--save-detailed"]
    found += ["--result-dir", PLACE, "--result-filename", RESULT.rpartition("/")[2]]
    return found + ([READY_OPTION, "0"] if ready else [])
