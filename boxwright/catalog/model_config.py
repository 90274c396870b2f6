"""config.json as it is published: the geometry in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from boxwright.catalog import layer_kinds
from boxwright.catalog.architecture import Architecture, Attention, Experts, Latent, LinearAttention
from boxwright.catalog.config_values import LARGEST, MOST_LAYERS, UnreadableConfig, Values, known
from boxwright.catalog.purpose import class_name, is_encoder

#: Kinds of rope scaling whose factor is not in max_position_embeddings yet.
_STRETCHING = ("linear", "dynamic", "ntk")


def code_classes(config: Mapping[str, Any]) -> tuple[str, ...]:
    """Classes that come as Python code with the repository (`auto_map`)."""
    mapped = config.get("auto_map")
    return tuple(sorted(str(name)[:60] for name in mapped)) if isinstance(mapped, Mapping) else ()


def text_part(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """The language model's part: of a model with eyes or ears it stands apart."""
    for _ in range(3):
        below = next(
            (config[name] for name in known()["text_parts"] if isinstance(config.get(name), Mapping)), None
        )
        if below is None:
            return config
        config = below
    return config


def from_config(config: Mapping[str, Any]) -> Architecture:
    """The geometry of a config.json; the language model's part may stand under `text_config`.

    Raises UnreadableConfig where a needed value is missing or no sensible number.
    """
    text = text_part(config)
    reader = _Geometry(text, config)
    layers, hidden = reader.layers(), reader.whole("hidden_size")
    kinds = layer_kinds.kinds(reader, layers)
    heads = reader.whole("num_attention_heads")
    name = class_name(config)
    full, sliding = reader.attentions(kinds, heads, hidden)
    unknown = sorted({kind[1:] for kind in kinds if kind.startswith("?")})
    experts = reader.experts()
    stateful = sum(kind in ("linear", "both") for kind in kinds)
    return Architecture(
        name=name,
        model_type=str(config.get("model_type") or reader.family),
        layers=sum(kind != "none" for kind in kinds),
        hidden=hidden,
        vocab=reader.whole("vocab_size"),
        intermediate=reader.widest("intermediate_size", 4 * hidden if experts else None),
        attention=full,
        sliding=sliding,
        context=reader.context(),
        linear=reader.linear(stateful, hidden) if stateful else None,
        experts=experts,
        tied=bool(reader.get("tie_word_embeddings", False)),
        encoder=is_encoder(config, text),
        headless=_is_headless(name),
        gated_mlp=reader.family not in known()["plain_mlp"],
        mtp_layers=reader.whole("mtp_num_hidden_layers", 0),
        vision=any(
            isinstance(config.get(name), Mapping) for name in ("vision_config", "visual", "vit_config")
        ),
        scaled=any("yarn" in kind for kind, _ in reader.scalings()),
        unknown_cache=f"layers of the kind {', '.join(unknown)}" if unknown else reader.unknown_cache(),
        gated_attention=bool(reader.get("attn_output_gate", reader.family in known()["gated"])),
    )


def _is_headless(name: str) -> bool:
    """Whether a class has no output matrix: the base of a model, or one that ends in a few labels."""
    ends = name.endswith(("Model", "ForSequenceClassification")) and not name.endswith("DraftModel")
    return ends and name not in known()["chat_models"]


def _fewer(cached: int, layers: int) -> int | None:
    return cached if cached < layers else None


