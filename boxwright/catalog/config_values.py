"""The values of a config.json: found under any of their names, believed only where they can be true."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from boxwright.catalog import reading

#: Nothing real has more; a config that says more is a mistake, or means harm to who multiplies it.
LARGEST = 1 << 32
MOST_LAYERS = 4096


class UnreadableConfig(ValueError):
    """A config.json that does not say what planning needs; the text says what is missing."""


@cache
def known() -> Mapping[str, Any]:
    """What is known of how families of models write their configuration."""
    data: Mapping[str, Any] = reading.yaml_file("model_configs.yml")
    return data


class Values:
    """One config.json. family: model_type of the language model's part, which stands in `text`."""

    def __init__(self, text: Mapping[str, Any], whole_config: Mapping[str, Any]) -> None:
        self._text, self._config = text, whole_config
        self.family = str(text.get("model_type") or whole_config.get("model_type") or "")
        self._defaults: Mapping[str, Any] = known()["defaults"].get(self.family, {})

    def get(self, name: str, default: Any = None) -> Any:
        """A value: of the language model's part, else of the whole, else the family's own default."""
        names = (name, *known()["names"].get(name, ()))
        for place in (self._text, self._config, self._defaults):
            for one in names:
                if place.get(one) is not None:
                    return place[one]
        return default

    def whole(self, name: str, default: int | None = None) -> int:
        """A number of at least 1 (or 0 where that is the default). Raises UnreadableConfig."""
        value = self.get(name)
        if value is None and default is not None:
            return default
        least = 0 if default == 0 else 1
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= LARGEST:
            raise UnreadableConfig(f"config.json says {name}: {str(value)[:40]}")
        return value

    def widest(self, name: str, default: int | None = None) -> int:
        """A number that some families give for each layer: the largest."""
        value = self.get(name)
        if not isinstance(value, list):
            return self.whole(name, default)
        good = [
            one for one in value if isinstance(one, int) and not isinstance(one, bool) and 0 < one <= LARGEST
        ]
        if not good:
            raise UnreadableConfig(f"config.json says {name}: {str(value)[:40]}")
        return max(good)

    def layers(self) -> int:
        """How many layers there are. Raises UnreadableConfig."""
        pattern = self.get("hybrid_override_pattern")
        value = self.get("num_hidden_layers")
        if value is None and isinstance(pattern, str) and 0 < len(pattern) <= MOST_LAYERS:
            return len(pattern)
        layers = self.whole("num_hidden_layers")
        if layers > MOST_LAYERS:
            raise UnreadableConfig(f"config.json says num_hidden_layers: {layers}")
        return layers
