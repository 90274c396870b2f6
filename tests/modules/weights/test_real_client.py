"""resolve.py with the hub's official client against the lab's hub, made to misbehave."""

import json
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import lab_hub
import pytest
from ansible.module_utils import partial_file, python_environment
from ansible.module_utils.python_environment import Step, Wanted
from lab_hub import DEFAULTS, Hub

from boxwright.lab.store.servers.control import Access, Fault, Settings

from ..conftest import ROOT
from .conftest import REPOSITORY, safetensors

pytestmark = pytest.mark.lab  # the client comes from the package index

REPO, SIZE = "acme/tiny", 3_000_000
TOKEN = "hf_SesameOpenSesameOpenSesame"


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """The client's environment, made as on a host."""
    path = str(tmp_path_factory.mktemp("venvs") / "hub")
    wanted = Wanted(
        path, [Step(DEFAULTS["model_weights_packages"], [])], DEFAULTS["model_weights_constraints"]
    )
    python_environment.ensure(wanted, lambda stage: None)
    return path


@pytest.fixture
def hub(tmp_path):
    made = Hub(tmp_path, REPO)
    large = safetensors({"model.layers.0.mlp.up_proj.weight": ("F16", [SIZE // 2], 2)})
    for path, content in dict(REPOSITORY, **{"model.safetensors": large}).items():
        (made.folder / path).write_bytes(content)
    with made.running():
        yield made


@pytest.fixture
def store(tmp_path):
    return str(tmp_path / "box" / "models")


@pytest.fixture
def arguments(environment, store, tmp_path):
    def build(weights, **more):
        told = {"progress_file": str(tmp_path / "progress.json"), **more}
        return lab_hub.arguments(weights, store, environment, **told)

    return build


@pytest.fixture
def call(run_module, arguments):
    return lambda weights, **more: run_module("model_store", **arguments(weights, **more))


def test_fetched_once(hub, store, call):
    weights = hub.weights(store)
    first = call(weights)
    assert first["said"] == "acme/tiny: 3 files, 1 verified by sha256, 2 by size", first
    for name in ("config.json", "model.safetensors", "tokenizer.json"):
        content = (hub.directory / "models" / REPO / name).read_bytes()
        assert Path(weights["directory"], name).read_bytes() == content
    assert hub.sent("model.safetensors") == Path(weights["directory"], "model.safetensors").stat().st_size
    assert hub.sent("README.md") == 0
    hub.tell(Fault("down"))
    assert not call(weights)["changed"]


GATED = {REPO: Access("gated", ("ann",))}
PRIVATE = {REPO: Access("private", ("ann",))}
ANN, BEN = {TOKEN: "ann"}, {TOKEN: "ben"}


@pytest.mark.parametrize(
    ("settings", "token", "words"),
    [
        ({"repositories": PRIVATE}, "", "nobody without a token (401)"),
        ({"repositories": PRIVATE, "users": BEN}, TOKEN, "has no acme/tiny"),
        ({"repositories": GATED}, "", "is gated (401/403)"),
        ({"repositories": GATED, "users": BEN}, TOKEN, "has not been let in (403)"),
        ({}, TOKEN, "does not accept the token (401)"),
        ({"faults": [Fault("status", status=403)]}, TOKEN, "forbids acme/tiny to this token (403)"),
        ({"faults": [Fault("status", status=404)]}, "", "has no acme/tiny"),
        ({"faults": [Fault("status", status=500)]}, "", "fault of its own (500)"),
        ({"faults": [Fault("status", status=429, retry_after_s=99999)]}, "", "Run again in 99999 s"),
        ({"faults": [Fault("down")]}, "", "cannot be reached from this host"),
    ],
)
def test_refusals(hub, store, call, settings, token, words):
    weights = hub.weights(store)
    settings = dict(settings)
    hub.tell(*settings.pop("faults", ()), **settings)
    if any(fault.kind == "down" for fault in json_faults(hub)):
        time.sleep(0.8)
    result = call(weights, token=token)
    assert words in result["msg"], result
    assert "Traceback" not in result["msg"]
    assert "Sesame" not in json.dumps(result)
    assert not Path(weights["directory"]).exists()
    hub.tell(users={TOKEN: "ann"})
    time.sleep(0.8 if words.startswith("cannot") else 0)
    assert call(weights, token=token)["changed"]


def json_faults(hub):
    return Settings.from_json(hub.control.read_text()).faults


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"revision": "0" * 40}, "has no revision " + "0" * 40),
        ({"repo": "acme/nobody"}, "gives acme/nobody to nobody without a token"),
        ({"endpoint": "http://no-such-host.invalid"}, "the name of no-such-host.invalid does not resolve"),
        ({"endpoint": "https://127.0.0.1:{port}"}, "does not speak TLS"),
    ],
)
def test_wrong_addresses(hub, store, call, change, words):
    change = {name: value.format(port=hub.port) for name, value in change.items()}
    result = call(hub.weights(store, **change))
    assert words in result["msg"], result


