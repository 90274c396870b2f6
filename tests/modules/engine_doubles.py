"""Stand-ins for an engine on a host: an endpoint that misbehaves on request, and its unit's state."""

import contextlib
import http.server
import json
import math
import threading

from ansible.module_utils.systemctl import UnitState

KEY = "sk-test"
ANSWER = "The capital city of France is Paris."


class Server:
    """An OpenAI-compatible endpoint. Its attributes are how it behaves; port: where it listens."""

    def __init__(self):
        self.models = ["qwen"]
        self.longest = 4096
        self.key = KEY
        self.reply = {
            "choices": [{"message": {"content": ANSWER}, "finish_reason": "stop"}],
            "usage": {"completion_tokens": 8},
        }
        self.status = 200
        self.asked = []
        self.on_chat = lambda: None
        self.metrics = ""
        self.open_paths = set()
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def send(self, status, body, kind="application/json"):
                data = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def let_in(self):
                if server.key is None or self.headers.get("Authorization") == f"Bearer {server.key}":
                    return True
                self.send(401, {"error": "Unauthorized"})
                return False

            def do_GET(self):
                if self.path in server.open_paths:
                    self.send(200, {})
                elif not self.let_in():
                    return
                elif self.path == "/metrics":
                    self.send(200, server.metrics.encode(), "text/plain")
                else:
                    self.send(200, server.models_document())

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                if self.let_in():
                    server.asked.append(body)
                    server.on_chat()
                    with contextlib.suppress(OSError):
                        if body.get("stream"):
                            self.send(server.status, server.streamed(), "text/event-stream")
                        else:
                            self.send(server.status, server.answer(body))

            def log_message(self, *_):
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def models_document(self):
        """The reply to who asks for the models."""
        return {"data": [{"id": name, "max_model_len": self.longest} for name in self.models]}

    def answer(self, body):
        """The reply to one request; tests put their own in its place."""
        return self.reply

    def streamed(self):
        """The reply as a stream of events, a word each."""
        message = self.reply["choices"][0]["message"]
        words = [{"content": word + " "} for word in str(message.get("content") or "").split()]
        events = [json.dumps({"choices": [{"delta": delta}]}) for delta in words]
        return "".join(f"data: {event}\n\n" for event in [*events, "[DONE]"]).encode()

    def close(self):
        self._server.shutdown()
        self._server.server_close()


def letters(text):
    """A vector that says which letters a text has: near texts share most of them."""
    return [float(text.lower().count(letter)) for letter in "abcdefghijklmnopqrstuvwxyz"]


def alike(one, other):
    """The cosine of two vectors."""
    return sum(a * b for a, b in zip(one, other, strict=True)) / (math.hypot(*one) * math.hypot(*other))


class Vectors(Server):
    """A server that makes vectors and ranks; its attributes are how it misbehaves."""

    def __init__(self):
        super().__init__()
        self.made = letters
        self.scored = lambda query, text: alike(letters(query), letters(text))
        self.change = lambda document: document
        self.longest = 512

    def answer(self, body):
        if "input" in body:
            entries = [
                {"index": place, "object": "embedding", "embedding": self.made(text)}
                for place, text in enumerate(body["input"])
            ]
            tokens = sum(len(text.split()) + 2 for text in body["input"])
            document = {"object": "list", "data": entries, "usage": {"prompt_tokens": tokens}}
        else:
            ranked = [
                {"index": place, "relevance_score": self.scored(body["query"], text)}
                for place, text in enumerate(body["documents"])
            ]
            ranked.sort(key=lambda entry: -entry["relevance_score"])
            document = {"results": ranked, "usage": {"total_tokens": 9}}
        return self.change(document)


def unit_state(active="active", sub="running", **changes):
    values = {
        "load": "loaded",
        "active": active,
        "sub": sub,
        "result": "success",
        "restarts": 0,
        "code": "1",
        "status": 0,
        "enabled": True,
        "stale": False,
        "began": 1.0,
    }
    return UnitState(**{**values, **changes})


class Clock:
    """Time that passes only when somebody sleeps."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds
