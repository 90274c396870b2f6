"""Docker Engine through its API on the local socket: what it is, its images and containers, watched pulls."""

from __future__ import annotations

import base64
import http.client
import json
import socket
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Tuple
from urllib.parse import quote, urlencode

from ansible.module_utils import registry_logins
from ansible.module_utils.command import run
from ansible.module_utils.registry_logins import Login, LoginError

SOCKET = "/run/docker.sock"


class DockerError(Exception):
    """The engine cannot be reached, or refused. status: HTTP status, 0 when it cannot be reached."""

    def __init__(self, text: str, status: int = 0) -> None:
        super().__init__(text)
        self.status = status


class Reference(NamedTuple):
    """An image by name. registry: None for Docker Hub; repository: with the registry, as Docker prints it."""

    repository: str
    tag: Optional[str]
    digest: Optional[str]

    @property
    def registry(self) -> Optional[str]:
        """The registry's host and port; None for Docker Hub."""
        first = self.repository.partition("/")[0]
        return (
            first
            if "/" in self.repository and ("." in first or ":" in first or first == "localhost")
            else None
        )

    def pinned(self, digest: str) -> str:
        """The image by content: `repository@sha256:…`."""
        return "%s@%s" % (self.repository, digest)


def parse_reference(image: str) -> Reference:
    """Take `[registry/]name[:tag][@digest]` apart as Docker does."""
    rest, _, digest = image.partition("@")
    head, slash, last = rest.rpartition("/")
    name, _, tag = last.partition(":")
    repository = head + slash + name
    for hub in ("docker.io/", "index.docker.io/"):
        if repository.startswith(hub):
            repository = repository[len(hub) :]
    if repository.startswith("library/"):
        repository = repository[len("library/") :]
    return Reference(repository, tag or (None if digest else "latest"), digest or None)


class Image(NamedTuple):
    """An image on this host. digest: of its manifest, None where it never was in a registry; size: bytes."""

    id: str
    digest: Optional[str]
    size: int

    def reference(self, image: str) -> str:
        """What to run so that exactly these bytes run."""
        return parse_reference(image).pinned(self.digest) if self.digest else self.id


