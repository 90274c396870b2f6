"""The decode model fitted to the measured tables, on all rows or with a rig left out.

Run `python -m tests.unit.planner.speed_fit` for the coefficients that boxwright/planner/decode.py holds.
"""

from __future__ import annotations

import csv
import math
from dataclasses import replace
from pathlib import Path

from boxwright.planner.decode import FITTED, Coefficients, Step

MEASURED = Path(__file__).parent / "measured"
BANDWIDTH = {"3090": 936e9, "4090": 1008e9, "5090": 1792e9, "PRO6000": 1792e9, "V100": 900e9}
#: Bytes of KV a token of Qwen3.8-27B over all cards.
KV = {"fp8fi": 32_768, "bf16fa2": 65_536, "none": 65_536}
LAYERS, ATTENTION = 64, 16
PLAIN = ("decode_measured.csv",)
#: The second is the first with both prose and code, and with more rigs.
DRAFTED = ("decode_speculative_measured.csv", "decode_speculative_public.csv")
LONG = ("decode_speculative_context.csv",)


def rows(names):
    """The rows of the files."""
    found = []
    for name in names:
        with (MEASURED / name).open() as stream:
            found += list(csv.DictReader(stream))
    return found


def rig(row):
    """Who measured on which cards: what is left out together."""
    return row["source"].split()[0], row["gpu"], row["tensor_parallel"]


def rate(row):
    return float(row["decode_tokens_per_s"])


def step(row):
    """The step that a row measured."""
    ranks, context = int(row["tensor_parallel"]), int(row["context_tokens"])
    return Step(
        weights=float(row["streamed_weight_bytes"]) / ranks,
        bandwidth=BANDWIDTH[row["gpu"]],
        layers=LAYERS,
        ranks=ranks,
        cards=ranks,
        cache=KV[row["kv"]] * context / ranks,
        attention=ATTENTION,
        unsplit=context if row["kv"] == "bf16fa2" else 0,
        drafts=int(row.get("draft_tokens") or 0),
        passes=int(row.get("draft_passes") or 0),
        draft_bytes=float(row.get("draft_bytes_per_pass") or 0) / ranks,
    )


#: What a term is taken for where no row tells of it: a cache read at the whole bandwidth, else nothing.
UNTOLD = (1.0, 0.0, 0.0, 1.0, 0.0)


def fit_plain(measured) -> Coefficients:
    """Least squares of the relative error over the terms of a step without drafts; none below nothing."""
    lines = [[term * rate(row) for term in step(row).terms()] for row in measured]
    solution = list(UNTOLD)
    # 1 % of a step is less than rows differ by for other reasons.
    active = [place for place in range(5) if max(line[place] for line in lines) > _LEAST[place]]
    while active:
        found = _solve(lines, active, solution)
        worst = min(active, key=lambda place: found[place])
        if found[worst] >= 0:
            solution = found
            break
        active.remove(worst)
        solution[worst] = 0.0
    read, launch, reduce, cache, unsplit = solution
    return replace(FITTED, read=read, launch=launch, reduce=reduce, cache=cache, unsplit=unsplit)


#: The least that a term must make of a step, at its fitted value, to be told by it.
_LEAST = tuple(
    0.01 / value for value in (FITTED.read, FITTED.launch, FITTED.reduce, FITTED.cache, FITTED.unsplit)
)


def fit_drafted(measured, base: Coefficients) -> Coefficients:
    """What each draft pass costs on several cards, the rest and the accepted share being given."""
    top = bottom = 0.0
    for row in measured:
        one = step(row)
        if one.cards == 1:
            continue
        whole = one.tokens(base) / rate(row)
        rest = one.seconds(replace(base, draft_pass=0.0))
        share = one.passes / whole
        top += share * (whole - rest) / whole
        bottom += share * share
    return replace(base, draft_pass=max(0.0, top / bottom) if bottom else base.draft_pass)


def left_out(measured, fit):
    """(row, coefficients of a fit without its rig), for every row."""
    for group in sorted({rig(row) for row in measured}):
        found = fit([row for row in measured if rig(row) != group])
        yield from ((row, found) for row in measured if rig(row) == group)


def errors(pairs):
    """Logarithms of measured over expected."""
    return [math.log(rate(row) / step(row).rate(by)) for row, by in pairs]


def _solve(lines, active, given):
    """Least squares of lines x solution = 1 over the active columns, by the normal equations."""
    rest = [
        1 - sum(line[place] * given[place] for place in range(5) if place not in active) for line in lines
    ]
    matrix = [
        [sum(line[one] * line[other] for line in lines) for other in active]
        + [sum(line[one] * left for line, left in zip(lines, rest, strict=True))]
        for one in active
    ]
    for place in range(len(active)):
        pivot = max(range(place, len(active)), key=lambda row: abs(matrix[row][place]))
        matrix[place], matrix[pivot] = matrix[pivot], matrix[place]
        for row in range(len(active)):
            if row != place:
                factor = matrix[row][place] / matrix[place][place]
                matrix[row] = [a - factor * b for a, b in zip(matrix[row], matrix[place], strict=True)]
    solution = list(given)
    for place, column in enumerate(active):
        solution[column] = matrix[place][-1] / matrix[place][place]
    return solution


if __name__ == "__main__":
    print(fit_drafted(rows(DRAFTED), fit_plain(rows(PLAIN))))
