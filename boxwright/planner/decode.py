"""How long one decoding step takes: a model of few physical terms, fitted to public measurements.

    step = weights and drafts / bandwidth x 1.25          reading, at 0.80 of the bandwidth
         + layers x 42 us                                 launching what a layer runs
         + layers x 2 x (ranks - 1) x 10 us               the two all-reduces of a layer
         + cache / bandwidth x 0.49                       reading the cache, partly hidden behind the rest
         + passes x 2.7 ms, on several cards              the host between draft passes
    tokens a step = 1 + p + p^2 + ... with p = 0.66 for every draft

FLASH_ATTN on cards that are neither SM90 nor SM100 does not split a long 16-bit cache over the card: 4.8 ns a
token and layer instead of the bandwidth, and 61 ns where a step checks drafts.

Fitted by tests/unit/planner/speed_fit.py, relative least squares. Without drafts: 33 rows of 9 rigs, mean
error 4.9 %, and 7.8 % for rigs left out of the fit, 31 of whose 33 rows lie inside the range; its ends are a
factor 1.49 apart. With drafts: 29 rows of 11 rigs, both prose and code, 27 inside, ends a factor 2.0 apart
(tests/unit/planner/test_speed.py computes both). Rows: alesha-pro/qwen38-27b-bench-4x3090,
syv-ai/qwen38-27b-rtx3090, noonghunna/club-3090, sudoingX/qwen38-mtp, steven5210/qwen38-27b-rtx5090,
kutaelee/qwen38-5090-128k-runtime-recipe, and field reports.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Range:
    """Tokens a second."""

    low: float
    high: float


@dataclass(frozen=True)
class Coefficients:
    """The fitted terms.

    read, cache: of the time at the whole bandwidth. launch, reduce: seconds a layer, an all-reduce. unsplit,
    checking: seconds a token of context and layer. draft_pass: seconds on several cards. accepted: share of
    drafts at each depth.
    """

    read: float = 1.254
    launch: float = 42.4e-6
    reduce: float = 10.0e-6
    cache: float = 0.4915
    unsplit: float = 4.78e-9
    checking: float = 61e-9
    draft_pass: float = 2.69e-3
    accepted: float = 0.66


FITTED = Coefficients()
#: What lies between the fit and a measurement: low and high end over the expected rate.
PLAIN = (1 / 1.22, 1.22)
DRAFTED = (0.73, 1.48)


@dataclass(frozen=True)
class Step:
    """One decoding step of one sequence.

    weights: bytes that a card reads; draft_bytes: of one draft pass. bandwidth: bytes a second. ranks: that
    share a layer; cards: that take part. cache: bytes that a card reads; unsplit: tokens that each of
    `attention` layers walks through alone instead, 0 where the kernel splits. drafts: tokens a step.
    """

    weights: float
    bandwidth: float
    layers: int
    ranks: int = 1
    cards: int = 1
    cache: float = 0.0
    attention: int = 0
    unsplit: int = 0
    drafts: int = 0
    passes: int = 0
    draft_bytes: float = 0.0

    def terms(self) -> tuple[float, float, float, float, float]:
        """What the coefficients of a step without checking count: read, launch, reduce, cache, unsplit."""
        return (
            (self.weights + self.passes * self.draft_bytes) / self.bandwidth,
            float(self.layers),
            2.0 * self.layers * (self.ranks - 1),
            0.0 if self.unsplit else self.cache / self.bandwidth,
            float(self.attention * self.unsplit),
        )

    def seconds(self, by: Coefficients = FITTED) -> float:
        """The expected time."""
        read, launch, reduce, cache, walked = self.terms()
        walk = by.checking if self.drafts else by.unsplit
        seconds = read * by.read + launch * by.launch + reduce * by.reduce + cache * by.cache + walked * walk
        return seconds + (self.passes * by.draft_pass if self.cards > 1 else 0.0)

    def tokens(self, by: Coefficients = FITTED) -> float:
        """Tokens that a step brings: its own, and each draft while all before it were accepted."""
        return sum(by.accepted**depth for depth in range(self.drafts + 1))

    def rate(self, by: Coefficients = FITTED) -> float:
        """Expected tokens a second."""
        return self.tokens(by) / self.seconds(by)

    @property
    def ceiling(self) -> float:
        """Tokens a second at the whole bandwidth, with every draft accepted."""
        read = self.weights + self.cache + self.passes * self.draft_bytes
        return (1 + self.drafts) * self.bandwidth / read

    def range(self, by: Coefficients = FITTED) -> Range:
        """From slow rigs and hard text to fast rigs and easy text, never beyond the bandwidth."""
        low, high = DRAFTED if self.drafts else PLAIN
        most = self.ceiling
        if self.drafts:  # no text is easier than one whose drafts are all accepted
            most = min(most, (1 + self.drafts) / self.seconds(by))
        return Range(min(low * self.rate(by), most), min(high * self.rate(by), most))
