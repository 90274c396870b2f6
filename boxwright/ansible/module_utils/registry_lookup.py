"""What a container registry says of an image, without its layers: digest, size, CUDA environment.

Protocol: OCI distribution (GET /v2/NAME/manifests/REF, /v2/NAME/blobs/DIGEST), with tokens or a login.
"""

from __future__ import annotations

import re
from typing import Any, Callable, Dict, List, NamedTuple, Optional
from urllib.parse import quote, urlencode

from ansible.module_utils.web import Answer, Reader, WebError

MANIFESTS = ", ".join(
    (
        "application/vnd.oci.image.index.v1+json",
        "application/vnd.docker.distribution.manifest.list.v2+json",
        "application/vnd.oci.image.manifest.v1+json",
        "application/vnd.docker.distribution.manifest.v2+json",
    )
)
#: Environment of an image that tells what it needs of the driver.
CUDA_ENV = ("CUDA_VERSION", "NVIDIA_REQUIRE_CUDA", "NVIDIA_DISABLE_REQUIRE")
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


class Reference(NamedTuple):
    """An image reference taken apart. version: a tag or a digest."""

    registry: str
    name: str
    version: str


def reference(text: str) -> Reference:
    """`vllm/vllm-openai:v0.29.0`, `host:5000/name@sha256:…` as Docker reads them."""
    name, _, digest = text.partition("@")
    first, slash, rest = name.partition("/")
    registry = "docker.io"
    if slash and ("." in first or ":" in first or first == "localhost"):
        registry, name = first, rest
    name, _, tag = name.partition(":")
    if registry == "docker.io" and "/" not in name:
        name = "library/" + name
    return Reference(registry, name, digest or tag or "latest")


def host_of(text: str) -> str:
    """The registry of an image's reference."""
    return reference(text).registry


class Registry:
    """Reads images.

    insecure: registries spoken to in plain HTTP, as the engine's `insecure-registries`. basic: what a
    registry is logged in to with, `base64(name:password)` by its host.
    """

    def __init__(
        self,
        reader: Reader,
        insecure: List[str],
        architecture: str,
        basic: Optional[Callable[[str], Optional[str]]] = None,
    ) -> None:
        self._reader, self._insecure, self._basic = reader, insecure, basic or (lambda host: None)
        self._architecture = ARCHITECTURES.get(architecture, architecture)

    def image(self, text: str) -> Dict[str, Any]:
        """Digest, size in bytes and CUDA environment of an image, or the reason there is nothing."""
        found: Dict[str, Any] = {"reference": text}
        try:
            where = reference(text)
            answer = self._get(where, "manifests", where.version)
            manifest = answer.json()
            found["digest"] = answer.headers.get("docker-content-digest")
            if manifest.get("manifests"):
                manifest = self._get(where, "manifests", self._platform(manifest, text)).json()
            found["size"] = sum(int(layer["size"]) for layer in manifest["layers"])
            config = self._get(where, "blobs", manifest["config"]["digest"]).json()
            found["env"] = cuda_env(config.get("config", {}).get("Env"))
        except WebError as error:
            found.update(error=error.kind, detail=error.detail)
        except (AttributeError, KeyError, TypeError, ValueError):
            found.update(error="invalid", detail="the registry's answer is no image manifest")
        return found

    def _platform(self, index: Dict[str, Any], text: str) -> str:
        for entry in index["manifests"]:
            platform = entry.get("platform") or {}
            if (platform.get("os"), platform.get("architecture")) == ("linux", self._architecture):
                return str(entry["digest"])
        raise WebError("not-found", "%s has no build for linux/%s" % (text, self._architecture))

    def _get(self, where: Reference, kind: str, version: str) -> Answer:
        host = "registry-1.docker.io" if where.registry == "docker.io" else where.registry
        scheme = "http" if where.registry in self._insecure else "https"
        url = "%s://%s/v2/%s/%s/%s" % (scheme, host, quote(where.name), kind, quote(version, safe=":"))
        headers = {"Accept": MANIFESTS} if kind == "manifests" else {}
        try:
            return self._reader.get(url, headers)
        except WebError as error:
            challenge, login = error.headers.get("www-authenticate", ""), self._basic(where.registry)
            kind = challenge.lower().partition(" ")[0] if error.status == 401 else ""
            # Docker gives a registry that is declared to have no TLS the password all the same.
            if kind == "basic" and login:
                return self._reader.get(url, headers, "Basic " + login)
            if kind != "bearer":
                raise
            return self._reader.get(url, headers, "Bearer " + self._token(challenge, login))

    def _token(self, challenge: str, login: Optional[str]) -> str:
        asked = dict(re.findall(r'(\w+)="([^"]*)"', challenge))
        realm = asked.pop("realm", "")
        if not realm.startswith("https://"):
            raise WebError("unauthorized", "the registry asks for a login that is not anonymous", 401)
        secret = "Basic " + login if login else ""
        answer = self._reader.get(realm + "?" + urlencode(asked), secret=secret).json()
        token: Optional[str] = None
        if isinstance(answer, dict):
            token = answer.get("token") or answer.get("access_token")
        if not token:
            raise WebError("unauthorized", "the registry gives no token", 401)
        return token


def cuda_env(entries: Any) -> Dict[str, str]:
    """What of an image's `NAME=value` list tells CUDA."""
    pairs = (str(entry).partition("=") for entry in entries or [])
    return {name: text for name, _, text in pairs if name in CUDA_ENV}
