"""Running servers and a plain HTTP client for their tests."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from boxwright.lab.store.servers.control import Control, Settings, write
from boxwright.lab.store.servers.files import DepotServer, Handler, RequestLog
from boxwright.lab.store.servers.hub import HubHandler
from boxwright.lab.store.servers.repositories import Repositories
from boxwright.lab.store.servers.www import FileHandler


@dataclass
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self):
        return json.loads(self.body)


@dataclass
class Running:
    """A server on a free port of the loopback interface."""

    port: int
    root: Path
    control: Path
    log: Path

    def ask(self, path: str, method: str = "GET", body: bytes | None = None, **headers: str) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, path, body=body, headers=named)
            response = connection.getresponse()
            return Answer(response.status, dict(response.getheaders()), response.read())
        finally:
            connection.close()

    def tell(self, settings: Settings) -> None:
        write(self.control, settings)

    def requests(self, count: int) -> list[dict[str, object]]:
        """The lines of the log once there are so many: each is written after its answer was sent."""
        deadline = time.monotonic() + 10
        while len(lines := self.log.read_text().splitlines()) < count and time.monotonic() < deadline:
            time.sleep(0.01)
        return [json.loads(line) for line in lines]


Start = Callable[[type[Handler]], Running]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    servers: list[DepotServer] = []

    def run(handler: type[Handler]) -> Running:
        control, log = tmp_path / "control.json", tmp_path / "requests.jsonl"
        server = DepotServer(("127.0.0.1", 0), handler, Control(control), RequestLog(log))
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        servers.append(server)
        return Running(server.server_address[1], tmp_path / "root", control, log)

    yield run
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture
def hub(start: Start, tmp_path: Path) -> Running:
    main = tmp_path / "root/acme/tiny"
    (main / "sub/deep").mkdir(parents=True)
    (main / "config.json").write_text('{"model_type": "qwen3"}')
    (main / "model.safetensors").write_bytes(bytes(range(256)) * 40)
    (main / "sub/deep/notes.md").write_text("deep")
    other = tmp_path / "root/acme/tiny@v1"
    other.mkdir()
    (other / "config.json").write_text("{}")
    return start(type("Hub", (HubHandler,), {"repositories": Repositories(tmp_path / "root")}))


@pytest.fixture
def www(start: Start, tmp_path: Path) -> Running:
    (tmp_path / "root/debs").mkdir(parents=True)
    (tmp_path / "root/debs/a.deb").write_bytes(b"0123456789")
    (tmp_path / "wheels/six").mkdir(parents=True)
    (tmp_path / "wheels/six/index.html").write_text("<a href='six-1.whl'>six-1.whl</a>")
    mounts = {"": tmp_path / "root", "/simple": tmp_path / "wheels"}
    return start(type("Www", (FileHandler,), {"mounts": mounts}))
