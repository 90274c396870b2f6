"""The module box_status on doubles of the host's programs and a server that counts."""

import http.server
import itertools
import os
import stat
import threading

import pytest
from ansible.module_utils.engine_store import Store

from boxwright.doctor.glance import glance

KEY = "0123456789abcdef0123"
SMI = "0, NVIDIA GeForce RTX 5090, 580.105.08, 61, 431.55 W, 575.00 W, 2100 MHz, 29800 MiB, 32607 MiB, 97 %"
SYSTEMCTL = r"printf 'LoadState=loaded\nActiveState=active\nSubState=running\nNRestarts=0\n'"


@pytest.fixture
def engine():
    """A server whose counter goes on by 50 at each reading; its port."""
    counts = itertools.count(100, 50)

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            body = b""
            if self.path == "/metrics":
                body = f'vllm:generation_tokens_total{{key="{KEY}"}} {next(counts)}\n'.encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_port
    server.shutdown()
    server.server_close()


@pytest.fixture
def raw(run_module, tmp_path, monkeypatch, engine):
    """What the module reads of a box with one deployment, recorded and running."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setattr("ansible.module_utils.systemctl.UNIT_DIRECTORY", str(tmp_path / "bin"))
    (folder / "boxwright-qwen.service").write_text("unit\n")
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    for name, script in {"nvidia-smi": f"echo '{SMI}'", "systemctl": SYSTEMCTL}.items():
        (folder / name).write_text("#!/bin/sh\n" + script + "\n")
        (folder / name).chmod(stat.S_IRWXU)
    place = tmp_path / "etc" / "engines" / "qwen"
    place.mkdir(parents=True)
    (place / "api-key").write_text(KEY)
    state = {
        "name": "qwen",
        "bind": "127.0.0.1",
        "port": engine,
        "model_directory": "/m/org--name/" + "a" * 40,
    }
    store = Store(str(tmp_path / "root"), "qwen")
    store.write("r1", state, {"name": "qwen", "context": 4096, "image": "vllm/vllm-openai:v0.32.0"}, "unit\n")
    store.promote("r1")
    result = run_module(
        "box_status",
        root_dir=str(tmp_path / "root"),
        config_dir=str(tmp_path / "etc"),
        deployments=["qwen", "chat"],
        interval_s=0.2,
    )
    assert result["changed"] is False
    return result["raw"]


def test_a_running_box_in_one_trip(raw):
    seen = glance(raw)
    assert seen.cards_problem is None
    assert (seen.cards[0].temperature, seen.cards[0].power) == (61, 431.55)
    chat, qwen = seen.deployments
    assert (chat.name, chat.release) == ("chat", None)
    assert (qwen.name, qwen.state, qwen.release, qwen.context) == ("qwen", "serving", "r1", 4096)
    assert qwen.model == "org/name"
    assert (qwen.state, qwen.drift, chat.drift) == ("serving", (), ())
    assert 100 < qwen.tokens_per_s <= 250


@pytest.fixture
def docker(monkeypatch):
    """The container that Docker shows."""
    shown = {
        "State": {"Running": True, "StartedAt": "2025-11-30T07:00:00.1Z"},
        "Image": "sha256:1",
        "Config": {"Image": "vllm/vllm-openai:latest", "Labels": {"boxwright.release": "r1"}},
    }

    class Docker:
        def container(self, name):
            return shown if name == "boxwright-qwen" else None

        def image(self, reference):
            return None

    monkeypatch.setattr("boxwright.ansible.modules.box_status.Docker", Docker)
    return shown


def test_what_drifted_comes_in_the_same_trip(docker, raw):
    _, qwen = glance(raw).deployments
    assert (qwen.state, qwen.drift[0]) == (
        "drifted",
        "its container is of another image: vllm/vllm-openai:latest",
    )


def test_no_key_leaves_the_host(raw):
    assert KEY not in repr(raw)
    assert "generation_tokens_total" in repr(raw)
