"""The way out of boxes that have none but their controller: a proxy here, at the end of a tunnel of SSH's.

`box_proxy: controller` leads everything that a box fetches to a port of its own loopback. For as long as a
run lasts, ssh carries that port to a proxy on this machine; before and after it nothing listens there.
"""

from __future__ import annotations

import contextlib
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from boxwright.cli.ssh_route import ssh_words
from boxwright.errors import UserError
from boxwright.spec import inventory
from boxwright.spec.box import AT_CONTROLLER, CONTROLLER
from boxwright.texts import printable

#: The playbooks that fetch, or ask what there is to fetch; the first of them cannot do without.
PROVISION = "provision.yml"
FETCHING = (
    PROVISION,
    *("plan.yml", "facts.yml", "update.yml", "verify.yml", "doctor.yml", "page.yml", "report.yml"),
    *("tune_begin.yml", "tune_try.yml"),
)
#: Seconds for ssh's first try, for a box that refuses to think better of it, between two tries, and for ssh
#: to end.
FIRST_TRY_S, PATIENCE_S, AGAIN_S, END_S = 30.0, 30.0, 1.0, 5.0
OPTIONS = {
    "BatchMode": "yes",
    "ExitOnForwardFailure": "yes",
    # A connection of its own: one that others share outlives the run, and its tunnel would too.
    "ControlMaster": "no",
    "ControlPath": "none",
    "ConnectTimeout": "10",
    "ServerAliveInterval": "15",
    "ServerAliveCountMax": "3",
}
#: Says that the tunnel stands, and ends with this process: its input is ours.
STANDS = "boxwright: the tunnel stands"
REMOTE = f"echo '{STANDS}'; exec cat >/dev/null"


@contextlib.contextmanager
def tunnels(playbook: str, hosts: Sequence[str], inventories: Sequence[Path]) -> Iterator[None]:
    """While the block runs, those of the hosts that declare it go out through this machine.

    Raises UserError where a box lets SSH in and no tunnel out, and the playbook has to fetch; another run's
    tunnel serves what only asks. A box that cannot be reached is left to the run to tell.
    """
    wanted = _wanted(hosts, inventories) if playbook in FETCHING else {}
    if not wanted:
        yield
        return
    # A web server's libraries are imported where there is one.
    from boxwright.cli.forward_proxy import ForwardProxy

    with ForwardProxy() as proxy, contextlib.ExitStack() as stack:
        opened = [stack.enter_context(Tunnel(name, own, proxy.port)) for name, own in wanted.items()]
        for one in opened:
            one.await_standing(PATIENCE_S if playbook == PROVISION else 0)
        yield


def _wanted(hosts: Sequence[str], inventories: Sequence[Path]) -> dict[str, Mapping[str, object]]:
    """The variables of the hosts that declare the controller to be their way out."""
    known = inventory.load([path for path in inventories if path.exists()])
    ways = {name: known.variables(name) for name in hosts if name in known.hosts}
    return {name: own for name, own in ways.items() if own.get("box_proxy") == CONTROLLER}


def command(host: str, variables: Mapping[str, object], port: int) -> list[str]:
    """The ssh command that carries the box's port to the proxy at `port` here."""
    ssh, *rest = ssh_words(host, variables)
    options = [word for name, text in OPTIONS.items() for word in ("-o", f"{name}={text}")]
    at = AT_CONTROLLER.removeprefix("http://")
    return [ssh, *options, "-T", "-R", f"{at}:127.0.0.1:{port}", *rest, REMOTE]


class Tunnel:
    """One box's; made again where it breaks, as when the box reboots, until the `with` block ends."""

    def __init__(self, host: str, variables: Mapping[str, object], port: int) -> None:
        self.host, self._command = host, command(host, variables, port)
        self._tried, self._stands, self._over = threading.Event(), threading.Event(), threading.Event()
        self._said: list[str] = []
        self._running: subprocess.Popen[str] | None = None
        self._thread = threading.Thread(target=self._keep, daemon=True)

    def __enter__(self) -> Tunnel:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self._running is not None:
            with contextlib.suppress(OSError):
                self._running.terminate()
        self._thread.join(END_S)

    def await_standing(self, patience: float) -> None:
        """Wait until it stands, or until the box turned out to be out of reach.

        patience: seconds for a box that refuses it to think better of it, then UserError; 0 to go on without.
        """
        self._tried.wait(FIRST_TRY_S)
        if self._stands.is_set() or not (patience and self._refusal()):
            return
        if not self._stands.wait(patience) and (refused := self._refusal()):
            raise UserError(
                "the box does not let its way out be carried here (box_proxy: controller)",
                where=self.host,
                why=printable(refused),
                ways_out=(
                    "see that sshd there allows it: AllowTcpForwarding yes (or remote) in its sshd_config",
                    f"see what listens on {AT_CONTROLLER.removeprefix('http://')} there: "
                    "another run of Boxwright on this box, which has to end first, or something else",
                ),
            )

    def _refusal(self) -> str | None:
        """What ssh said where the box let it in and did not carry the port."""
        return next(
            (line for line in self._said if "forwarding failed" in line or "prohibited" in line), None
        )

    def _keep(self) -> None:
        while not self._over.is_set():
            try:
                self._running = subprocess.Popen(
                    self._command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                    errors="replace",
                )
            except OSError:  # no ssh here: the run will tell, which has none either
                self._tried.set()
                return
            if self._over.is_set():
                self._running.terminate()
            with self._running as running:
                self._listen(running)
            self._tried.set()
            self._over.wait(AGAIN_S)

    def _listen(self, running: subprocess.Popen[str]) -> None:
        """Read what ssh says until it ends."""
        said: list[str] = []
        for line in running.stdout or ():
            if line.strip() == STANDS:
                self._stands.set()
                self._tried.set()
            else:
                said = [*said, line.strip()][-5:]
        self._said = said
