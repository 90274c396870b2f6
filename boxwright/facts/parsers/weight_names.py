"""Names of the files of a model: which weights an engine loads, and what describes them. Pure."""

from __future__ import annotations

import json
import re
from typing import Any, Dict, Iterable, List, Sequence, Union

WEIGHTS = ".safetensors"
INDEX = "model.safetensors.index.json"
#: Names beside the weights that an engine reads: configuration, tokenizer, templates.
DESCRIBING = (".json", ".model", ".tiktoken", ".jinja", ".txt")
#: Where ModelOpt's older checkpoints say how their numbers are stored.
MODELOPT = "hf_quant_config.json"
#: A second copy of the weights in another naming, beside the shards that the index lists (Mistral's).
CONSOLIDATED = re.compile(r"consolidated[.\-].*")
#: Levels of objects and lists in a configuration: what walks through it goes down as deep.
DEEPEST = 50
#: How a large file looks that was cloned without its content.
POINTER = b"version https://git-lfs"


def loaded(names: Iterable[str], indexed_names: Sequence[str] = ()) -> List[str]:
    """The weights files that an engine loads: those that the index names, else those of the top folder but
    for a second copy.
    """
    plain = [name for name in names if name.endswith(WEIGHTS) and "/" not in name]
    named = [name for name in plain if name in indexed_names]
    return named or [name for name in plain if not CONSOLIDATED.match(name)] or plain


def indexed(text: Union[str, bytes]) -> List[str]:
    """The files that an index names, sorted. Raises ValueError, as the end of a sentence."""
    names = json_object(text).get("weight_map")
    if not isinstance(names, dict) or not names or not all(isinstance(name, str) for name in names.values()):
        raise ValueError("is no index of weights")
    return sorted(set(names.values()))


def json_object(text: Union[str, bytes]) -> Dict[str, Any]:
    """A JSON object. Raises ValueError, as the end of a sentence, for anything else."""
    raw = text if isinstance(text, bytes) else text.encode("utf-8", "replace")
    if raw.startswith(POINTER):
        raise ValueError("is a Git LFS pointer, not the file itself: run git lfs pull")
    try:
        value = json.loads(raw.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError("is not JSON") from error
    if not isinstance(value, dict):
        raise ValueError("is not a JSON object")
    if _depth(value) > DEEPEST:
        raise ValueError("is nested deeper than any configuration")
    return value


def _depth(value: Any) -> int:
    """How deep lists and objects are nested in one another."""
    level, depth = [value], 0
    while level:
        level = [
            inner
            for one in level
            if isinstance(one, (dict, list))
            for inner in (one.values() if isinstance(one, dict) else one)
        ]
        depth += 1
    return depth
