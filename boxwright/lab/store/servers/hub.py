"""A model hub that speaks the Hugging Face protocol for the repositories of a folder.

Answers, headers and errors are those of the real hub as its client (huggingface_hub 1.x and 2.x) reads them:
401 instead of 404 for a repository that an anonymous client may not see, 403 for a gated one, X-Error-Code,
pages of a tree by Link, large files by a redirect to storage with an address that needs no token. Xet is not
offered: without X-Xet-Hash every client takes plain HTTP.

Run: python3 -m servers.hub --root MODELS [--port 8300] [--bind 0.0.0.0] [--control FILE] [--log FILE]
"""

from __future__ import annotations

import argparse
import hashlib
import hmac
import json
import secrets
import threading
import urllib.parse
from pathlib import Path

from .control import Access, Control
from .files import Handler, RequestLog, serve
from .repositories import Commit, Entry, Repositories

#: Entries on a page of a tree, as on the real hub.
PAGE = 1000
CREATED = "2026-01-01T00:00:00.000Z"


class HubError(Exception):
    """An answer that is an error. code: the value of X-Error-Code, by which clients tell what is wrong."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message


class HubHandler(Handler):
    """One connection to the hub. `repositories`, `tls_port` and `key` are set once, by `main`."""

    repositories: Repositories
    tls_port = 0
    #: Signs the addresses of large files; another one for each run of the server.
    key = secrets.token_bytes(32)

    def answer(self, path: str, query: dict[str, str]) -> None:
        """Answer one request; errors carry the hub's X-Error-Code."""
        # A revision may contain a slash (%2F), so that segments are decoded after the split.
        raw = urllib.parse.urlsplit(self.path).path
        segments = [urllib.parse.unquote(each) for each in raw.strip("/").split("/")]
        try:
            self._route(path, segments, query)
        except HubError as error:
            headers = {"X-Error-Message": error.message}
            if error.code:
                headers["X-Error-Code"] = error.code
            if error.status == 401:
                headers["WWW-Authenticate"] = 'Bearer realm="Authentication required", charset="UTF-8"'
            self.send_json(error.status, {"error": error.message}, headers)

    def _route(self, path: str, segments: list[str], query: dict[str, str]) -> None:
        if segments[0] == "storage":  # signed: no token is asked for, as by the real hub's storage
            self._storage(path, segments, query)
            return
        self._authenticate()
        match segments:
            case ["api", "whoami-v2"]:
                self._whoami()
            case ["api", "models"]:
                self.send_json(
                    200,
                    [
                        {"id": name, "modelId": name}
                        for name in self.repositories.names()
                        if self._access(name).access in ("public", "gated")
                    ],
                )
            case ["api", "models", org, name]:
                self._info(f"{org}/{name}", "main", query)
            case ["api", "models", org, name, "revision", revision]:
                self._info(f"{org}/{name}", revision, query)
            case ["api", "models", org, name, "refs"]:
                self._refs(f"{org}/{name}")
            case ["api", "models", org, name, "tree", revision, *below]:
                self._tree(f"{org}/{name}", revision, "/".join(below), query)
            case ["api", "models", org, name, "paths-info", revision]:
                self._paths(f"{org}/{name}", revision)
            case [org, name, "resolve", revision, _, *_]:
                self._resolve(f"{org}/{name}", revision, "/".join(segments[4:]))
            case _:
                raise HubError(404, "", "Not Found")

    # Who asks, and what they may see

    def _authenticate(self) -> None:
        scheme, _, token = self.headers.get("Authorization", "").partition(" ")
        if not scheme:
            return
        user = self.server.control.settings().users.get(token.strip()) if scheme.lower() == "bearer" else None
        if user is None:
            self.user = "invalid token"
            raise HubError(401, "", "Invalid credentials in Authorization header")
        self.user = user

    def _access(self, repo: str) -> Access:
        return self.server.control.settings().repositories.get(repo, Access())

    def _commit(self, repo: str, revision: str, content: bool = False) -> Commit:
        """A repository's commit as far as the user may see it. content: the files, not only what there is."""
        access = self._access(repo)
        allowed = self.user in access.allowed
        if not self.repositories.refs(repo) or (access.access == "private" and not allowed):
            if self.user == "anonymous":  # the real hub does not tell strangers whether a name is taken
                raise HubError(401, "RepoNotFound", "Invalid username or password.")
            raise HubError(404, "RepoNotFound", "Repository not found")
        if access.access == "disabled":
            raise HubError(403, "", "Access to this resource is disabled.")
        if access.access == "gated" and content and not allowed:
            if self.user == "anonymous":
                raise HubError(
                    401,
                    "GatedRepo",
                    f"Access to model {repo} is restricted. You must have access to it and be "
                    "authenticated to access it. Please log in.",
                )
            raise HubError(
                403,
                "GatedRepo",
                f"Access to model {repo} is restricted and you are not in the authorized list. "
                f"Visit {self._base()}/{repo} to ask for access.",
            )
        commit = self.repositories.find(repo, revision)
        if commit is None:
            raise HubError(404, "RevisionNotFound", f"Invalid rev id: {revision}")
        return commit

    def _base(self) -> str:
        host = self.headers.get("Host", "localhost")
        return f"{'https' if host.endswith(f':{self.tls_port}') else 'http'}://{host}"

    # What is asked

    def _whoami(self) -> None:
        if self.user == "anonymous":
            raise HubError(401, "", "Invalid username or password.")
        self.send_json(
            200,
            {
                "type": "user",
                "id": self.user,
                "name": self.user,
                "fullname": self.user,
                "orgs": [],
                "auth": {"type": "access_token", "accessToken": {"role": "read"}},
            },
        )

    def _info(self, repo: str, revision: str, query: dict[str, str]) -> None:
        commit = self._commit(repo, revision)
        access = self._access(repo)
        siblings: list[dict[str, object]] = []
        for entry in commit.entries.values():
            item: dict[str, object] = {"rfilename": entry.path}
            if query.get("blobs", "").lower() in ("true", "1"):
                item.update(blobId=entry.oid, size=entry.size)
                if entry.large:
                    item["lfs"] = {
                        "sha256": entry.sha256,
                        "size": entry.size,
                        "pointerSize": entry.pointer_size,
                    }
            siblings.append(item)
        self.send_json(
            200,
            {
                "_id": hashlib.sha256(repo.encode()).hexdigest()[:24],
                "id": repo,
                "modelId": repo,
                "author": repo.partition("/")[0],
                "sha": commit.sha,
                "lastModified": CREATED,
                "createdAt": CREATED,
                "private": access.access == "private",
                "gated": "manual" if access.access == "gated" else False,
                "disabled": False,
                "tags": [],
                "downloads": 0,
                "likes": 0,
                "siblings": siblings,
                "usedStorage": sum(entry.size for entry in commit.entries.values() if entry.large),
            },
        )

    def _refs(self, repo: str) -> None:
        self._commit(repo, "main")
        branches = [
            {"name": name, "ref": f"refs/heads/{name}", "targetCommit": self.repositories.commit(folder).sha}
            for name, folder in self.repositories.refs(repo).items()
        ]
        self.send_json(200, {"branches": branches, "tags": [], "converts": []})

    def _tree(self, repo: str, revision: str, below: str, query: dict[str, str]) -> None:
        commit = self._commit(repo, revision)
        recursive = query.get("recursive", "").lower() in ("true", "1")
        items = _listing(commit, below, recursive)
        if not items:
            raise HubError(404, "EntryNotFound", f'{below} does not exist on "{revision}"')
        first = int(query["cursor"]) if query.get("cursor", "").isdecimal() else 0
        limit = int(query["limit"]) if query.get("limit", "").isdecimal() else PAGE
        page, headers = items[first : first + max(1, limit)], {}
        if first + len(page) < len(items):
            following = urllib.parse.urlencode({**query, "cursor": first + len(page)})
            address = self._base() + urllib.parse.urlsplit(self.path).path
            headers["Link"] = f'<{address}?{following}>; rel="next"'
        self.send_json(200, page, headers)

    def _paths(self, repo: str, revision: str) -> None:
        commit = self._commit(repo, revision)
        body = self.body.decode() if self.command == "POST" else ""
        if self.headers.get("Content-Type", "").startswith("application/json"):
            paths = json.loads(body).get("paths", [])
        else:
            paths = urllib.parse.parse_qs(body).get("paths", [])
        self.send_json(200, [_describe(commit.entries[path]) for path in paths if path in commit.entries])

    def _resolve(self, repo: str, revision: str, path: str) -> None:
        commit = self._commit(repo, revision, content=True)
        entry = commit.entries.get(path)
        if entry is None:
            raise HubError(404, "EntryNotFound", "Entry not found")
        headers = _headers(commit, entry)
        if not entry.large:
            self.send_file(entry.file, f"/{repo}/resolve/{revision}/{path}", entry.etag, headers)
            return
        target = f"/storage/{repo}/{commit.sha}/{path}"
        address = f"{self._base()}{urllib.parse.quote(target)}?signature={self._sign(target)}"
        self.send_whole(302, b"", "text/plain", {**headers, "Location": address, "ETag": f'"{entry.etag}"'})

    def _storage(self, path: str, segments: list[str], query: dict[str, str]) -> None:
        self.user = "signed address"
        if len(segments) < 5 or not hmac.compare_digest(
            query.get("signature", "").encode(), self._sign(path).encode()
        ):
            raise HubError(403, "", "Access denied: this address was not signed here")
        commit = self.repositories.find("/".join(segments[1:3]), segments[3])
        entry = commit.entries.get("/".join(segments[4:])) if commit else None
        if commit is None or entry is None:
            raise HubError(404, "EntryNotFound", "Entry not found")
        # Clients since 2.0 follow a redirect to the same host and read these headers from where it ends.
        self.send_file(entry.file, path, entry.etag, _headers(commit, entry))

    def _sign(self, target: str) -> str:
        return hmac.new(self.key, target.encode(), "sha256").hexdigest()


