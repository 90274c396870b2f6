"""Stands in for an engine behind a gateway: NAME PORT KEY_FILE. It says who it is, word by word."""

import json
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

NAME, PORT, KEY = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]).read_text(encoding="utf-8").strip()


class Engine(BaseHTTPRequestHandler):
    """As much of an engine as a gateway sees."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Well, and nothing else."""
        self.answer(200 if self.path == "/health" else 404, {})

    def do_POST(self) -> None:
        """An answer that says who gave it; `stream` words, five a second; `busy` turns it away."""
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.headers["Authorization"] != "Bearer " + KEY:
            self.answer(401, {"error": "another key"})
        elif asked.get("busy") == NAME:
            self.answer(503, {"error": "busy"})
        elif asked.get("stream"):
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for word in range(asked["stream"]):
                self.chunk(f"{NAME} {word}\n".encode())
                time.sleep(0.2)
            self.chunk(b"")
        else:
            self.answer(200, {"by": NAME, "path": self.path})

    def chunk(self, data: bytes) -> None:
        """One piece of a stream; the empty one ends it."""
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def answer(self, status: int, value: object) -> None:
        """A whole answer."""
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


ThreadingHTTPServer(("0.0.0.0", PORT), Engine).serve_forever()