class _Geometry(Values):
    """The parts of the geometry."""

    def unknown_cache(self) -> str | None:
        """What the layers keep that the plan does not know to count, by the value that names it."""
        return next((str(what) for name, what in known()["unknown_caches"].items() if self.get(name)), None)

    def attentions(self, kinds: list[str], heads: int, hidden: int) -> tuple[Attention, Attention | None]:
        """The attention of the layers with the whole context, and of those with a window beside them."""
        kv_heads = self.whole("num_key_value_heads", self._default_kv_heads(heads))
        width = self.whole("head_dim", max(1, hidden // heads))
        window = layer_kinds.window(self)
        windowed, whole = self._count(kinds, window)
        own_windowed, own_whole = self._count(layer_kinds.caching(self, kinds), window)
        sliding = (
            Attention(windowed, heads, kv_heads, width, window, cached=_fewer(own_windowed, windowed))
            if windowed
            else None
        )
        if sliding and not whole:
            return sliding, None
        full = Attention(
            layers=whole,
            heads=heads,
            kv_heads=self.whole("num_global_key_value_heads", kv_heads),
            head_dim=self.whole("global_head_dim", width),
            latent=self._latent(),
            cached=_fewer(own_whole, whole),
        )
        return full, sliding

    def _count(self, kinds: list[str], window: int | None) -> tuple[int, int]:
        """Layers with a window, and layers with the whole context; all of them where there is no window."""
        windowed = sum(kind == "sliding" for kind in kinds) if window else 0
        return windowed, sum(kind in layer_kinds.ATTENTION for kind in kinds) - windowed

    def _default_kv_heads(self, heads: int) -> int:
        # Falcon: one head for all queries, said by a switch.
        return 1 if self.get("multi_query") is True and not self.get("new_decoder_architecture") else heads

    def _latent(self) -> Latent | None:
        if self.get("kv_lora_rank") is None:
            return None
        return Latent(
            rank=self.whole("kv_lora_rank"),
            rope=self.whole("qk_rope_head_dim", 0),
            nope=self.whole("qk_nope_head_dim"),
            value=self.whole("v_head_dim"),
            query_rank=self.whole("q_lora_rank", 0),
        )

    def linear(self, layers: int, hidden: int) -> LinearAttention:
        if self.get("linear_num_value_heads") is not None:
            return LinearAttention(
                layers=layers,
                key_heads=self.whole("linear_num_key_heads"),
                value_heads=self.whole("linear_num_value_heads"),
                key_head_dim=self.whole("linear_key_head_dim"),
                value_head_dim=self.whole("linear_value_head_dim"),
                conv_kernel=self.whole("linear_conv_kernel_dim"),
                state_bytes=self._state_bytes("mamba_ssm_dtype", 4),
            )
        return self._mamba(layers)

    def _mamba(self, layers: int) -> LinearAttention:
        """Mamba 2 under its two sets of names (Granite, Bamba, Falcon-H1; Nemotron-H)."""
        names = ("mamba_n_heads", "mamba_d_head", "mamba_d_state", "mamba_n_groups", "mamba_d_conv")
        if self.get("mamba_num_heads") is not None:
            names = ("mamba_num_heads", "mamba_head_dim", "ssm_state_size", "n_groups", "conv_kernel")
        heads, width, state, groups, kernel = (self.whole(name) for name in names)
        return LinearAttention(
            layers=layers,
            key_heads=groups,
            value_heads=heads,
            key_head_dim=state,
            value_head_dim=width,
            conv_kernel=kernel,
            # vLLM keeps it in the model's own format unless the config names another.
            state_bytes=self._state_bytes("mamba_ssm_cache_dtype", 2),
            kind="mamba2",
        )

    def _state_bytes(self, name: str, default: int) -> int:
        size: int = known()["state_bytes"].get(str(self.get(name)), default)
        return size

    def experts(self) -> Experts | None:
        count = self.get("num_experts")
        if isinstance(count, list):
            count = count[0] if count else None
        if count in (None, 0, 1):
            return None
        if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= LARGEST:
            raise UnreadableConfig(f"config.json says num_experts: {str(count)[:40]}")
        width = self.widest("moe_intermediate_size", self.widest("intermediate_size", 1))
        shared = self.whole("shared_expert_intermediate_size", 0)
        return Experts(
            count=count,
            active=min(self.widest("num_experts_per_tok"), count),
            intermediate=width,
            shared=shared or self.whole("n_shared_experts", 0) * width,
            dense_layers=min(self.whole("first_k_dense_replace", 0), self.layers()),
        )

    def scalings(self) -> list[tuple[str, float]]:
        """Kind and factor of each rope scaling; some families have one for each kind of layer."""
        said = self.get("rope_parameters") or self.get("rope_scaling")
        said = said if isinstance(said, Mapping) else {}
        nested = [one for one in said.values() if isinstance(one, Mapping)]
        found: list[tuple[str, float]] = []
        for one in nested or [said]:
            factor, kind = one.get("factor"), str(one.get("rope_type") or one.get("type") or "default")
            if isinstance(factor, bool) or not isinstance(factor, (int, float)):
                factor = 1
            found.append((kind.lower(), factor if 1 <= factor <= MOST_LAYERS else 1))
        return found

    def context(self) -> int:
        """Tokens that the engine takes (vllm config/model.py, _get_and_verify_max_len)."""
        own: int = max(
            1, self.whole("max_position_embeddings") - known()["position_offset"].get(self.family, 0)
        )
        if self.family.startswith("gemma3"):
            return own  # says the stretched context already
        return int(own * max((factor for kind, factor in self.scalings() if kind in _STRETCHING), default=1))