def test_a_certificate_that_nobody_vouches_for(hub, store, call, tmp_path):
    with hub.behind_tls(tmp_path / "realm") as port:
        weights = hub.weights(store, endpoint=f"https://127.0.0.1:{port}")
        result = call(weights)
    assert f"the certificate of 127.0.0.1:{port} is not trusted on this host" in result["msg"], result
    assert {hub.requests(file["path"]) for file in weights["files"]} == {0}
    assert not Path(weights["directory"]).exists()


@pytest.mark.parametrize("serves", [False, True], ids=["nothing there", "forbids it"])
def test_a_broken_proxy(hub, store, call, serves):
    """A proxy that is off, and one that lets nobody through: the lab's hub knows no such address."""
    port = hub.port if serves else lab_hub.free_port("127.0.0.1")
    weights = hub.weights(store, endpoint="https://hub.example")
    result = call(weights, proxy=f"http://ann:sesame@127.0.0.1:{port}")
    said = "does not let the host through to" if serves else "cannot be reached through the proxy"
    assert said in result["msg"], result
    assert f"127.0.0.1:{port}" in result["msg"]
    assert "sesame" not in json.dumps(result)


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ({"kind": "drop", "after_bytes": 0}, "cannot be reached from this host"),
        ({"kind": "status", "status": 404}, "has no acme/tiny, or lacks a file of it (404)"),
        ({"kind": "status", "status": 503}, "fault of its own (503)"),
    ],
    ids=["empty", "missing", "broken"],
)
def test_a_shard_that_the_hub_does_not_give(hub, store, call, fault, words):
    """All but that shard is there already when the hub is well again: no byte leaves it twice."""
    weights = hub.weights(store)
    hub.tell(Fault(path="*/model.safetensors", **fault))
    result = call(weights)
    assert words in result["msg"], result
    assert not Path(weights["directory"]).exists()
    hub.tell()
    assert call(weights)["changed"]
    for name in ("config.json", "model.safetensors", "tokenizer.json"):
        assert hub.sent(name) == Path(weights["directory"], name).stat().st_size


