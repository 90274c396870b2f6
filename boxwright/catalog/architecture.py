"""The geometry of a model: what memory and speed follow from. Read from config.json or from the catalog."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Latent:
    """Multi-head latent attention: keys and values of all heads are kept as one compressed vector a token.

    rank, rope: numbers of that vector, compressed and positional (kv_lora_rank, qk_rope_head_dim). nope,
    value: of one head's key without position, and of its value. query_rank: of the compressed query, 0 for
    none. Source: arXiv:2405.04434, section 2.1.
    """

    rank: int
    rope: int
    nope: int
    value: int
    query_rank: int = 0

    @property
    def numbers(self) -> int:
        """Numbers kept of one token in one layer; every tensor-parallel rank keeps all of them."""
        return self.rank + self.rope

    def parameters(self, hidden: int, heads: int) -> int:
        """Parameters of one layer's attention."""
        keys = self.nope + self.rope
        query = self.query_rank * (hidden + heads * keys) if self.query_rank else hidden * heads * keys
        return (
            query
            + hidden * self.numbers
            + self.rank * heads * (self.nope + self.value)
            + heads * self.value * hidden
        )


@dataclass(frozen=True)
class Attention:
    """Softmax attention.

    layers: how many of the model's have it. window: tokens, None for all of the context. latent: what is kept
    instead of keys and values of kv_heads, None for these. cached: layers with a cache of their own where
    others look into theirs, None for all of them.
    """

    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    window: int | None = None
    latent: Latent | None = None
    cached: int | None = None

    @property
    def caches(self) -> int:
        """Layers that keep a cache."""
        return self.layers if self.cached is None else self.cached

    @property
    def token_numbers(self) -> int:
        """Numbers kept of one token in one layer, over all ranks."""
        return self.latent.numbers if self.latent else 2 * self.kv_heads * self.head_dim

    def parameters(self, hidden: int, gates: int = 1) -> int:
        """Parameters of its layers. gates: 2 where the output is gated, which doubles the queries."""
        if self.latent:
            return self.layers * self.latent.parameters(hidden, self.heads)
        return self.layers * hidden * self.head_dim * ((gates + 1) * self.heads + 2 * self.kv_heads)


@dataclass(frozen=True)
class LinearAttention:
    """Layers that keep a state instead of keys and values.

    kind: `gated-delta` (Gated DeltaNet), or `mamba2`, where heads of a value have a width (value_head_dim)
    and a state (key_head_dim), and groups of heads share their keys (key_heads; ranks copy groups that they
    cannot share). state_bytes: of one number of the recurrent state (4 for float32). Both kinds keep
    2 key_heads x key_head_dim + value_heads x value_head_dim numbers for each but one step of the
    convolution, and value_heads x value_head_dim x key_head_dim numbers of state.
    """

    layers: int
    key_heads: int
    value_heads: int
    key_head_dim: int
    value_head_dim: int
    conv_kernel: int
    state_bytes: int = 4
    kind: str = "gated-delta"


@dataclass(frozen=True)
class Experts:
    """Mixture of experts.

    active: experts a token. intermediate: width of one; shared: width of the shared ones. dense_layers:
    layers that have one plain feed-forward part instead.
    """

    count: int
    active: int
    intermediate: int
    shared: int = 0
    dense_layers: int = 0


@dataclass(frozen=True)
class Architecture:
    """A model's geometry.

    name: class of config.json's `architectures`. attention: of the layers that keep the whole context, or of
    all layers where all have one window; sliding: of the layers with a window beside such layers. context:
    tokens that the engine takes (max_position_embeddings, stretched where the config says so). tied: input
    and output embeddings are one matrix. mtp_layers: draft layers in the checkpoint's own format. vision: it
    has a vision tower. scaled: its config extends the context by YaRN. unknown_cache: layers of which the
    plan does not know what they keep, None where it knows all. encoder: every token sees all others, and
    nothing is kept of a sequence. headless: there is no output matrix. gated_mlp: the feed-forward part has
    three matrices, not two.
    """

    name: str
    model_type: str
    layers: int
    hidden: int
    intermediate: int
    vocab: int
    attention: Attention
    context: int
    sliding: Attention | None = None
    linear: LinearAttention | None = None
    experts: Experts | None = None
    tied: bool = False
    mtp_layers: int = 0
    vision: bool = False
    scaled: bool = False
    gated_attention: bool = False
    unknown_cache: str | None = None
    encoder: bool = False
    headless: bool = False
    gated_mlp: bool = True

    @property
    def is_hybrid(self) -> bool:
        """Whether some layers keep a state instead of keys and values."""
        return self.linear is not None

    @property
    def embedding_parameters(self) -> int:
        """Parameters of one vocabulary matrix."""
        return self.vocab * self.hidden

    @property
    def body_parameters(self) -> int:
        """Parameters of the layers' matrices, those that quantizers work on (norms left out)."""
        gates = 2 if self.gated_attention else 1
        total = self.attention.parameters(self.hidden, gates)
        if self.sliding:
            total += self.sliding.parameters(self.hidden, gates)
        if self.linear:
            n = self.linear
            keys, values = n.key_heads * n.key_head_dim, n.value_heads * n.value_head_dim
            total += n.layers * self.hidden * (2 * keys + 3 * values + 2 * n.value_heads)
        return total + self._feed_forward()

    @property
    def active_parameters(self) -> int:
        """The same, of the experts only those that one token goes through."""
        if not self.experts:
            return self.body_parameters
        idle = (self.experts.count - self.experts.active) * self.experts.intermediate
        return self.body_parameters - (self.layers - self.experts.dense_layers) * 3 * self.hidden * idle

    @property
    def parameters(self) -> int:
        """All parameters but norms, vision and drafts."""
        return self.body_parameters + self.embedding_parameters * self.vocabulary_matrices

    @property
    def vocabulary_matrices(self) -> int:
        """Matrices with a row for every token: two, one where they are tied or there is no output's."""
        return 1 if self.tied or self.headless else 2

    def _feed_forward(self) -> int:
        plain = (3 if self.gated_mlp else 2) * self.hidden * self.intermediate
        if not self.experts:
            return self.layers * plain
        dense = min(self.experts.dense_layers, self.layers)
        width = self.experts.count * self.experts.intermediate + self.experts.shared
        mixed = 3 * self.hidden * width + self.hidden * self.experts.count
        return dense * plain + (self.layers - dense) * mixed
