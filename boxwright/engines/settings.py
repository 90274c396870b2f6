"""A deployment's numbers as an engine's command needs them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from boxwright.catalog import reading
from boxwright.catalog.purpose import TEXT


@dataclass(frozen=True)
class Settings:
    """The numbers of one deployment.

    release: whose option table is used; exact: it is the image's own. context: None where it is left to the
    engine (`auto`). kv_bytes: of one number of the cache. utilization: None with pool_bytes. draft_method:
    none, mtp, dflash2 or ngram. eager: CUDA graphs are off. windows: cache that left a window is freed.
    asynchronous: a step is scheduled while the last one runs. state_bytes: of one number of the state of
    linear attention, None for the model's own. uncounted: an option that changes the cache in a way that the
    plan does not count. backend: the attention backend that was asked for, None for the engine's choice.
    serves: text, embeddings or reranking. encoder: nothing is kept of a sequence, and a text is read in one
    step. convert: what the engine must make of a model that would write text (embed, classify), None for one
    that it serves as it is.
    """

    release: str
    exact: bool
    tensor_parallel: int
    pipeline_parallel: int
    context: int | None
    concurrency: int
    kv_format: str
    kv_bytes: Fraction
    kv_bytes_exact: bool
    utilization: float | None
    pool_bytes: int | None
    batched_tokens: int
    prefix_caching: bool
    draft_method: str
    draft_tokens: int
    block_size: int | None = None
    eager: bool = False
    vision: bool = True
    windows: bool = True
    asynchronous: bool = True
    state_bytes: int | None = None
    uncounted: str | None = None
    backend: str | None = None
    serves: str = TEXT
    encoder: bool = False
    convert: str | None = None


def newer(release: str, than: str) -> bool:
    """Whether a release is `than` or a later one."""
    return reading.version(release) >= reading.version(than)
