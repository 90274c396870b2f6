"""The files of a model: which of them an engine loads, and what their tensors take."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from boxwright.catalog.architecture import Architecture
from boxwright.facts.model import File, ModelFiles, TensorGroup
from boxwright.facts.parsers import weight_names

#: Formats that run code when they are loaded (Python's pickle inside), and those of other engines.
PICKLED = (".bin", ".pt", ".pth", ".ckpt", ".pkl")
FOREIGN = {
    ".gguf": "GGUF",
    ".onnx": "ONNX",
    ".h5": "Keras",
    ".msgpack": "Flax",
    ".npz": "NumPy",
    ".tflite": "TFLite",
}
_MTP = re.compile(r"(^|[._])mtp([._]|$)")
#: Names that only draft layers numbered after the others have (DeepSeek-V3, GLM-4.5 and their kin).
_NUMBERED_MTP = re.compile(r"(^|\.)layers\.\*\.(eh_proj|enorm|hnorm|shared_head)(\.|$)")
_VISION = re.compile(
    r"(^|\.)(visual|vision_\w+|embed_vision|multi_modal_projector|mm_projector|audio_tower|audio_encoder"
    r"|embed_audio)(\.|$)"
)
_EMBEDDING = re.compile(r"(^|\.)(embed_tokens|lm_head|wte|word_embeddings|tok_embeddings|embed_out)(\.|$)")
_LAYER = re.compile(r"(^|\.)layers\.\*\.")


@dataclass(frozen=True)
class Tensors:
    """Bytes of a model's tensors by kind; what is none of these is the layers'.

    mtp: whether the draft layer is among them.
    """

    embeddings: int
    vision: int
    draft_layer: int
    mtp: bool


def weight_files(files: Iterable[File], loaded: Sequence[str] = ()) -> list[File]:
    """The safetensors files that an engine loads: those that the index names (loaded), else those of the top
    folder, not the second copy named `consolidated`.
    """
    listed = list(files)
    names = set(weight_names.loaded([file.path for file in listed], loaded))
    return [file for file in listed if file.path in names]


def fetched(files: Sequence[File], weights: Sequence[File]) -> list[File]:
    """The files that are fetched of a model: its weights, and what describes them."""
    return [
        file
        for file in files
        if file in weights or ("/" not in file.path and file.path.endswith(weight_names.DESCRIBING))
    ]


def pickled_files(files: Iterable[File]) -> list[File]:
    """The pickled weights in the top folder, without what training left there."""
    return [
        file
        for file in files
        if file.path.endswith(PICKLED)
        and "/" not in file.path
        and not file.path.startswith(("optimizer", "training"))
    ]


def without_safetensors(files: Sequence[File]) -> str:
    """What a model without safetensors has instead, as a sentence about its files."""
    pickled = [file.path for file in pickled_files(files)]
    foreign = {
        kind: file.path for file in files for ending, kind in FOREIGN.items() if file.path.endswith(ending)
    }
    if pickled:
        return f"its weights are pickled ({pickled[0]}), and such files can run code when they are loaded"
    if foreign:
        kind, path = next(iter(foreign.items()))
        return f"its weights are in the {kind} format ({path[:60]}), which this engine does not load"
    if any(file.path.endswith(".safetensors") for file in files):
        return "its safetensors files lie in folders of their own, so they are parts of another kind of model"
    return "it has no weights"


def tensors(answer: ModelFiles, architecture: Architecture | None) -> Tensors | None:
    """Bytes by kind; None where the headers were not read."""
    if answer.tensors is None:
        return None
    vision = sum(group.bytes for group in answer.tensors if _VISION.search(group.name))
    rest = [group for group in answer.tensors if not _VISION.search(group.name)]
    draft = sum(group.bytes for group in rest if _MTP.search(group.name))
    numbered = sum(group.bytes for group in rest if _NUMBERED_MTP.search(group.name))
    if numbered and architecture:
        draft += numbered + _layer_share(rest, architecture)
    embeddings = sum(
        group.bytes for group in rest if _EMBEDDING.search(group.name) and not _MTP.search(group.name)
    )
    return Tensors(embeddings, vision, draft, bool(draft))


def _layer_share(groups: Iterable[TensorGroup], architecture: Architecture) -> int:
    """What a draft layer that is numbered like the others takes beside its own names: a layer's share."""
    layers = sum(
        group.bytes for group in groups if _LAYER.search(group.name) and not _NUMBERED_MTP.search(group.name)
    )
    count = max(1, architecture.mtp_layers)
    return layers * count // (architecture.layers + count)