def _headers(commit: Commit, entry: Entry) -> dict[str, str]:
    return {
        "X-Repo-Commit": commit.sha,
        "X-Linked-Size": str(entry.size),
        "X-Linked-ETag": f'"{entry.etag}"',
        "Content-Type": "application/octet-stream",
    }


def _describe(entry: Entry) -> dict[str, object]:
    """A file as the tree tells it."""
    item: dict[str, object] = {"type": "file", "oid": entry.oid, "size": entry.size, "path": entry.path}
    if entry.large:
        item["lfs"] = {"oid": entry.sha256, "size": entry.size, "pointerSize": entry.pointer_size}
    return item


def _listing(commit: Commit, below: str, recursive: bool) -> list[dict[str, object]]:
    """The files and folders under a folder ("" for the root), as the tree tells them."""
    prefix = f"{below}/" if below else ""
    folders: dict[str, dict[str, object]] = {}
    files: list[dict[str, object]] = []
    for path, entry in commit.entries.items():
        if not path.startswith(prefix):
            continue
        parents = path[len(prefix) :].split("/")[:-1]
        for depth in range(1, len(parents) + 1 if recursive else min(2, len(parents) + 1)):
            folder = prefix + "/".join(parents[:depth])
            oid = hashlib.sha1(f"{commit.sha} {folder}".encode(), usedforsecurity=False).hexdigest()
            folders[folder] = {"type": "directory", "oid": oid, "size": 0, "path": folder}
        if recursive or not parents:
            files.append(_describe(entry))
    return [*folders.values(), *files]


def main(arguments: list[str] | None = None) -> None:
    """Serve until killed."""
    parser = argparse.ArgumentParser(prog="servers.hub", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--root", type=Path, required=True, help="folder with ORG/NAME[@REF] folders")
    parser.add_argument("--bind", default="0.0.0.0")
    parser.add_argument("--port", type=int, default=8300)
    parser.add_argument("--tls-port", type=int, default=0, help="where servers.tls stands before this one")
    parser.add_argument("--control", type=Path, help="JSON file: faults, users, access; read when it changes")
    parser.add_argument("--log", type=Path, help="file that gets one JSON line a request (default: stderr)")
    options = parser.parse_args(arguments)
    HubHandler.repositories = repositories = Repositories(options.root)
    HubHandler.tls_port = options.tls_port
    # Reading every byte takes a second for each 300 MB: begun before the first client asks.
    threading.Thread(target=_warm, args=(repositories,), daemon=True).start()
    serve((options.bind, options.port), HubHandler, Control(options.control), RequestLog(options.log))


def _warm(repositories: Repositories) -> None:
    for repo in repositories.names():
        for folder in repositories.refs(repo).values():
            repositories.commit(folder)


if __name__ == "__main__":
    main()
