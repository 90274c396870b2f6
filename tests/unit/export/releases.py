"""Releases for tests: with everything that one can have, and the plainest."""

from boxwright.ansible.module_utils.engine_container import container_of
from boxwright.export.release import Release

STATE = {
    "name": "qwen",
    "engine": "vllm",
    "reference": "vllm/vllm-openai:v0.29.0@sha256:" + "a" * 64,
    "model_directory": "/var/lib/boxwright/models/Qwen--Q/" + "b" * 40,
    "command": [
        "vllm",
        "serve",
        "/model",
        "--served-model-name",
        "qwen",
        "--host",
        "0.0.0.0",
        "--port",
        "8000",
        "--speculative-config",
        '{"method": "mtp", "note": "it\'s 50% of $HOME, $(id) and ${X}"}',
        "--no-enable-prefix-caching",
    ],
    "env": {"NCCL_P2P_DISABLE": "1", "ODD": 'a b $(HOME) 100% "q" it\'s \\n'},
    "access": "cdi",
    "devices": ["GPU-1", "GPU-2"],
    "bind": "127.0.0.1",
    "port": 8001,
    "shm_size": "8g",
    "cache_directory": "/var/lib/boxwright/cache/qwen",
    "key_file": "/etc/boxwright/engines/qwen/api-key",
    "stop_timeout_s": 90,
    "network": "boxwright",
    "drafter_directory": "/data/drafts, of mine/d",
    "guard": {
        "option": "--middleware",
        "directory": "/var/lib/boxwright/releases/qwen",
        "open": ["/metrics"],
    },
}
PLAIN = {
    **STATE,
    "name": "small",
    "reference": "vllm/vllm-openai:v0.29.0",
    "command": ["vllm", "serve", "/model"],
    "env": {},
    "access": "none",
    "devices": [],
    "bind": "::",
    "port": 8002,
    "network": None,
    "drafter_directory": None,
    "guard": None,
}
GUARD = '"""A guard."""\n\nX = "$HOME ${Y} %h"\n'


def release(state=STATE, **more):
    guard = GUARD if state.get("guard") else None
    return Release("box1", container_of(state, "0123456789ab"), guard, **more)


BOTH = [release(), release(PLAIN)]