def test_a_shard_that_is_cut_short_each_time(hub, store, call):
    """Every answer ends early; what came is kept, and the next one begins there."""
    weights = hub.weights(store)
    hub.tell(Fault("drop", "*/model.safetensors", after_bytes=700_000))
    assert call(weights)["changed"]
    size = Path(weights["directory"], "model.safetensors").stat().st_size
    assert (hub.sent("model.safetensors"), hub.requests("model.safetensors")) == (size, -(-size // 700_000))
    assert not call(weights, deep=True)["changed"]


def test_token_opens_a_gated_repository_and_is_left_nowhere(hub, store, call, tmp_path):
    weights = hub.weights(store)
    hub.tell(Fault("rate", "*/model.safetensors", bytes_per_s=1_500_000), repositories=GATED, users=ANN)
    seen = []

    def look():
        while not seen or seen[-1] is not None:
            done = subprocess.run(["ps", "axww", "-o", "args"], capture_output=True, text=True, check=True)
            seen.append(done.stdout)
            time.sleep(0.2)

    looking = threading.Thread(target=look, daemon=True)
    looking.start()
    result = call(weights, token=TOKEN)
    seen.append(None)
    assert result["changed"], result
    listings = [listing for listing in seen if listing]
    assert any("resolve.py" in listing for listing in listings)
    assert not any("Sesame" in listing for listing in listings)
    found = subprocess.run(
        ["grep", "-rl", "SesameOpen", store, str(tmp_path / "progress.json")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.stdout == ""


def test_damaged_once_is_fetched_again(hub, store, call):
    weights = hub.weights(store)
    hub.tell(Fault("corrupt", "*/model.safetensors", offset=5000, times=1))
    result = call(weights)
    assert result["changed"], result
    assert not call(weights, deep=True)["changed"]


def test_damaged_for_ever(hub, store, call):
    weights = hub.weights(store)
    hub.tell(Fault("corrupt", "*/model.safetensors", offset=5000))
    result = call(weights)
    assert re.search(
        r"model.safetensors of acme/tiny keeps arriving damaged: its sha256 is \w{64}", result["msg"]
    ), result
    assert not Path(weights["directory"]).exists()
    hub.tell()
    assert call(weights)["changed"]


def test_dropped_line_goes_on_within_the_file(hub, store, call):
    weights = hub.weights(store)
    hub.tell(Fault("drop", "*/model.safetensors", after_bytes=1_000_000, times=2))
    assert call(weights)["changed"]


def test_429_is_waited_for(hub, store, call):
    weights = hub.weights(store)
    hub.tell(Fault("status", "/api/models/*", status=429, retry_after_s=1, times=2))
    assert call(weights)["changed"]


def test_stalled_line(hub, store, call):
    weights = hub.weights(store)
    hub.tell(Fault("hang", "*/model.safetensors", seconds=60))
    result = call(weights, stall_s=2)
    assert "does not answer in time" in result["msg"], result


def start(arguments):
    process = subprocess.Popen(
        [sys.executable, "-c", lab_hub.program("model_store")],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    process.stdin.write(json.dumps(arguments))
    process.stdin.close()
    return process


def arrived(store, name):
    """Bytes of a file that are on the way into the store, as its map says."""
    return sum(
        partial_file.held(str(path)[: -len(".partial")]) for path in Path(store).rglob(name + ".partial")
    )


def eventually(condition, seconds=60.0):
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.05)


#: What may be on the line when a client is killed: bytes that the hub has sent and nobody has read.
IN_FLIGHT = 600_000


def test_killed_and_run_again(hub, store, arguments, environment, call):
    """What came is not fetched twice, within a file too; the hub's client dies with the module."""
    weights = hub.weights(store)
    hub.tell(Fault("rate", "*/model.safetensors", bytes_per_s=400_000))
    for share in (0.2, 0.5):
        process = start(arguments(weights))
        eventually(lambda wanted=share * SIZE: arrived(store, "model.safetensors") > wanted)
        process.send_signal(signal.SIGKILL)
        process.wait()

    def clients():
        listed = subprocess.run(
            ["ps", "axww", "-o", "args"], capture_output=True, text=True, check=True
        ).stdout
        return [line for line in listed.splitlines() if line.startswith(environment)]

    eventually(lambda: not clients())
    # The hub notices only with its next write that nobody is there any more.
    eventually(lambda: hub.requests("model.safetensors") == 2)
    had = arrived(store, "model.safetensors")
    assert had > 0.5 * SIZE
    hub.tell()
    before = hub.sent("model.safetensors")
    small = hub.sent("config.json"), hub.sent("tokenizer.json")
    result = call(weights)
    assert result["changed"], result
    size = Path(weights["directory"], "model.safetensors").stat().st_size
    assert hub.sent("model.safetensors") - before == size - had
    assert hub.sent("model.safetensors") <= size + 2 * IN_FLIGHT
    assert (hub.sent("config.json"), hub.sent("tokenizer.json")) == small
    assert not list(Path(store).rglob("*.partial*"))


def test_two_processes_fetch_one_copy(hub, store, arguments, tmp_path):
    weights = hub.weights(store)
    hub.tell(Fault("rate", "*/model.safetensors", bytes_per_s=2_000_000))
    told = [str(tmp_path / f"progress-{number}.json") for number in range(2)]
    processes = [start(arguments(weights, progress_file=path)) for path in told]
    results = [json.loads(process.stdout.read()) for process in processes]
    assert sorted(result.get("changed") for result in results) == [False, True], results
    assert hub.sent("model.safetensors") == Path(weights["directory"], "model.safetensors").stat().st_size
