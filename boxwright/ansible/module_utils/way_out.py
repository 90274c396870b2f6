"""How this host reaches what it fetches: through which proxy, what without one, trusting whom."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import tempfile
from typing import Any, Dict, Iterator, List, Optional, Sequence

from ansible.module_utils.command import read, write

#: What is declared where the controller itself is the proxy, for as long as its run lasts; and where it then
#: stands on the host, at the end of a tunnel (boxwright/cli/tunnel.py). The same in boxwright/spec/box.py.
CONTROLLER, AT_CONTROLLER = "controller", "http://127.0.0.1:3129"
#: Never reached through a proxy.
LOOPBACK = ["localhost", "127.0.0.1", "::1"]
#: The system's bundle of authorities, where distributions keep it.
BUNDLES = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt")
#: What leads programs with a bundle of their own (pip, the hub's client) to another one.
BUNDLE_VARIABLES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "PIP_CERT")
#: A name and a password in an address, with the @ behind them.
_LOGIN = re.compile(r"://([^/\s@\"]+@)")


def address(declared: Optional[str]) -> str:
    """The proxy's address for what is declared; "" for none."""
    return AT_CONTROLLER if declared == CONTROLLER else declared or ""


def direct(no_proxy: Sequence[str]) -> List[str]:
    """What is reached without the proxy: this host, and what is declared."""
    return list(dict.fromkeys([*LOOPBACK, *no_proxy]))


def variables(proxy: str, no_proxy: Sequence[str]) -> Dict[str, str]:
    """The environment's variables for a proxy's address, in both spellings; none without one."""
    if not proxy:
        return {}
    lower = {"http_proxy": proxy, "https_proxy": proxy, "no_proxy": ",".join(direct(no_proxy))}
    return dict(lower, **{name.upper(): text for name, text in lower.items()})


def bundle() -> Dict[str, str]:
    """Variables that let every program trust whom the system trusts; what somebody has set stays."""
    path = next((path for path in BUNDLES if os.path.exists(path)), None)
    return {name: path for name in BUNDLE_VARIABLES if path and name not in os.environ}


def take(declared: Optional[str], no_proxy: Sequence[str]) -> str:
    """Go this way, with all that this process starts: its environment says so. The proxy's address.

    Without a declared proxy the environment's own stays.
    """
    proxy = address(declared)
    os.environ.update(variables(proxy, no_proxy))
    os.environ.update(bundle())
    return proxy


def follow(module: Any) -> None:
    """`take` for a module's parameters; its parameter `proxy` is the address then."""
    hide_logins(module)
    module.params["proxy"] = take(module.params["proxy"], module.params["no_proxy"])


def hide_logins(module: Any) -> None:
    """Keep names and passwords in addresses out of what a module tells, its parameters (`-vvv`) among it."""
    module.no_log_values.update(login for text in _texts(module.params) for login in _LOGIN.findall(text))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list, tuple)):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _texts(one)


@contextlib.contextmanager
def trusting(authorities: str) -> Iterator[str]:
    """While the block runs, this process also trusts those of a PEM text. The path of a bundle for others.

    For check mode, in which the host does not trust yet whom it is to trust.
    """
    place, before = tempfile.mkdtemp(prefix="boxwright-trust-"), dict(os.environ)
    try:
        os.chmod(place, 0o755)  # apt fetches as the user _apt
        path = place + "/bundle.pem"
        system = next(filter(None, map(read, BUNDLES)), "")
        write(path, "%s\n%s\n" % (system, authorities))
        os.environ.update(dict.fromkeys(BUNDLE_VARIABLES, path))
        yield path
    finally:
        os.environ.clear()
        os.environ.update(before)
        shutil.rmtree(place, ignore_errors=True)
