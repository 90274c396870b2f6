"""What each layer of a model keeps of a sequence, from config.json."""

from __future__ import annotations

from boxwright.catalog.config_values import LARGEST, UnreadableConfig, Values, known

#: Kinds that keep keys and values.
ATTENTION = ("full", "sliding", "both")


def kinds(values: Values, layers: int) -> list[str]:
    """What each layer keeps: full, sliding, linear, both, none, or `?` with the name of an unknown kind.

    Raises UnreadableConfig for a model without any attention.
    """
    listed = _listed(values, layers)
    found = [str(known()["kinds"].get(name, f"?{name[:40]}")) for name in listed] or _by_rule(values, layers)
    if not any(kind in ATTENTION for kind in found):
        raise UnreadableConfig("it has no layer of attention whose memory is known")
    return found


def caching(values: Values, kinds: list[str]) -> list[str]:
    """The kinds of those layers that keep caches of their own: the last ones may look into earlier ones'."""
    shared = min(values.whole("num_kv_shared_layers", 0), len(kinds) - 1)
    return kinds[: len(kinds) - shared]


def _listed(values: Values, layers: int) -> list[str]:
    for name in ("layer_types", "layers_block_type", "hybrid_override_pattern"):
        value = values.get(name)
        # A list may go on with the kinds of draft layers.
        if isinstance(value, (list, str)) and len(value) >= layers > 0:
            return [str(kind) for kind in value[:layers]]
    return []


def _by_rule(values: Values, layers: int) -> list[str]:
    every = values.get("full_attention_interval")
    if isinstance(every, int) and every > 0 and values.get("linear_num_value_heads"):
        return ["full" if (n + 1) % every == 0 else "linear" for n in range(layers)]
    width = window(values)
    if width is None:
        return ["full"] * layers
    every = values.get("sliding_window_pattern", values.get("_sliding_window_pattern"))
    if not isinstance(every, int) or isinstance(every, bool) or every < 1:
        every = len(every) if isinstance(every, str) and every else known()["window_every"].get(values.family)
    if every:
        return ["full" if (n + 1) % every == 0 else "sliding" for n in range(layers)]
    if values.family in known()["window_all"]:
        return ["sliding"] * layers
    if values.get("use_sliding_window") is True:
        begin = min(values.whole("max_window_layers", 0), layers)
        return ["full"] * begin + ["sliding"] * (layers - begin)
    return ["full"] * layers


def window(values: Values) -> int | None:
    """Tokens of the window; None where there is none, or where it holds the whole context."""
    window = values.get("sliding_window", values.get("attention_chunk_size"))
    if not isinstance(window, int) or isinstance(window, bool) or window < 1 or window > LARGEST:
        return None
    return window if window < values.whole("max_position_embeddings", LARGEST) else None
