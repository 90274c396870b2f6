"""The proxy through which the Docker daemon fetches: its unit's drop-in, and root's own file of variables.

The variables stand in a file that root alone reads, not in the unit: systemd shows a unit's settings to every
user (systemctl show), and a proxy's address may hold a password.
"""

from __future__ import annotations

import os
import re
from typing import List, NamedTuple, Optional

from ansible.module_utils import systemctl, way_out
from ansible.module_utils.command import read, write
from ansible.module_utils.systemd_unit import specifiers

#: Beside the unit files of the system; a test has its own.
DROP_IN = "/etc/systemd/system/docker.service.d/boxwright-proxy.conf"
_MARK = "# Kept by Boxwright; edits are overwritten.\n"


class Proxy(NamedTuple):
    """What is wanted. variables: text of the file of variables, None for no proxy; path: where it lies."""

    variables: Optional[str]
    path: str

    @property
    def _drop_in(self) -> Optional[str]:
        return None if self.variables is None else drop_in_text(self.path)

    @property
    def changed(self) -> bool:
        """Whether anything is not as wanted."""
        return bool(self.variables != read(self.path) or self._drop_in != read(DROP_IN))

    def apply(self) -> None:
        """Write both, or take both away. Raises UnitError where systemd does not take them."""
        if not self.changed:
            return
        for path, text, mode in ((self.path, self.variables, 0o600), (DROP_IN, self._drop_in, 0o644)):
            if text is not None:
                write(path, text, mode)
            elif os.path.exists(path):
                os.unlink(path)
        systemctl.call("daemon-reload")


#: What no line of a file of variables can hold.
_CONTROL = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")


#: systemd takes wildcards in a file's name, by the rules of glob(3).
_WILD = re.compile(r"[*?\[\\]")


class ProxyError(Exception):
    """A proxy, or a name that is reached without it, cannot be kept for Docker; the text says which."""


def variables_text(proxy: Optional[str], no_proxy: List[str]) -> Optional[str]:
    """The file of variables (systemd.exec(5), "EnvironmentFile"); None without a proxy."""
    if not proxy:
        return None
    if _CONTROL.search(proxy) or " " in proxy:
        raise ProxyError("box_proxy holds white space or a control character: it must be one address")
    for name in no_proxy:
        if _CONTROL.search(name):
            raise ProxyError(
                "box_no_proxy: %s holds a line break or another control character" % ascii(name[:60])
            )
    variables = {"HTTP_PROXY": proxy, "HTTPS_PROXY": proxy, "NO_PROXY": ",".join(way_out.direct(no_proxy))}
    lines = ['%s="%s"' % (name, re.sub(r'(["\\`$])', r"\\\1", text)) for name, text in variables.items()]
    return _MARK + "\n".join(lines) + "\n"


def drop_in_text(path: str) -> str:
    """The unit's drop-in that reads the file of variables, and lets Docker start where it is gone."""
    try:
        return _MARK + "[Service]\nEnvironmentFile=-%s\n" % _WILD.sub(r"\\\g<0>", specifiers(path))
    except ValueError as error:
        raise ProxyError("box_config_dir: %s" % error) from error
