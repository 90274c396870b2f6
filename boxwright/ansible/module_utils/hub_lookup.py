"""What a model hub says of a model, without its weights: commit, files, config, tensors.

Protocol (Hugging Face): GET /api/models/R/revision/REV, GET /api/models/R/tree/SHA?recursive=true, GET
/R/resolve/SHA/FILE (with Range), as huggingface_hub uses them.
"""

from __future__ import annotations

import re
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Dict, List, Optional, Tuple
from urllib.parse import parse_qs, quote, urlsplit

from ansible.module_utils import safetensors_header, weight_names
from ansible.module_utils.web import Reader, WebError

#: Bytes read of a weights file at first: most headers end within them.
FIRST_READ = 256 * 1024
#: Weights files whose headers are read; a model of more is described without its tensors.
MOST_FILES = 1000
#: Bytes of all headers together, and of the longest description (an index of a large mixture of experts).
MOST_HEADERS, LONGEST_JSON = 256 << 20, 64 << 20
#: Seconds to wait when the hub asks for it (429), or answers with a fault of its own, and how often.
PATIENCE_S, TRIES = 15, 3


class Hub:
    """One hub. endpoint: URL. token: sent to that host only."""

    def __init__(self, endpoint: str, token: str, reader: Reader) -> None:
        self.endpoint = endpoint.rstrip("/")
        self._secret = "Bearer %s" % token if token else ""
        self._reader = reader
        self._headers_read = 0

    def model(self, repo: str, revision: Optional[str]) -> Dict[str, Any]:
        """A model at a revision (None: the default branch), or the reason there is nothing."""
        found: Dict[str, Any] = {"origin": "hub", "repo": repo, "requested": revision}
        try:
            found["revision"] = self._revision(repo, revision)
            found["files"] = self._tree(repo, found["revision"])
            found["config"] = self._config(repo, found)
            found["loaded"] = self._loaded(repo, found)
            found["tensors"] = self._tensors(repo, found)
        except WebError as error:
            kind = "rate-limited" if error.status == 429 else error.kind
            found.update(error=kind, detail=error.detail, code=error.code, status=error.status)
        return found

    def _revision(self, repo: str, revision: Optional[str]) -> str:
        """The commit that a revision means now."""
        asked = quote(revision or "main", safe="")
        return _commit(self._get("/api/models/%s/revision/%s" % (quote(repo), asked)).json())

    def _place(self, repo: str, revision: str, path: str) -> str:
        """Where a file lies, below the endpoint."""
        return "/%s/resolve/%s/%s" % (quote(repo), revision, quote(path))

    def _get(self, path: str, headers: Optional[Dict[str, str]] = None, limit: int = LONGEST_JSON) -> Any:
        """An answer; asked again after a while where the hub is busy or has a fault of its own."""
        for _ in range(TRIES - 1):
            try:
                return self._reader.get(self.endpoint + path, headers, self._secret, limit)
            except WebError as error:
                pause = _pause(error)
                if pause is None or pause > min(PATIENCE_S, self._reader.left):
                    raise
                time.sleep(pause)
        return self._reader.get(self.endpoint + path, headers, self._secret, limit)

    def _file(self, repo: str, found: Dict[str, Any], path: str, first: int, last: int) -> bytes:
        """The bytes first to last of a file, as many of them as there are."""
        answer = self._get(
            self._place(repo, found["revision"], path), {"Range": "bytes=%d-%d" % (first, last)}, last + 1
        )
        body: bytes = answer.body
        if answer.status != 206:
            # A server that knows no ranges sends the whole from its start.
            return body[first:]
        begins = re.match(r"bytes (\d+)-", answer.headers.get("content-range", ""))
        if begins and int(begins.group(1)) != first:
            raise WebError("invalid", "%s of %s: other bytes came than were asked for" % (path, repo))
        return body[: last - first + 1]

    def _whole(self, repo: str, found: Dict[str, Any], path: str) -> Optional[bytes]:
        """A small file; None where there is none."""
        size = _size(found, path)
        if size is None:
            return None
        if size > LONGEST_JSON:
            raise WebError("invalid", "%s of %s has %d bytes: no description is so long" % (path, repo, size))
        return self._file(repo, found, path, 0, max(size, 1) - 1)

    def _tree(self, repo: str, revision: str) -> List[Dict[str, Any]]:
        path = "/api/models/%s/tree/%s?recursive=true&expand=false" % (quote(repo), revision)
        files: List[Dict[str, Any]] = []
        cursor = ""
        for _ in range(100):
            answer = self._get(path + cursor)
            entries = answer.json()
            if not isinstance(entries, list):
                raise WebError("invalid", "%s: the file list of %s is no list" % (self.endpoint, repo))
            files += [_entry(one) for one in entries if isinstance(one, dict) and one.get("type") == "file"]
            following = re.search(r'<([^>]+)>;\s*rel="next"', answer.headers.get("link", ""))
            if not following:
                return files
            # A mirror may hand the origin's address on: only the place in the list is taken from it.
            place = parse_qs(urlsplit(following.group(1)).query).get("cursor", [""])[0]
            if not place:
                raise WebError("invalid", "%s: the file list of %s goes on nowhere" % (self.endpoint, repo))
            cursor = "&cursor=" + quote(place, safe="")
        raise WebError("invalid", "%s: the file list of %s does not end" % (self.endpoint, repo))

    def _config(self, repo: str, found: Dict[str, Any]) -> Optional[Dict[str, Any]]:
        body = self._whole(repo, found, "config.json")
        if body is None:
            return None
        config = _object(body, "config.json of %s" % repo)
        if "quantization_config" not in config:
            # ModelOpt's older checkpoints keep it in a file of its own.
            beside = self._whole(repo, found, weight_names.MODELOPT)
            if beside is not None:
                config["quantization_config"] = _object(beside, "%s of %s" % (weight_names.MODELOPT, repo))
        return config

    def _loaded(self, repo: str, found: Dict[str, Any]) -> List[str]:
        """The weights files that the index names; raises WebError where the repository lacks one."""
        body = self._whole(repo, found, weight_names.INDEX)
        if body is None:
            return []
        try:
            named: List[str] = weight_names.indexed(body)
        except ValueError as error:
            raise WebError("invalid", "%s of %s %s" % (weight_names.INDEX, repo, error)) from error
        missing = [name for name in named if _size(found, name) is None]
        if missing:
            raise WebError(
                "invalid",
                "%s is not whole: its index names %s, which it lacks" % (repo, ", ".join(missing[:3])),
            )
        return named

    def _tensors(self, repo: str, found: Dict[str, Any]) -> Optional[List[Dict[str, Any]]]:
        names = weight_names.loaded([entry["path"] for entry in found["files"]], found["loaded"])
        files = [(name, _size(found, name) or 0) for name in names]
        if not files or len(files) > MOST_FILES:
            return None
        with ThreadPoolExecutor(max_workers=8) as pool:
            parts = list(pool.map(lambda file: self._groups(repo, found, file), files))
        try:
            merged: List[Dict[str, Any]] = safetensors_header.merge(parts)
            return merged
        except ValueError as error:
            raise WebError("invalid", "the weights of %s: %s" % (repo, error)) from error

    def _groups(self, repo: str, found: Dict[str, Any], file: Tuple[str, int]) -> List[Dict[str, Any]]:
        """The tensors of one weights file, by its header."""
        path, size = file
        start = self._file(repo, found, path, 0, min(FIRST_READ, max(size, 1)) - 1)
        try:
            end = safetensors_header.header_end(start, size)
            self._headers_read += end
            if self._headers_read > MOST_HEADERS:
                raise ValueError("its headers are longer than any model's")
            if end > len(start):
                start += self._file(repo, found, path, len(start), end - 1)
            if len(start) < end:
                raise ValueError("%d of the %d bytes of its header came" % (len(start), end))
            groups: List[Dict[str, Any]] = safetensors_header.groups(
                start[safetensors_header.LENGTH_BYTES : end], size - end
            )
            return groups
        except ValueError as error:
            raise WebError("invalid", "%s of %s %s" % (path, repo, error)) from error


