"""Stands in for ssh: opens the socket of -L and leads it to a port here, until its input ends.

Arguments of ours come first: `ends` (it says why and ends), `hangs`, or the port that it leads to.
"""

import contextlib
import socket
import sys
import threading
import time


def carry(source, target):
    with contextlib.suppress(OSError):
        while data := source.recv(4096):
            target.sendall(data)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_RDWR)


def serve(listener, port):
    while True:
        near, _ = listener.accept()
        try:
            far = socket.create_connection(("127.0.0.1", port))
        except OSError:  # nobody listens there: as ssh does, this one is closed and the next one taken
            near.close()
            continue
        for pair in ((near, far), (far, near)):
            threading.Thread(target=carry, args=pair, daemon=True).start()


mode = sys.argv[1] if sys.argv[1] in ("ends", "hangs") else ""
if mode == "ends":
    sys.exit("box1: Permission denied (publickey).")
words = sys.argv[1:]
if not mode:
    path = words[words.index("-L") + 1].split(":")[0]
    port = next(int(word.partition("=")[2]) for word in words if word.startswith("PORT="))
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    # As ssh does, with a moment between the two.
    time.sleep(0.2)
    listener.listen()
    threading.Thread(target=serve, args=(listener, port), daemon=True).start()
assert words[-1] == "cat", words
sys.stdin.buffer.read()
