"""What a model hub says of a model, without its weights: commit, files, config, tensors.

Protocol (Hugging Face): GET /api/models/R/revision/REV, GET /api/models/R/tree/SHA?recursive=true, GET
/R/resolve/SHA/FILE (with Range), as huggingface_hub uses them.
"""

from __future__ import annotations

import json
import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Dict, List, Optional
from urllib.parse import quote

from ansible.module_utils import safetensors_header
from ansible.module_utils.web import Reader, WebError

#: Bytes read of a weights file at first: most headers end within them.
FIRST_READ = 256 * 1024
#: Weights files whose headers are read; a model of more is described without its tensors.
MOST_FILES = 200


class Hub:
    """One hub. endpoint: URL. token: sent to that host only."""

    def __init__(self, endpoint: str, token: str, reader: Reader) -> None:
        self.endpoint = endpoint.rstrip("/")
        self._secret = "Bearer %s" % token if token else ""
        self._reader = reader

    def model(self, repo: str, revision: Optional[str]) -> Dict[str, Any]:
        """A model at a revision (None: the default branch), or the reason there is nothing."""
        found: Dict[str, Any] = {"origin": "hub", "repo": repo, "requested": revision}
        try:
            asked = quote(revision or "main", safe="")
            found["revision"] = _commit(self._get("/api/models/%s/revision/%s" % (quote(repo), asked)).json())
            found["files"] = self._tree(repo, found["revision"])
            found["config"] = self._config(repo, found)
            found["tensors"] = self._tensors(repo, found)
        except WebError as error:
            found.update(error=error.kind, detail=error.detail, code=error.code, status=error.status)
        return found

    def _get(self, path: str, headers: Optional[Dict[str, str]] = None, limit: int = 64 << 20) -> Any:
        return self._reader.get(self.endpoint + path, headers, self._secret, limit)

    def _file(self, repo: str, found: Dict[str, Any], path: str, first: int, last: int) -> bytes:
        url = "/%s/resolve/%s/%s" % (quote(repo), found["revision"], quote(path))
        answer = self._get(url, {"Range": "bytes=%d-%d" % (first, last)}, last + 1)
        body: bytes = answer.body
        # A server that knows no ranges sends the whole from its start.
        return body[first:] if answer.status == 200 else body[: last - first + 1]

    def _tree(self, repo: str, revision: str) -> List[Dict[str, Any]]:
        path = "/api/models/%s/tree/%s?recursive=true&expand=false" % (quote(repo), revision)
        files: List[Dict[str, Any]] = []
        for _ in range(100):
            answer = self._get(path)
            entries = answer.json()
            if not isinstance(entries, list):
                raise WebError("invalid", "%s: the file list of %s is no list" % (self.endpoint, repo))
            files += [_entry(one) for one in entries if isinstance(one, dict) and one.get("type") == "file"]
            following = re.search(r'<([^>]+)>;\s*rel="next"', answer.headers.get("link", ""))
            if not following or not following.group(1).startswith(self.endpoint):
                return files
            path = following.group(1)[len(self.endpoint) :]
        raise WebError("invalid", "%s: the file list of %s does not end" % (self.endpoint, repo))

    def _config(self, repo: str, found: Dict[str, Any]) -> Optional[Dict[str, Any]]:
        size = next((entry["size"] for entry in found["files"] if entry["path"] == "config.json"), None)
        if size is None:
            return None
        try:
            config = json.loads(self._file(repo, found, "config.json", 0, max(size - 1, 0)).decode("utf-8"))
        except ValueError as error:
            raise WebError("invalid", "config.json of %s is not JSON" % repo) from error
        return config if isinstance(config, dict) else None

    def _tensors(self, repo: str, found: Dict[str, Any]) -> Optional[List[Dict[str, Any]]]:
        files = [entry for entry in found["files"] if entry["path"].endswith(".safetensors")]
        if not files or len(files) > MOST_FILES:
            return None

        def read(entry: Dict[str, Any]) -> List[Dict[str, Any]]:
            start = self._file(repo, found, entry["path"], 0, min(FIRST_READ, max(entry["size"], 1)) - 1)
            length = safetensors_header.header_length(start)
            if length is None:
                raise WebError("invalid", "%s of %s is no safetensors file" % (entry["path"], repo))
            end = safetensors_header.LENGTH_BYTES + length
            if end > len(start):
                start += self._file(repo, found, entry["path"], len(start), end - 1)
            try:
                groups: List[Dict[str, Any]] = safetensors_header.groups(
                    start[safetensors_header.LENGTH_BYTES : end]
                )
                return groups
            except ValueError as error:
                raise WebError("invalid", "%s of %s: %s" % (entry["path"], repo, error)) from error

        with ThreadPoolExecutor(max_workers=8) as pool:
            merged: List[Dict[str, Any]] = safetensors_header.merge(list(pool.map(read, files)))
            return merged


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
        "size": int(size or 0),
        "sha256": digest if re.fullmatch(r"[0-9a-f]{64}", digest) else None,
    }
