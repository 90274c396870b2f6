"""Root's logins to container registries, and the authorities that Docker trusts for them."""

from __future__ import annotations

import base64
import binascii
import glob
import json
import os
import pwd
import re
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple

from ansible.module_utils.command import read, run
from ansible.module_utils.daemon_json import ConfigError, Receipt, merge, parse

#: Docker Hub, by the name under which its logins are kept.
HUB_KEY = "https://index.docker.io/v1/"
#: Below it a directory a registry; every *.crt in it is an authority's.
CERTIFICATES = "/etc/docker/certs.d"
#: Ours, beside what others put there.
OUR_CERTIFICATE = "boxwright.crt"
#: Beside Boxwright's other records, for root alone.
RECORD = "registry-logins.json"


#: `name`, `name:port`, `[address]:port`.
_HOST = re.compile(r"(?:[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?")
_PORT = re.compile(r":[0-9]{1,5}$")
_HALF = re.compile("[\ud800-\udfff]")
_CONTROL = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")


class LoginError(Exception):
    """A login cannot be read or kept; the text says where and why."""


class Login(NamedTuple):
    """Name and password for a registry. key: as Docker keeps it."""

    key: str
    username: str
    password: str

    @property
    def basic(self) -> str:
        """Both in one, as HTTP and Docker's file have them."""
        return base64.b64encode(("%s:%s" % (self.username, self.password)).encode("utf-8")).decode("ascii")

    def to_api(self) -> Dict[str, str]:
        """In the shape of the engine's API."""
        return {"username": self.username, "password": self.password, "serveraddress": self.key}


def mistakes(registry: Dict[str, Any]) -> Iterator[str]:
    """What of a declared registry cannot be used, without a word of its secret.

    Its host becomes a directory's name (/etc/docker/certs.d) and a name of daemon.json: `..` or a slash in it
    would lead elsewhere. A colon ends the name of a login (RFC 7617), and control characters are not in it.
    """
    host, username, password = registry["host"], registry["username"], registry["password"]
    port = _PORT.search(host)
    if not _HOST.fullmatch(host) or ".." in host or (port and int(port.group()[1:]) > 65535):
        yield "host %s is no registry as image names have it (registry.example.org:5000)" % ascii(host[:60])
        return
    if username and (":" in username or _CONTROL.search(username)):
        yield "the username for %s holds a colon, a line break or another control character" % host
    if password and _CONTROL.search(password):
        yield "the password for %s holds a line break or another control character" % host
    if registry["ca"] and _HALF.search(registry["ca"]):
        yield "ca of %s holds half a character" % host


def key_of(registry: Optional[str]) -> str:
    """The name under which a registry's login is kept; None is Docker Hub."""
    return HUB_KEY if registry in (None, "docker.io", "index.docker.io") else str(registry)


def config_path() -> str:
    """The file of root's logins. HOME is not asked: under sudo it may be another user's."""
    folder = os.environ.get("DOCKER_CONFIG") or os.path.join(pwd.getpwuid(os.geteuid()).pw_dir, ".docker")
    return os.path.join(folder, "config.json")


def find(registry: Optional[str]) -> Optional[Login]:
    """What `docker login` left for a registry; None for nothing. Raises LoginError."""
    path = config_path()
    try:
        config = parse(read(path), path)
    except (ConfigError, OSError) as error:
        raise LoginError("root's registry logins cannot be read: %s" % error) from error
    key = key_of(registry)
    helper = _helper(config, key)
    if helper:
        done = run(["docker-credential-%s" % helper, "get"], stdin=key, timeout=30)
        if done.rc:
            return None
        try:
            found = json.loads(done.stdout)
            return Login(key, str(found["Username"]), str(found["Secret"]))
        except (ValueError, KeyError, TypeError) as error:
            raise LoginError("docker-credential-%s gives no login that can be read" % helper) from error
    return _kept(config, key, path)


def wanted(config: Dict[str, Any], logins: List[Login]) -> Dict[str, Any]:
    """What the file must hold for some logins, beside all that is in it."""
    found: Dict[str, Any] = {}
    for login in logins:
        found.setdefault("auths", {})[login.key] = {"auth": login.basic}
        if _helper(config, login.key):
            # An empty helper for one registry: its login stands in this file, not in the store of all others.
            found.setdefault("credHelpers", {})[login.key] = ""
    return found


def with_logins(
    config: Dict[str, Any], logins: List[Login], receipt: Receipt
) -> Tuple[Dict[str, Any], Receipt]:
    """The file's new content. Raises LoginError, ConfigError where what is there cannot be kept."""
    for login in logins:
        if entry(config, login.key).get("identitytoken"):
            raise LoginError(
                "root is logged in to %s by a token, which goes before any password: docker logout %s first"
                % (login.key, login.key)
            )
    clean = merge(config, {}, receipt)[0]
    result: Tuple[Dict[str, Any], Receipt] = merge(config, wanted(clean, logins), receipt)
    return result


def registries(receipt: Receipt) -> List[str]:
    """The registries of a receipt's logins."""
    return sorted({entry.path[1] for entry in receipt.entries if entry.path[:1] == ("auths",)})


def our_certificates() -> List[str]:
    """Registries for which an authority was declared."""
    paths = glob.glob(os.path.join(CERTIFICATES, "*", OUR_CERTIFICATE))
    return sorted(os.path.basename(os.path.dirname(path)) for path in paths)


def authorities(registry: str) -> List[str]:
    """The authorities that Docker trusts for a registry beside the system's, as PEM texts."""
    paths = sorted(glob.glob(os.path.join(CERTIFICATES, glob.escape(registry), "*.crt")))
    return [text for text in map(read, paths) if text]


def kept(config_dir: str) -> List[str]:
    """Registries that Boxwright logged in to, or trusts, on this host: names alone."""
    path = os.path.join(config_dir, RECORD)
    try:
        known = registries(Receipt.load(read(path), path))
    except (ConfigError, OSError, IndexError):
        known = []
    return sorted({*known, *our_certificates()})


def entry(config: Dict[str, Any], key: str) -> Dict[str, Any]:
    """What the file has of a registry; nothing where that, or what should hold it, has another shape."""
    auths = config.get("auths")
    found = auths.get(key) if isinstance(auths, dict) else None
    return found if isinstance(found, dict) else {}


def _helper(config: Dict[str, Any], key: str) -> str:
    """The program that keeps a registry's login; "" for this very file, also where it is said for one."""
    helpers = config.get("credHelpers")
    if isinstance(helpers, dict) and key in helpers:
        return str(helpers[key] or "")
    return str(config.get("credsStore") or "")


def _kept(config: Dict[str, Any], key: str, path: str) -> Optional[Login]:
    encoded = entry(config, key).get("auth")
    if not encoded:
        return None
    try:
        text = base64.b64decode(str(encoded), validate=True).decode("utf-8")
    except (binascii.Error, UnicodeDecodeError) as error:
        raise LoginError("%s: the login of %s is no base64: docker login %s" % (path, key, key)) from error
    username, colon, password = text.partition(":")
    if not colon:
        raise LoginError("%s: the login of %s has no password: docker login %s" % (path, key, key))
    return Login(key, username, password)
