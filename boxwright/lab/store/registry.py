"""Putting an image into a container registry through its HTTP interface (OCI distribution specification)."""

from __future__ import annotations

import hashlib
import http.client
import json
import urllib.parse
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from boxwright.errors import UserError
from boxwright.lab.store.layers import Layer

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
#: Not compressed: the registry is on this machine, where packing takes longer than sending.
LAYER = "application/vnd.oci.image.layer.v1.tar"
#: Seconds to wait for one answer; the registry answers a layer when it has read and checked all of it.
TIMEOUT = 600


@dataclass(frozen=True)
class Answer:
    """What a registry answered. headers: names in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Registry:
    """One repository of a registry. url: like "http://127.0.0.1:5000"; name: like "vllm/vllm-openai"."""

    def __init__(self, url: str, name: str) -> None:
        self.url, self.name = url.rstrip("/"), name

    def has_blob(self, digest: str) -> bool:
        """Whether a layer or a configuration is there."""
        return self._ask("HEAD", f"/v2/{self.name}/blobs/{digest}", expected=(200, 404)).status == 200

    def digest_of(self, tag: str) -> str | None:
        """The digest of the manifest that a tag names."""
        answer = self._ask(
            "HEAD", f"/v2/{self.name}/manifests/{tag}", {"Accept": MANIFEST}, expected=(200, 404)
        )
        return answer.headers.get("docker-content-digest") if answer.status == 200 else None

    def put_layer(self, layer: Layer) -> None:
        """Send a layer, unless it is there."""
        if not self.has_blob(layer.digest):
            self._put_blob(layer.digest, layer.size, layer.read())

    def put_bytes(self, content: bytes) -> str:
        """Send a small blob, unless it is there; its digest."""
        digest = digest_of(content)
        if not self.has_blob(digest):
            self._put_blob(digest, len(content), [content])
        return digest

    def put_manifest(self, tag: str, manifest: bytes) -> None:
        """Name a manifest by a tag; everything that it names must be there."""
        self._ask(
            "PUT",
            f"/v2/{self.name}/manifests/{tag}",
            {"Content-Type": MANIFEST, "Content-Length": str(len(manifest))},
            [manifest],
            (201,),
        )

    def _put_blob(self, digest: str, size: int, content: Iterable[bytes]) -> None:
        started = self._ask(
            "POST", f"/v2/{self.name}/blobs/uploads/", {"Content-Length": "0"}, expected=(202,)
        )
        place = urllib.parse.urljoin(self.url, started.headers["location"])
        sign = "&" if "?" in place else "?"
        self._ask(
            "PUT",
            f"{place}{sign}digest={digest}",
            {"Content-Type": "application/octet-stream", "Content-Length": str(size)},
            content,
            (201,),
        )

    def _ask(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str] | None = None,
        body: Iterable[bytes] | None = None,
        expected: tuple[int, ...] = (200,),
    ) -> Answer:
        parts = urllib.parse.urlsplit(urllib.parse.urljoin(self.url, path))
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        connection = kind(parts.netloc, timeout=TIMEOUT, blocksize=1 << 20)
        try:
            target = parts._replace(scheme="", netloc="").geturl()
            connection.request(method, target, body, dict(headers or {}))
            response = connection.getresponse()
            answer = Answer(
                response.status,
                {name.lower(): value for name, value in response.getheaders()},
                response.read(),
            )
        except (OSError, http.client.HTTPException) as error:
            raise UserError(
                f"the container registry at {self.url} does not answer", why=str(error) or repr(error)
            ) from error
        finally:
            connection.close()
        if answer.status not in expected:
            raise UserError(
                f"the container registry at {self.url} refused {method} {parts.path}",
                why=f"{answer.status}: {_reasons(answer.body)}",
            )
        return answer


def manifest(config: bytes, layers: Iterable[Layer]) -> bytes:
    """The manifest of an image: the digests and sizes of its configuration and its layers."""
    return json.dumps(
        {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": {"mediaType": CONFIG, "digest": digest_of(config), "size": len(config)},
            "layers": [{"mediaType": LAYER, "digest": layer.digest, "size": layer.size} for layer in layers],
        }
    ).encode()


def digest_of(content: bytes) -> str:
    """The digest of some bytes as registries write it."""
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def _reasons(body: bytes) -> str:
    """What a registry's answer says is wrong."""
    try:
        errors = json.loads(body)["errors"]
        return "; ".join(
            f"{each.get('code')} {each.get('message')} {each.get('detail') or ''}".strip() for each in errors
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return body.decode(errors="replace")[:300] or "no reason given"
