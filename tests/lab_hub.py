"""The lab's hub as tests run it by themselves: with repositories of their own, misbehaving as they say."""

import json
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager

import yaml
from lab_boxes import ROOT

from boxwright.lab import realm
from boxwright.lab.store.servers.control import Settings, write

DEFAULTS = yaml.safe_load((ROOT / "roles/model_weights/defaults/main.yml").read_text())
SCRIPT = (ROOT / "roles/model_weights/files/resolve.py").read_text()


def free_port(address):
    """A port that nothing uses."""
    with socket.socket() as free:
        free.bind((address, 0))
        return free.getsockname()[1]


@contextmanager
def _serving(name, address, port, *words):
    """One of the lab's servers runs, and has its port."""
    argv = [sys.executable, "-m", f"boxwright.lab.store.servers.{name}", *map(str, words)]
    process = subprocess.Popen(argv, cwd=ROOT)
    try:
        for _ in range(100):
            try:
                socket.create_connection((address, port), 1).close()
                break
            except OSError:
                time.sleep(0.05)
        yield
    finally:
        process.terminate()
        process.wait(10)


class Hub:
    """A hub of one repository. bind: the address at which it is asked."""

    def __init__(self, directory, repo, bind="127.0.0.1"):
        self.directory, self.repo, self.bind = directory, repo, bind
        self.control, self.log = directory / "control.json", directory / "requests"
        self.port = free_port(bind)
        self.endpoint = f"http://{bind}:{self.port}"
        self.folder = directory / "models" / repo
        self.folder.mkdir(parents=True)
        self.tell()

    @contextmanager
    def running(self):
        """It answers."""
        words = ["--root", self.directory / "models", "--bind", self.bind, "--port", self.port]
        with _serving("hub", self.bind, self.port, *words, "--control", self.control, "--log", self.log):
            yield self

    @contextmanager
    def behind_tls(self, directory):
        """It answers at another port, too, which is given, with a certificate that nobody knows."""
        realm.ensure(directory, self.bind)
        words = ["--certificate", directory / realm.CERTIFICATE, "--key", directory / realm.KEY]
        port = free_port(self.bind)
        with _serving("tls", self.bind, port, *words, "--forward", f"{port}={self.port}"):
            yield port

    def tell(self, *faults, **settings):
        write(self.control, Settings(tuple(faults), **settings))

    def weights(self, store, **more):
        """The repository as the plan has it. store: where a box keeps models."""
        api = f"{self.endpoint}/api/models/{self.repo}"
        with urllib.request.urlopen(f"{api}/tree/main?recursive=true") as answer:
            listed = json.load(answer)
        with urllib.request.urlopen(f"{api}/revision/main") as answer:
            revision = json.load(answer)["sha"]
        files = [
            {"path": file["path"], "size": file["size"], "sha256": (file.get("lfs") or {}).get("oid")}
            for file in listed
        ]
        weights = {
            "kind": "hub",
            "repo": self.repo,
            "revision": revision,
            "endpoint": self.endpoint,
            "files": files,
        }
        return {**weights, "directory": f"{store}/{self.repo.replace('/', '--')}/{revision}", **more}

    def _settled(self):
        """The log, once no line is added any more: an answer's comes after its end."""
        said, until = self.log.read_text(), time.monotonic() + 10
        while time.monotonic() < until:
            time.sleep(0.2)
            if said == (said := self.log.read_text()):
                break
        return said

    def _answers(self, name):
        lines = [json.loads(line) for line in self._settled().splitlines()]
        return [line for line in lines if line["path"].endswith(name) and line["method"] == "GET"]

    def sent(self, name):
        """Bytes of a file that left the hub."""
        return sum(line["bytes"] for line in self._answers(name))

    def requests(self, name):
        """How often bytes of a file were asked for."""
        return len(self._answers(name))


def arguments(weights, store, environment, **more):
    """What the module model_store is given. environment: where the official client is, or is put."""
    return {
        "store": store,
        "weights": [weights],
        "environment": {
            "path": environment,
            "packages": DEFAULTS["model_weights_packages"],
            "constraints": DEFAULTS["model_weights_constraints"],
            "index_url": "",
            "size": 0,
        },
        "client": SCRIPT,
        "reserve": 0,
        **more,
    }


def program(module, root=ROOT):
    """A program that is a module, its arguments on standard input. root: where the checkout is, there."""
    return f"""
import sys, json
sys.path.insert(0, {str(root)!r})
import ansible.module_utils
for part in ("ansible/module_utils", "facts/parsers"):
    ansible.module_utils.__path__.append({str(root / "boxwright")!r} + "/" + part)
from ansible.module_utils.testing import patch_module_args
from boxwright.ansible.modules import {module}
with patch_module_args(json.load(sys.stdin)):
    {module}.main()
"""
