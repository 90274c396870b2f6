"""The other servers behind TLS: whatever comes to a port goes on to a port of this machine, without TLS.

Run: python3 -m servers.tls --certificate FILE --key FILE --forward 443=80 --forward 8343=8300
"""

from __future__ import annotations

import argparse
import contextlib
import select
import socket
import socketserver
import ssl
import threading
from pathlib import Path

#: Seconds for a handshake, and that a line may be silent.
HANDSHAKE_S, SILENT_S = 10.0, 300.0
CHUNK = 64 * 1024


class Front(socketserver.ThreadingTCPServer):
    """One port. inner: where its lines go on to."""

    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 128

    def __init__(self, outer: int, inner: int, context: ssl.SSLContext) -> None:
        self.inner, self.context = inner, context
        super().__init__(("0.0.0.0", outer), Line)


class Line(socketserver.BaseRequestHandler):
    """One line: its handshake, then bytes both ways until one side ends it."""

    server: Front

    def handle(self) -> None:
        """Carry it; what a client does wrong is its own affair."""
        self.request.settimeout(HANDSHAKE_S)
        with (
            contextlib.suppress(OSError),
            self.server.context.wrap_socket(self.request, server_side=True) as outer,
            socket.create_connection(("127.0.0.1", self.server.inner), timeout=SILENT_S) as inner,
        ):
            outer.settimeout(SILENT_S)
            self._carry(outer, inner)

    def _carry(self, outer: ssl.SSLSocket, inner: socket.socket) -> None:
        across: dict[socket.socket, socket.socket] = {outer: inner, inner: outer}
        while True:
            # What TLS has decrypted already shows on no socket.
            ready = [outer] if outer.pending() else select.select(list(across), [], [], SILENT_S)[0]
            for source in ready:
                data = source.recv(CHUNK)
                if not data:
                    return
                across[source].sendall(data)
            if not ready:
                return


def main(arguments: list[str] | None = None) -> None:
    """Serve until killed."""
    parser = argparse.ArgumentParser(prog="servers.tls", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--certificate", type=Path, required=True)
    parser.add_argument("--key", type=Path, required=True)
    parser.add_argument("--forward", action="append", required=True, metavar="OUTER=INNER", type=_ports)
    options = parser.parse_args(arguments)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(options.certificate, options.key)
    fronts = [Front(outer, inner, context) for outer, inner in options.forward]
    for front in fronts[1:]:
        threading.Thread(target=front.serve_forever, daemon=True).start()
    fronts[0].serve_forever()


def _ports(text: str) -> tuple[int, int]:
    outer, sign, inner = text.partition("=")
    if not sign or not outer.isdecimal() or not inner.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not OUTER=INNER, such as 443=80")
    return int(outer), int(inner)


if __name__ == "__main__":
    main()
