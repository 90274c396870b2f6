"""A way to a port that only the box itself reaches: a socket here, for this user alone."""

from __future__ import annotations

import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from boxwright.errors import UserError

CONNECT_S = 20
#: Seconds for ssh to log in and to listen, and to end.
PATIENCE_S, END_S = 45.0, 5.0
POLL_S = 0.05
#: A connection of its own, which ends with this one; asks nobody anything.
OPTIONS = (
    "-T", "-o", "BatchMode=yes", "-o", "ControlMaster=no", "-o", "ControlPath=none",
    "-o", "ExitOnForwardFailure=yes", "-o", "ServerAliveInterval=15", "-o", f"ConnectTimeout={CONNECT_S}",
)  # fmt: skip


@contextmanager
def forwarded(host: str, words: Sequence[str], address: str, port: int) -> Iterator[Path]:
    """The path of a socket that leads to `address`:`port` as the box sees it. Raises UserError.

    words: of the ssh command that reaches the box (ssh_route.ssh_words). The far end is a `cat` that reads
    from this process: however this one ends, that ends, and ssh with it.
    """
    with tempfile.TemporaryDirectory(prefix="boxwright-") as scratch:
        path, said = Path(scratch) / "endpoint", Path(scratch) / "said"
        there = f"[{address}]" if ":" in address else address
        argv = [words[0], *OPTIONS, "-L", f"{path}:{there}:{port}", *words[1:], "cat"]
        with said.open("wb") as stderr:
            # Its own session: Ctrl-C is to stop an answer, not the way to it.
            ssh = subprocess.Popen(
                argv,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                start_new_session=True,
            )
        try:
            _await(ssh, path, host, said)
            yield path
        finally:
            if ssh.stdin:
                ssh.stdin.close()
            try:
                ssh.wait(END_S)
            except subprocess.TimeoutExpired:
                ssh.kill()
                ssh.wait()


def _listens(path: Path) -> bool:
    """Whether somebody takes connections there; ssh names its socket a moment before it listens on it."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(CONNECT_S)
        try:
            probe.connect(str(path))
        except OSError:
            return False
        return True


def _await(ssh: subprocess.Popen[bytes], path: Path, host: str, said: Path) -> None:
    until = time.monotonic() + PATIENCE_S
    while not _listens(path):
        ended = ssh.poll() is not None
        if ended or time.monotonic() >= until:
            lines = said.read_text(errors="replace").split("\n")
            raise UserError(
                "no way to its endpoint over SSH",
                where=host,
                why=next((line.strip() for line in reversed(lines) if line.strip()), None)
                or ("ssh ended" if ended else f"ssh did not listen within {PATIENCE_S:.0f} s"),
                ways_out=("see that its sshd allows forwarding: AllowTcpForwarding yes",),
            )
        time.sleep(POLL_S)
