"""Why an image could not be fetched, in a person's words, with the way out."""

from __future__ import annotations

import re
from typing import NamedTuple, Optional, Sequence, Tuple


class Problem(NamedTuple):
    """What went wrong and what to do about it."""

    what: str
    fix: str


#: What the engine or the registry says -> what that means. {registry}, {image} and {said} are filled in.
_KINDS: Sequence[Tuple[str, str, str]] = (
    (
        r"proxyconnect|Proxy Authentication Required",
        "Docker's proxy does not lead to {registry} ({said})",
        "correct box_proxy (address, port, name and password), or name the registry in box_no_proxy",
    ),
    (
        r"server gave HTTP response to HTTPS client",
        "{registry} speaks plain HTTP, and Docker asks it for TLS",
        "give the registry a certificate, or trust it as it is: "
        'container_runtime_daemon_config: {{insecure-registries: ["{registry}"]}}',
    ),
    (
        r"x509|certificate signed by unknown authority|certificate has expired|tls: ",
        "the certificate of {registry} is not trusted here ({said})",
        "declare its authority: container_runtime_registries: [{{host: {registry}, ca: …}}], or box_ca "
        "for all of them; is the box's clock right?",
    ),
    (
        r"no space left on device",
        "the disk under Docker's data root is full",
        "make room there: docker system df shows what there is, docker image prune -a removes unused images",
    ),
    (
        r"toomanyrequests|rate limit",
        "{registry} counts too many downloads from this address",
        "wait, log in (container_runtime_registries: [{{host: docker.io, username: …, password: …}}]), or "
        "set a mirror: "
        "container_runtime_daemon_config: {{registry-mirrors: [...]}}",
    ),
    (
        r"no matching manifest for",
        "{image} is not made for this machine's architecture",
        "name a tag that is",
    ),
    (
        r"unauthorized|authentication required|denied|no basic auth credentials|forbidden",
        "{registry} does not give {image} without a login, or has no such repository ({said})",
        "check the name, and declare the login: container_runtime_registries: [{{host: {registry}, "
        "username: …, password: …}}]",
    ),
    (
        r"manifest unknown|manifest for .* not found|not found: manifest|name unknown|repository .* not found"
        r"|not found$",
        "{registry} has no {image}",
        "check name and tag; a digest that is gone was deleted there: resolve it anew (invoke update)",
    ),
    (
        r"no such host|server misbehaving|Temporary failure in name resolution|name resolution",
        "the name {registry} cannot be resolved on the box ({said})",
        "check the name, and the box's DNS",
    ),
    (
        r"connection refused|i/o timeout|no route to host|network is unreachable|Client\.Timeout"
        r"|TLS handshake timeout"
        r"|deadline exceeded|connection reset|EOF$|nothing came for",
        "{registry} cannot be reached from the box ({said})",
        "check the box's network, box_proxy and the registry",
    ),
    (r"Docker does not answer on", "{said}", "see: systemctl status docker"),
)


def diagnose(said: str, image: str, registry: Optional[str]) -> Problem:
    """The meaning of an error text. registry: None for Docker Hub."""
    shown = " ".join(said.split())
    shown = shown if len(shown) <= 300 else shown[:300] + " …"
    for pattern, what, fix in _KINDS:
        if re.search(pattern, said, re.IGNORECASE):
            values = {"registry": registry or "docker.io", "image": image, "said": shown}
            return Problem(what.format(**values), fix.format(**values))
    return Problem("Docker could not fetch %s: %s" % (image, shown), "see: journalctl -u docker")


def login_problem(said: str, registry: str, username: str) -> str:
    """Why a login did not work and what to do, as one message."""
    found = diagnose(said, registry, registry)
    what, fix = found
    if re.search(r"unauthorized|denied|incorrect username|forbidden|40[13]", said, re.IGNORECASE):
        what = "%s does not accept the login of %s (%s)" % (registry, username, " ".join(said.split())[:300])
        fix = "correct username and password of %s in container_runtime_registries" % registry
    elif found.what.startswith("Docker could not fetch"):
        what, fix = "the login to %s failed: %s" % (registry, " ".join(said.split())[:300]), found.fix
    return "%s\nNothing was kept of it. Do: %s" % (what, fix)
