"""An engine that misbehaves on request: what it does is in its variable STAND_IN. It runs in a container."""

import http.server
import json
import os
import signal
import sys
import threading
import time

WAY = os.environ.get("STAND_IN", "well")
KEY = os.environ.get("VLLM_API_KEY", "")
#: An option that the release of the image's tag has, and this parser does not.
GONE = "--max-num-queued-reqs"
NUMBERS = "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15"
#: Of an engine whose drafts the model never takes.
METRICS = (
    'vllm:spec_decode_num_draft_tokens_total{engine="0"} 120.0\n'
    'vllm:spec_decode_num_accepted_tokens_total{engine="0"} 0.0\n'
)
running, lock, ending = [0], threading.Lock(), threading.Event()


def log(text):
    print("(EngineCore pid=7) INFO 11-30 10:00:00 [stand_in.py:1] " + text, flush=True)


def answer(prompt):
    if "numbers" in prompt:
        return "�� the the of 4 of of Ġ Ġ" if WAY == "garbled" else NUMBERS
    if "slowly" in prompt:
        time.sleep(6)
    return "The capital city of France is Paris."


class Handler(http.server.BaseHTTPRequestHandler):
    """The endpoint."""

    def reply(self, status, text, kind="application/json"):
        data = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        if self.path == "/health":
            self.reply(200, "")
        elif self.headers.get("Authorization") != "Bearer " + KEY:
            self.reply(401, '{"error": "Unauthorized"}')
        elif self.path == "/metrics":
            self.reply(200, METRICS if WAY == "no-drafts" else "", "text/plain")
        else:
            name = "another" if WAY == "other-name" else sys.argv[sys.argv.index("--served-model-name") + 1]
            self.reply(200, json.dumps({"data": [{"id": name}]}))

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.headers.get("Authorization") != "Bearer " + KEY:
            self.reply(401, '{"error": "Unauthorized"}')
        elif ending.is_set() or WAY == "silent":
            self.reply(500, '{"error": {"message": "EngineCore encountered an issue"}}')
        else:
            with lock:
                running[0] += 1
            try:
                self.say(answer(body["messages"][0]["content"]), body.get("stream"))
            finally:
                with lock:
                    running[0] -= 1

    def say(self, text, stream):
        if not stream:
            choice = {"message": {"content": text}, "finish_reason": "stop"}
            self.reply(200, json.dumps({"choices": [choice], "usage": {"prompt_tokens": 9}}))
            return
        events = [json.dumps({"choices": [{"delta": {"content": word + " "}}]}) for word in text.split()]
        self.reply(200, "".join(f"data: {event}\n\n" for event in [*events, "[DONE]"]), "text/event-stream")

    def log_message(self, *_):
        pass


def serve(_):
    """Start, or do what is done instead of it."""
    log("Initializing a V1 LLM engine (v0.31.0) with config: model='/model'")
    if WAY == "crash":
        print("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", file=sys.stderr)
        sys.exit(1)
    if WAY == "broken":
        print("ImportError: libcudart.so.13: cannot open shared object file", file=sys.stderr)
        sys.exit(1)
    if WAY == "ends":
        sys.exit(0)
    log("Starting to load model /model...")
    while WAY == "hang":
        time.sleep(1)
    log("GPU KV cache size: %s tokens, Maximum concurrency" % ("64" if WAY == "small" else "1,000,000"))
    server = http.server.ThreadingHTTPServer(("0.0.0.0", 8000), Handler)

    def drain(*_):
        ending.set()
        threading.Thread(target=finish, daemon=True).start()

    def finish():
        until = time.monotonic() + int(sys.argv[sys.argv.index("--shutdown-timeout") + 1])
        while running[0] and time.monotonic() < until:
            time.sleep(0.05)
        time.sleep(0.2)
        os._exit(0)

    signal.signal(signal.SIGTERM, drain)
    log("Application startup complete.")
    server.serve_forever()


def main():
    """As vLLM's own: the parser, and what it is for."""
    from vllm.entrypoints.cli.serve import ServeSubcommand

    if GONE in sys.argv:
        print("usage: vllm serve [model_tag] [options]", file=sys.stderr)
        print(f"vllm serve: error: unrecognized arguments: {GONE}", file=sys.stderr)
        sys.exit(2)
    ServeSubcommand.cmd(None)
