"""The geometry of a model: what memory and speed follow from. Read from config.json or from the catalog."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


class UnreadableConfig(ValueError):
    """A config.json that does not say what planning needs; the text says what is missing."""


@dataclass(frozen=True)
class Attention:
    """Softmax attention.

    layers: how many of the model's have it. window: tokens, None for all of the context.
    """

    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    window: int | None = None


@dataclass(frozen=True)
class LinearAttention:
    """Gated DeltaNet. state_bytes: of one number of the recurrent state (4 for float32)."""

    layers: int
    key_heads: int
    value_heads: int
    key_head_dim: int
    value_head_dim: int
    conv_kernel: int
    state_bytes: int = 4


@dataclass(frozen=True)
class Experts:
    """Mixture of experts.

    active: experts a token. intermediate: width of one; shared: width of the shared ones.
    """

    count: int
    active: int
    intermediate: int
    shared: int = 0


@dataclass(frozen=True)
class Architecture:
    """A model's geometry.

    name: class of config.json's `architectures`. context: native tokens (max_position_embeddings). tied:
    input and output embeddings are one matrix. mtp_layers: draft layers in the checkpoint's own format.
    vision: it has a vision tower. scaled: its config extends the context by YaRN.
    """

    name: str
    model_type: str
    layers: int
    hidden: int
    intermediate: int
    vocab: int
    attention: Attention
    context: int
    linear: LinearAttention | None = None
    experts: Experts | None = None
    tied: bool = False
    mtp_layers: int = 0
    vision: bool = False
    scaled: bool = False
    gated_attention: bool = False

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
        a, gates = self.attention, 2 if self.gated_attention else 1
        total = a.layers * self.hidden * a.head_dim * ((gates + 1) * a.heads + 2 * a.kv_heads)
        if self.linear:
            n = self.linear
            keys, values = n.key_heads * n.key_head_dim, n.value_heads * n.value_head_dim
            total += n.layers * self.hidden * (2 * keys + 3 * values + 2 * n.value_heads)
        return total + self.layers * self._feed_forward()

    @property
    def active_parameters(self) -> int:
        """The same, of the experts only those that one token goes through."""
        if not self.experts:
            return self.body_parameters
        idle = (self.experts.count - self.experts.active) * self.experts.intermediate
        return self.body_parameters - self.layers * 3 * self.hidden * idle

    @property
    def parameters(self) -> int:
        """All parameters but norms, vision and drafts."""
        return self.body_parameters + self.embedding_parameters * (1 if self.tied else 2)

    def _feed_forward(self) -> int:
        if not self.experts:
            return 3 * self.hidden * self.intermediate
        width = self.experts.count * self.experts.intermediate + self.experts.shared
        return 3 * self.hidden * width + self.hidden * self.experts.count


#: Bytes of the number formats that config.json names for the state.
_STATE_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}
#: Nothing real has more; a config that says more is a mistake, or means harm to who multiplies it.
_LARGEST = 1 << 32
_MOST_LAYERS = 4096


def from_config(config: Mapping[str, Any]) -> Architecture:
    """The geometry of a config.json; the language model's part may stand under `text_config`.

    Raises UnreadableConfig where a needed value is missing or no sensible number.
    """
    text = config.get("text_config")
    text = text if isinstance(text, Mapping) else config
    reader = _Reader(text, config)
    layers, hidden, heads = reader.layers(), reader.whole("hidden_size"), reader.whole("num_attention_heads")
    kinds = reader.layer_kinds(layers)
    linear_layers = sum(kind == "linear_attention" for kind in kinds)
    sliding = sum(kind == "sliding_attention" for kind in kinds)
    full = layers - linear_layers - sliding
    experts = reader.experts()
    attention = Attention(
        layers=full + sliding,
        heads=heads,
        kv_heads=reader.whole("num_key_value_heads", heads),
        head_dim=reader.whole("head_dim", hidden // heads or 1),
        window=reader.whole("sliding_window") if sliding and not full else None,
    )
    names = config.get("architectures")
    return Architecture(
        name=str(names[0]) if isinstance(names, list) and names else "",
        model_type=str(config.get("model_type") or text.get("model_type") or ""),
        layers=layers,
        hidden=hidden,
        vocab=reader.whole("vocab_size"),
        intermediate=reader.whole("intermediate_size", 4 * hidden if experts else None),
        attention=attention,
        context=reader.whole("max_position_embeddings"),
        linear=reader.linear(linear_layers) if linear_layers else None,
        experts=experts,
        tied=bool(reader.get("tie_word_embeddings", False)),
        mtp_layers=reader.whole("mtp_num_hidden_layers", reader.whole("num_nextn_predict_layers", 0)),
        vision=isinstance(config.get("vision_config"), Mapping),
        scaled="yarn" in str(text.get("rope_scaling") or text.get("rope_parameters") or "").lower(),
        gated_attention=bool(text.get("attn_output_gate", False)),
    )


class _Reader:
    """Numbers of a config.json, believed only where they can be true."""

    def __init__(self, text: Mapping[str, Any], whole_config: Mapping[str, Any]) -> None:
        self._text, self._config = text, whole_config

    def get(self, name: str, default: Any = None) -> Any:
        value = self._text.get(name)
        return self._config.get(name, default) if value is None else value

    def whole(self, name: str, default: int | None = None) -> int:
        value = self.get(name)
        if value is None and default is not None:
            return default
        least = 0 if default == 0 else 1
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= _LARGEST:
            raise UnreadableConfig(f"config.json says {name}: {str(value)[:40]}")
        return value

    def layers(self) -> int:
        layers = self.whole("num_hidden_layers")
        if layers > _MOST_LAYERS:
            raise UnreadableConfig(f"config.json says num_hidden_layers: {layers}")
        return layers

    def layer_kinds(self, layers: int) -> list[str]:
        kinds = self._text.get("layer_types")
        if isinstance(kinds, list) and len(kinds) == layers:
            return [str(kind) for kind in kinds]
        every = self._text.get("full_attention_interval")
        if isinstance(every, int) and every > 0 and self._text.get("linear_num_value_heads"):
            full = layers // every
            return ["full_attention"] * full + ["linear_attention"] * (layers - full)
        return []

    def linear(self, layers: int) -> LinearAttention:
        name = str(self.get("mamba_ssm_dtype", "float32"))
        return LinearAttention(
            layers=layers,
            key_heads=self.whole("linear_num_key_heads"),
            value_heads=self.whole("linear_num_value_heads"),
            key_head_dim=self.whole("linear_key_head_dim"),
            value_head_dim=self.whole("linear_value_head_dim"),
            conv_kernel=self.whole("linear_conv_kernel_dim"),
            state_bytes=_STATE_BYTES.get(name, 4),
        )

    def experts(self) -> Experts | None:
        count = self.get("num_experts", self.get("num_local_experts", self.get("n_routed_experts")))
        if not count:
            return None
        intermediate = self.whole("moe_intermediate_size", self.whole("intermediate_size", 1))
        if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= _LARGEST:
            raise UnreadableConfig(f"config.json says num_experts: {str(count)[:40]}")
        return Experts(
            count=count,
            active=min(self.whole("num_experts_per_tok"), count),
            intermediate=intermediate,
            shared=self.whole("shared_expert_intermediate_size", 0),
        )
