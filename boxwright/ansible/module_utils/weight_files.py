"""Which files of a model repository serving needs, and which it must not have. Pure."""

from __future__ import annotations

import json
import posixpath
import re
from typing import Any, Dict, List, NamedTuple, Optional

from ansible.module_utils.weight_names import DESCRIBING

#: Formats that run code when they are loaded (Python's pickle inside).
PICKLED = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle")
WEIGHTS = ".safetensors"
INDEX = "model.safetensors.index.json"
#: Text files that are no part of a tokenizer (merges.txt and vocab.txt are).
PROSE = re.compile(r"(?i)(readme|licen[cs]e|notice|usage|requirements|changelog|.*polic).*\.txt$")
#: Whole copies of the weights in another naming, beside the shards that the index lists (Mistral's
#: repositories).
CONSOLIDATED = re.compile(r"consolidated[.\-].*")
#: The steps after the model itself, as sentence-transformers keeps them (1_Pooling, 2_Dense): how a vector is
#: made of a text's tokens. An engine without them makes other vectors, and says nothing.
STEP = re.compile(r"\d+_[A-Za-z]+/(config\.json|model\.safetensors)")
#: Files that may say `auto_map`: classes that come as code with the repository.
MAY_MAP_CODE = ("config.json", "tokenizer_config.json", "processor_config.json", "preprocessor_config.json")


class Selection(NamedTuple):
    """wanted: files to fetch, small ones first; left_out: names that are not fetched."""

    wanted: List[Dict[str, Any]]
    left_out: List[str]


class PathError(ValueError):
    """A file name that would leave the directory it belongs into."""


def select(files: List[Dict[str, Any]], pickled: bool = False, code: bool = False) -> Selection:
    """What to fetch of a repository's files ({path, size, sha256 or null}).

    pickled, code: fetch those too; pickled weights only where there are no others. Raises PathError.
    """
    for file in files:
        check_path(file["path"])
    root = [file["path"] for file in files if "/" not in file["path"]]
    safe = [path for path in root if path.endswith(WEIGHTS)]
    plain = [path for path in safe if not CONSOLIDATED.match(path)]

    def wanted(path: str) -> bool:
        if path.endswith(".py"):
            return code
        if path.startswith("additional_chat_templates/") and path.endswith(".jinja"):
            return True
        if STEP.fullmatch(path):
            return True
        if "/" in path or path.startswith("."):
            return False
        if path.endswith(WEIGHTS):
            return path in (plain or safe)
        if path.endswith(PICKLED):
            return pickled and not safe
        if path.endswith(".index.json") and path != INDEX:
            return pickled and not safe
        if path.endswith(".txt"):
            return not PROSE.match(path)
        return path.endswith(DESCRIBING)

    chosen = [file for file in files if wanted(file["path"])]
    chosen.sort(key=lambda file: (is_weights(file["path"]), file["size"], file["path"]))
    names = {file["path"] for file in chosen}
    return Selection(chosen, sorted(file["path"] for file in files if file["path"] not in names))


def is_weights(path: str) -> bool:
    """Whether the file holds tensors (large), not the description of them."""
    return path.endswith((WEIGHTS, *PICKLED))


def check_path(path: str) -> None:
    """Raise PathError for a name that a store must not hold."""
    clean = posixpath.normpath(path) if path else ""
    if not path or clean != path or path.startswith(("/", "..")) or "\\" in path or "\0" in path:
        raise PathError("the repository has a file named %r, which leaves its directory" % path)


def refusal(repo: str, files: List[Dict[str, Any]], pickled: bool = False) -> Optional[str]:
    """Why weights of this repository are not fetched at all, with the way out; None when they may be."""
    names = [file["path"] for file in files]
    if not names:
        return "%s: the plan lists no file of it; run the preflight role first" % repo
    root = [name for name in names if "/" not in name]
    if "config.json" not in root:
        return "%s has no config.json, so no engine can load it; declare another repository" % repo
    if any(name.endswith(WEIGHTS) for name in root):
        return None
    found = sorted(name for name in root if name.endswith(PICKLED))
    if not found:
        return "%s has no weights in the safetensors format; declare a repository that has" % repo
    if pickled:
        return None
    return (
        "%s publishes its weights only in a pickled format (%s), which can run code when it is loaded. "
        "Either declare a repository or revision with safetensors, or allow it: model_weights_allow_pickle: "
        "[%s]" % (repo, ", ".join(found[:3]) + (", …" if len(found) > 3 else ""), repo)
    )


def code_refusal(repo: str, texts: Dict[str, str]) -> Optional[str]:
    """Why a repository with these files (name to text) is refused for the code it brings, or None."""
    for name in MAY_MAP_CODE:
        if name not in texts:
            continue
        try:
            mapped = json.loads(texts[name]).get("auto_map")
        except (ValueError, AttributeError):
            return "%s: %s is not a JSON object; the revision is broken, declare another" % (repo, name)
        if mapped:
            return (
                "%s brings code of its own (auto_map in %s: %s), which would run on this host. Either "
                "declare a "
                "model that the engine knows by itself, or allow it: model_weights_allow_code: [%s]"
                % (repo, name, ", ".join(sorted(mapped)) if isinstance(mapped, dict) else mapped, repo)
            )
    return None


def missing_shards(index_text: str, present: List[str]) -> List[str]:
    """Weights files that the index lists and `present` lacks. Raises ValueError for no index."""
    try:
        shards = set(json.loads(index_text)["weight_map"].values())
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError("%s is no index of weights" % INDEX) from error
    return sorted(str(shard) for shard in shards if shard not in present)
