"""What a ModelScope hub says of a model, without its weights.

Protocol, as the official client (modelscope_hub 0.5.1, _legacy_api.py) uses it:
GET /api/v1/models/R/repo/files?Revision=&Recursive=True, GET /api/v1/models/R/repo?Revision=&FilePath= (with
Range). Every file has its SHA-256, and the commit that changed it last.
"""

from __future__ import annotations

import re
from typing import Any, Dict, List, Optional
from urllib.parse import quote, urlencode

from ansible.module_utils.hub_lookup import Hub
from ansible.module_utils.web import WebError

#: The branch that is meant where none is named.
BRANCH = "master"
#: A list of so many files is cut: the hub gives no more, nor says that there are more.
MOST_LISTED = 3000


class ModelScope(Hub):  # type: ignore[misc]  # on the controller it has no types
    """One hub. endpoint: URL. token: sent to that host only."""

    def _revision(self, repo: str, revision: Optional[str]) -> str:
        """The commit that a revision means now.

        The hub names no commit for a branch. The newest of the commits that last changed a file has every
        listed file as it is now, and is taken for the branch's.
        """
        if revision and re.fullmatch(r"[0-9a-f]{40}", revision):
            return revision
        newest = max(self._listed(repo, revision or BRANCH), key=_date, default={})
        commit = newest.get("Revision")
        if not isinstance(commit, str) or not re.fullmatch(r"[0-9a-f]{40}", commit):
            raise WebError("invalid", "%s names no commit for %s of %s" % (self.endpoint, revision, repo))
        return commit

    def _place(self, repo: str, revision: str, path: str) -> str:
        """Where a file lies, below the endpoint."""
        return place(repo, revision, path)

    def _tree(self, repo: str, revision: str) -> List[Dict[str, Any]]:
        return [_entry(one) for one in self._listed(repo, revision)]

    def _listed(self, repo: str, revision: str) -> List[Dict[str, Any]]:
        """The hub's entries of a revision's files."""
        query = urlencode({"Revision": revision, "Recursive": "True"})
        answer = self._get("/api/v1/models/%s/repo/files?%s" % (quote(repo), query)).json()
        data = answer.get("Data") if isinstance(answer, dict) else None
        if isinstance(answer, dict) and answer.get("Success") is False:
            raise WebError("not-found", "%s: %s" % (repo, str(answer.get("Message"))[:200]), 404)
        listed = data.get("Files") if isinstance(data, dict) else data
        if not isinstance(listed, list):
            raise WebError("invalid", "%s: the file list of %s is no list" % (self.endpoint, repo))
        if len(listed) >= MOST_LISTED:
            raise WebError(
                "invalid",
                "%s lists only %d files of %s, and it may have more" % (self.endpoint, MOST_LISTED, repo),
            )
        return [one for one in listed if isinstance(one, dict) and one.get("Type") != "tree"]


def place(repo: str, revision: str, path: str) -> str:
    """Where a file of a revision lies, below a hub's endpoint."""
    query = urlencode({"Revision": revision, "FilePath": path})
    return "/api/v1/models/%s/repo?%s" % (quote(repo), query)


def _date(entry: Dict[str, Any]) -> float:
    told = entry.get("CommittedDate")
    return float(told) if isinstance(told, (int, float)) else 0.0


def _entry(entry: Dict[str, Any]) -> Dict[str, Any]:
    size, digest = entry.get("Size"), str(entry.get("Sha256") or "").lower()
    return {
        "path": str(entry.get("Path") or ""),
        "size": size if isinstance(size, int) and not isinstance(size, bool) and size > 0 else 0,
        "sha256": digest if re.fullmatch(r"[0-9a-f]{64}", digest) else None,
    }
