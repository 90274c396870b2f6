"""HAProxy itself takes names and keys that mean something to it, each as one word."""

import subprocess
import sys
from pathlib import Path

sys.path.insert(0, "/root")
from ansible.module_utils import gateway_text as text

NAMES = (
    "two words",
    'a "quote"',
    "it's",
    "$HOME",
    "%[src]",
    "back\\slash",
    "# no comment",
    "-m found",
    "ünïcode",
    "}",
)
CERTIFICATE = Path("/etc/boxwright/gateway/current/server.pem").read_text(encoding="ascii")

for affinity in ("none", "session"):
    boxes = [{"box": name, "address": "127.0.0.1", "port": 9000} for name in NAMES]
    settings = {
        "bind": "::", "port": 9443, "paths": ["/tokenize"], "affinity": affinity, "body_bytes": 65536,
        "timeout_s": 60, "allow_from": ["192.0.2.0/24", "2001:db8::/32"],
        "models": [{"name": name, "servers": boxes} for name in NAMES],
        "clients": [{"name": "one", "sha256": "0" * 64, "requests_per_minute": 7}],
    }  # fmt: skip
    keys = {text.key_name(model, box): "key " + box for model in NAMES for box in NAMES}
    directory = Path("/run/hostile")
    name, files = text.placed(text.files(settings, keys, CERTIFICATE), str(directory))
    (directory / name).mkdir(parents=True, exist_ok=True)
    for file, content in files.items():
        (directory / name / file).write_text(content, encoding="utf-8")
    done = subprocess.run(
        ["/usr/sbin/haproxy", "-c", "-f", str(directory / name / text.CONFIG)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "[WARNING]" not in done.stderr, done.stderr
