"""What images and hosts take over from this machine: certificates, proxies, the proxy settings of apt."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from boxwright.errors import UserError
from boxwright.lab.payload import Payload
from boxwright.lab.programs import find

CERTIFICATES = Path("/usr/local/share/ca-certificates")
PROXY_NAMES = ("http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "no_proxy")
APT_PROXY = "/etc/apt/apt.conf.d/90lab-proxy"


def certificates(directory: Path = CERTIFICATES) -> list[Payload]:
    """The certificates that this machine's administrator added, for the same place in a container."""
    found = []
    for path in sorted(directory.rglob("*.crt")) if directory.is_dir() else []:
        try:
            found.append(Payload(f"{CERTIFICATES}/{path.relative_to(directory)}", path.read_bytes()))
        except OSError as error:
            raise UserError(
                "a certificate of this machine cannot be read", where=str(path), why=error.strerror
            ) from error
    return found


def proxy_environment(environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """The proxy variables of this machine's environment, in both spellings."""
    source = os.environ if environment is None else environment
    found: dict[str, str] = {}
    for name in PROXY_NAMES:
        if value := source.get(name) or source.get(name.upper()):
            found |= {name: value, name.upper(): value}
    return found


def apt_proxy() -> list[Payload]:
    """This machine's proxies of apt, as a configuration file of a container; nothing where it has none."""
    config = find("apt-config")
    if config is None:
        return []
    done = subprocess.run(
        [config, "dump", "Acquire"], capture_output=True, text=True, timeout=20, check=False
    )
    wanted = [
        line
        for line in done.stdout.splitlines()
        if line.startswith(("Acquire::http::Proxy ", "Acquire::https::Proxy ")) and '""' not in line
    ]
    return [Payload.text(APT_PROXY, "\n".join(wanted) + "\n")] if wanted else []


def proxy_files(environment: Mapping[str, str], direct: str) -> list[Payload]:
    """The files that give a host the machine's proxies, for logins, sudo and services.

    direct: names and networks reached without proxy, beside those that the machine excepts; by commas.
    """
    if not environment:
        return []
    excepted = [word.strip() for word in f"{environment.get('no_proxy', '')},{direct}".split(",")]
    without = ",".join(dict.fromkeys(filter(None, excepted)))
    values = sorted({**environment, "no_proxy": without, "NO_PROXY": without}.items())
    names = " ".join(name for name, _ in values)
    return [
        Payload.text("/etc/environment", "".join(f'{name}="{value}"\n' for name, value in values)),
        Payload.text("/etc/sudoers.d/lab-proxy", f'Defaults env_keep += "{names}"\n', mode=0o440),
        Payload.text(
            "/etc/systemd/system.conf.d/lab-proxy.conf",
            "[Manager]\n"
            + "".join(f"DefaultEnvironment={_systemd_word(f'{name}={value}')}\n" for name, value in values),
        ),
    ]


def loopback_proxies(environment: Mapping[str, str]) -> list[str]:
    """The variables whose proxy listens on this machine's loopback, where no container reaches it."""
    return sorted(
        name
        for name, value in environment.items()
        if name.islower()
        and name != "no_proxy"
        and any(f"//{host}" in value or f"@{host}" in value for host in ("127.", "localhost", "[::1]"))
    )


def _systemd_word(text: str) -> str:
    """A value as one quoted word of a systemd configuration file."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%") + '"'