def _pause(error: WebError) -> Optional[float]:
    """Seconds after which asking again may help; None where it does not."""
    if error.status == 429:
        told = error.headers.get("retry-after", "").strip()
        return float(told) if re.fullmatch(r"\d{1,6}", told) else PATIENCE_S / TRIES
    return 1 if error.status is not None and error.status >= 500 else None


def _size(found: Dict[str, Any], path: str) -> Optional[int]:
    return next((entry["size"] for entry in found["files"] if entry["path"] == path), None)


def _object(body: bytes, what: str) -> Dict[str, Any]:
    try:
        value: Dict[str, Any] = weight_names.json_object(body)
        return value
    except ValueError as error:
        raise WebError("invalid", "%s %s" % (what, error)) from error


def _commit(info: Any) -> str:
    commit = info.get("sha") if isinstance(info, dict) else None
    if not isinstance(commit, str) or not re.fullmatch(r"[0-9a-f]{40}", commit):
        raise WebError("invalid", "the hub names no commit for the revision")
    return commit


def _entry(entry: Dict[str, Any]) -> Dict[str, Any]:
    large = entry.get("lfs")
    large = large if isinstance(large, dict) else {}
    digest = str(large.get("oid") or "").replace("sha256:", "")
    size = large.get("size", entry.get("size", 0))
    return {
        "path": str(entry.get("path", "")),
        "size": size if isinstance(size, int) and not isinstance(size, bool) and size > 0 else 0,
        "sha256": digest if re.fullmatch(r"[0-9a-f]{64}", digest) else None,
    }
