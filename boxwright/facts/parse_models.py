"""What hub, store and directories say of models, of a raw answer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from boxwright.facts.model import File, ModelFiles, TensorGroup
from boxwright.facts.raw import Raw


def models(data: Raw) -> tuple[ModelFiles, ...]:
    """Every answer about a model: of the store, of directories, of the hub."""
    return tuple(_model(one) for one in data.objects("models"))


def _model(one: Mapping[str, Any]) -> ModelFiles:
    repo, revision = one.get("repo"), one.get("revision")
    requested = one.get("requested") or (revision if one.get("origin") == "store" else None)
    config, tensors = one.get("config"), one.get("tensors")
    listed, record, loaded = one.get("files"), _record(one.get("record")), one.get("loaded")
    return ModelFiles(
        request=f"{repo}@{requested}" if repo and requested else str(repo or one.get("directory") or ""),
        origin=str(one.get("origin", "")),
        repo=str(repo) if repo else None,
        revision=str(revision) if revision else None,
        directory=str(one["directory"]) if one.get("directory") else None,
        files=tuple(_file(entry, record) for entry in listed if isinstance(entry, Mapping))
        if isinstance(listed, list)
        else (),
        config=config if isinstance(config, Mapping) else None,
        tensors=tuple(_group(group) for group in tensors if isinstance(group, Mapping))
        if isinstance(tensors, list)
        else None,
        complete=bool(record),
        error=str(one["error"]) if one.get("error") else None,
        detail=str(one.get("detail") or ""),
        code=str(one.get("code") or ""),
        loaded=tuple(str(name) for name in loaded) if isinstance(loaded, list) else (),
    )


def _record(text: object) -> Mapping[str, str | None]:
    """Path -> sha256 of the store's own record of a revision; empty where there is none."""
    try:
        record = json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        return {}
    files = record.get("files") if isinstance(record, dict) else None
    if not isinstance(files, list):
        return {}
    return {str(one.get("path")): one.get("sha256") for one in files if isinstance(one, dict)}


def _file(entry: Mapping[str, Any], record: Mapping[str, str | None]) -> File:
    path, size, digest = str(entry.get("path", "")), entry.get("size"), entry.get("sha256")
    digest = digest or record.get(path)
    return File(path, size if isinstance(size, int) else 0, digest if isinstance(digest, str) else None)


def _group(group: Mapping[str, Any]) -> TensorGroup:
    count, size = group.get("count"), group.get("bytes")
    return TensorGroup(
        str(group.get("name", "")),
        count if isinstance(count, int) else 0,
        size if isinstance(size, int) else 0,
        str(group.get("dtype", "")),
    )