class _Connection(http.client.HTTPConnection):
    """HTTP over the engine's Unix socket."""

    def __init__(self, path: str, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class Docker:
    """The engine that listens on a socket."""

    def __init__(self, path: str = SOCKET, timeout: float = 60) -> None:
        self._path, self._timeout = path, timeout

    def version(self) -> str:
        """The engine's version, `26.1.5`. Raises DockerError when it does not answer."""
        return str(self.about().get("Version", ""))

    def about(self) -> Dict[str, Any]:
        """The server's part of what `docker version` shows."""
        found: Dict[str, Any] = self._get("/version")
        return found

    def info(self) -> Dict[str, Any]:
        """What `docker info` shows."""
        found: Dict[str, Any] = self._get("/info")
        return found

    def image(self, image: str) -> Optional[Image]:
        """An image on this host by name, digest or id; None when it is not here."""
        found = self.inspected(image)
        if found is None:
            return None
        asked = parse_reference(image)
        digests = [
            entry.partition("@")[2]
            for entry in found.get("RepoDigests") or []
            if parse_reference(entry).repository == asked.repository
        ]
        # One content may have had several manifests; the one that was asked for is the one meant.
        digest = asked.digest if asked.digest in digests else (digests[0] if digests else None)
        return Image(found["Id"], digest, int(found.get("Size") or 0))

    def inspected(self, image: str) -> Optional[Dict[str, Any]]:
        """What `docker image inspect` shows of an image; None when it is not here."""
        try:
            found: Dict[str, Any] = self._get("/images/%s/json" % quote(image, safe="/:@"))
        except DockerError as error:
            if error.status == 404:
                return None
            raise
        return found

    def names(self, image: str) -> List[str]:
        """Every name of an image on this host, tags first: what must go for its layers to go."""
        found = self.inspected(image) or {}
        return [*(found.get("RepoTags") or []), *(found.get("RepoDigests") or [])]

    def remove_image(self, name: str) -> bool:
        """Take one name from an image, and its layers with the last one; False where a container needs it."""
        try:
            self._ask("DELETE", "/images/%s" % quote(name, safe="/:@"))
        except DockerError as error:
            if error.status in (404, 409):
                return False
            raise
        return True

    def remove_network(self, name: str) -> bool:
        """Take a network away; False where there is none, or something is on it."""
        try:
            self._ask("DELETE", "/networks/%s" % quote(name, safe=""))
        except DockerError as error:
            if error.status in (403, 404, 409):
                return False
            raise
        return True

    def container(self, name: str) -> Optional[Dict[str, Any]]:
        """What `docker inspect` shows of a container; None when there is none of that name."""
        try:
            found: Dict[str, Any] = self._get("/containers/%s/json" % quote(name, safe=""))
        except DockerError as error:
            if error.status == 404:
                return None
            raise
        return found

    def remove_container(self, name: str) -> None:
        """Have no container of that name, whatever it does."""
        try:
            self._ask("DELETE", "/containers/%s?force=true" % quote(name, safe=""))
        except DockerError as error:
            # 409: Docker is at its removal already.
            if error.status not in (404, 409):
                raise

    def running(self) -> Dict[str, str]:
        """Names of the running containers, with their images."""
        return {entry["Names"][0].lstrip("/"): entry.get("Image", "") for entry in self.listed()}

    def listed(self) -> List[Dict[str, Any]]:
        """The running containers, with their names, ports and images."""
        found: List[Dict[str, Any]] = self._get("/containers/json")
        return found

    def pull(self, image: str, on_event: Callable[[Dict[str, Any]], None], idle_timeout: float) -> None:
        """Fetch an image, handing on the engine's progress events.

        idle_timeout: seconds without any event after which it counts as stuck. Raises DockerError.
        """
        reference = parse_reference(image)
        # The engine's API takes a digest in the place of a tag.
        query = urlencode(
            {"fromImage": reference.repository, "tag": reference.digest or reference.tag or "latest"}
        )
        headers = {}
        try:
            login = registry_logins.find(reference.registry)
        except LoginError as error:
            raise DockerError(str(error)) from error
        if login:
            document = json.dumps(login.to_api()).encode()
            headers["X-Registry-Auth"] = base64.urlsafe_b64encode(document).decode()
        for event in self._stream("POST", "/images/create?" + query, headers, idle_timeout):
            if "error" in event:
                raise DockerError(str(event.get("errorDetail", {}).get("message") or event["error"]), 500)
            on_event(event)

    def login(self, login: Login) -> None:
        """Have the engine try a login at its registry. Raises DockerError with what that says."""
        self._ask("POST", "/auth", json.dumps(login.to_api()))

    def _get(self, path: str) -> Any:
        return self._ask("GET", path)

    def _ask(self, method: str, path: str, body: Optional[str] = None) -> Any:
        status, text = 0, b""
        connection = _Connection(self._path, self._timeout)
        try:
            headers = {"Content-Type": "application/json"} if body else {}
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            status, text = response.status, response.read()
            document = json.loads(text) if text.strip() or status != 204 else {}
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise self._unreachable(error) from error
        finally:
            connection.close()
        if status not in (200, 204):
            raise DockerError(_message(document, status), status)
        return document

    def _stream(
        self, method: str, path: str, headers: Dict[str, str], timeout: float
    ) -> Iterator[Dict[str, Any]]:
        connection = _Connection(self._path, timeout)
        try:
            connection.request(method, path, headers=headers)
            response = connection.getresponse()
            if response.status != 200:
                text = response.read()
                try:
                    document = json.loads(text)
                except ValueError:
                    document = {"message": text.decode("utf-8", "replace").strip()}
                raise DockerError(_message(document, response.status), response.status)
            while True:
                line = response.readline()
                if not line:
                    return
                if line.strip():
                    yield json.loads(line)
        except socket.timeout as error:
            raise DockerError("nothing came for %g s" % timeout) from error
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise self._unreachable(error) from error
        finally:
            connection.close()

    def _unreachable(self, error: Exception) -> DockerError:
        return DockerError("Docker does not answer on %s: %s" % (self._path, error))


def executed(container: str, *argv: str) -> Tuple[int, str]:
    """Run a program in a running container; its exit status and what it said."""
    done = run(["docker", "exec", container, *list(argv)], timeout=60)
    return done.rc, done.text


def _message(document: Any, status: int) -> str:
    return str(document.get("message") if isinstance(document, dict) else document) or "HTTP %d" % status
