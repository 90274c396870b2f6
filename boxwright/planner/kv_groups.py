"""How vLLM groups a model's layers into block tables that share one pool.

Layers with one kind of cache form a bucket. All pages (bytes of one block of one layer) are made equal; then
every bucket is cut into groups of one size, and a block of the pool is one page of each layer of a group.

Source: vllm v1/core/kv_cache_utils.py (get_kv_cache_groups, unify_kv_cache_spec_page_size,
_get_kv_cache_groups_uniform_page_size), v1/kv_cache_interface.py, distributed/utils.py (get_pp_indices), read
in the source distributions of 0.13 to 0.33.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from boxwright.catalog import reading


class UnknownCache(ValueError):
    """A cache whose size the plan does not know; the text says what of it."""


@dataclass(frozen=True)
class Arithmetic:
    """What changed between releases.

    spread: buckets whose largest is below so many times the smallest make one group each. whole_contexts: the
    boot line counts full contexts times their length; before, blocks of one group. pads: pages that do not
    divide are padded; before, the engine refused the model. steps: of scheduling whose tokens a window keeps
    beside itself. spare: the block that is never given out counts when the engine asks whether the context
    fits.
    """

    spread: Fraction
    whole_contexts: bool
    pads: bool
    steps: int
    spare: bool


def arithmetic(release: str, *, asynchronous: bool = True) -> Arithmetic:
    """The arithmetic of a release. asynchronous: it schedules a step while the last one still runs."""
    at = reading.version(release)
    return Arithmetic(
        spread=Fraction(3, 2) if at >= SPREAD_SINCE else Fraction(5, 4),
        whole_contexts=at >= WHOLE_CONTEXTS_SINCE,
        pads=at >= PADS_SINCE,
        steps=2 if asynchronous and at >= STEPS_SINCE else 1,
        spare=at >= SPARE_SINCE,
    )


#: First releases of each change.
SPREAD_SINCE = (0, 18)
WHOLE_CONTEXTS_SINCE = (0, 20, 1)
PADS_SINCE = (0, 24)
STEPS_SINCE = (0, 26)
SPARE_SINCE = (0, 29)


@dataclass(frozen=True)
class Bucket:
    """Layers with one kind of cache.

    kind: full, sliding, chunked or state. layers: their places in the model, drafts behind the last. block:
    tokens of a page; page: its bytes on one card. window: tokens. copies: pages that a sequence keeps of a
    state.
    """

    kind: str
    layers: tuple[int, ...]
    block: int
    page: int
    window: int = 0
    copies: int = 0


@dataclass(frozen=True)
class Group:
    """Layers that share a block table. layers: place in the model, bytes of a page."""

    bucket: Bucket
    layers: tuple[tuple[int, int], ...]

    def bytes(self, begin: int, end: int) -> int:
        """Bytes of one block of the layers from `begin` up to `end`."""
        return sum(page for place, page in self.layers if begin <= place < end)


@dataclass(frozen=True)
class Groups:
    """All groups of a pool. padding: layers that rounding adds."""

    groups: tuple[Group, ...]
    padding: int

    def block_bytes(self, stages: Sequence[int]) -> tuple[int, ...]:
        """Bytes of one block on a card of each pipeline stage. stages: layers up to the end of each."""
        bounds = zip((0, *stages), stages, strict=False)
        return tuple(max(group.bytes(begin, end) for group in self.groups) for begin, end in bounds)


def groups(buckets: Sequence[Bucket], rules: Arithmetic) -> Groups:
    """The groups of a model's buckets.

    Raises UnknownCache where the release cannot make the pages equal, or there is nothing to keep.
    """
    some = [bucket for bucket in buckets if bucket.layers]
    if not some:
        raise UnknownCache("no layer keeps a cache")
    if _alike(some):
        return Groups((Group(some[0], tuple(pair for bucket in some for pair in _pages(bucket))),), 0)
    equal = _equal_pages(some, rules)
    smallest, largest = (bound(len(bucket.layers) for bucket in equal) for bound in (min, max))
    size = largest if largest < smallest * rules.spread else smallest
    found: list[Group] = []
    padding = 0
    for bucket in equal:
        count = -(-len(bucket.layers) // size)
        padding += -len(bucket.layers) % size
        found.extend(Group(bucket, _pages(bucket)[place::count]) for place in range(count))
    return Groups(tuple(found), padding)


def _alike(buckets: Sequence[Bucket]) -> bool:
    """Whether every layer needs the same blocks, so that all are one group whatever their pages' sizes."""
    first = buckets[0]
    return len(buckets) == 1 or all(
        one.kind != "state" and (one.kind, one.block, one.window) == (first.kind, first.block, first.window)
        for one in buckets
    )


def _pages(bucket: Bucket) -> tuple[tuple[int, int], ...]:
    return tuple((layer, bucket.page) for layer in bucket.layers)


def _equal_pages(buckets: Sequence[Bucket], rules: Arithmetic) -> list[Bucket]:
    """The buckets with pages of one size: more tokens a block where that divides, else padding."""
    page = max(bucket.page for bucket in buckets)
    equal = []
    for bucket in buckets:
        if bucket.kind == "state":
            equal.append(replace(bucket, page=page))
        elif page % bucket.page == 0:
            equal.append(replace(bucket, page=page, block=bucket.block * (page // bucket.page)))
        elif rules.pads:
            equal.append(replace(bucket, page=page))
        else:
            raise UnknownCache("layers whose pages do not divide each other, which vLLM pads since 0.24")
    return equal


def stages(layers: int, drafts: int, pipeline_parallel: int) -> tuple[int, ...]:
    """Where each pipeline stage ends: layers evenly, those left over on the middle stages, drafts on the
    last.
    """
    count = max(1, min(pipeline_parallel, layers))
    sizes = [layers // count] * count
    for place in range(2, layers % count + 2):
        sizes[-place] += 1
    ends = [sum(sizes[: place + 1]) for place in range(count)]
    ends[-1] += drafts
    return tuple(ends)


def places(layers: int, some: int) -> tuple[int, ...]:
    """Places of `some` of the layers, the last of each equal run: how models repeat a pattern."""
    return tuple((place + 1) * layers // some - 1 for place in range(some))
