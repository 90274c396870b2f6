"""The module's whole way, with a client that copies from a directory instead of a hub."""

import json
import os
import threading
from pathlib import Path

import pytest
from ansible.module_utils import store_manifest
from ansible.module_utils.python_environment import Step, Wanted

from .conftest import CLIENT, REPOSITORY, safetensors

PACKAGES, CONSTRAINTS = ["client==1.0"], ["dep==2"]


@pytest.fixture
def store(tmp_path):
    return str(tmp_path / "box" / "models")


@pytest.fixture
def call(tmp_path, store, run_module, prepared):
    """Run the module: call(weights, …, check=False, **arguments)."""
    path = str(tmp_path / "venvs" / "hub")
    prepared(Wanted(path, [Step(PACKAGES, [])], CONSTRAINTS))

    def run(*weights, check=False, **arguments):
        environment = {
            "path": path,
            "packages": PACKAGES,
            "constraints": CONSTRAINTS,
            "index_url": "",
            "size": 0,
        }
        return run_module(
            "model_store",
            check=check,
            store=store,
            weights=list(weights),
            environment=environment,
            client=CLIENT,
            progress_file=str(tmp_path / "progress.json"),
            **{"reserve": 0, **arguments},
        )

    return run


def names(directory):
    return sorted(path.name for path in Path(directory).iterdir())


def states(directory):
    """What changes with a file; not when it was last read."""
    found = {path.name: path.stat() for path in Path(directory).iterdir()}
    return {name: (one.st_ino, one.st_size, one.st_mtime_ns, one.st_ctime_ns) for name, one in found.items()}


def test_first_and_second_run(call, hub, store):
    weights = hub.weights(store)
    first = call(weights)
    assert first.get("changed"), first
    assert first["said"] == "acme/tiny: 3 files, 1 verified by sha256, 2 by size"
    directory = weights["directory"]
    assert names(directory) == [
        store_manifest.NAME,
        "config.json",
        "model.safetensors",
        "tokenizer.json",
    ]
    assert sorted(hub.taken[:2]) == ["config.json", "tokenizer.json"]
    assert hub.taken[2:] == ["model.safetensors"]
    assert names(f"{store}/.staging") == []
    before = states(directory)
    second = call(weights)
    assert (second["changed"], second["stores"][0]["state"], second["said"]) == (False, "there", "")
    assert states(directory) == before
    assert len(hub.taken) == 3


def test_check_mode_writes_nothing(call, hub, store, tmp_path):
    result = call(hub.weights(store), check=True)
    assert result["changed"]
    assert "3 files" in result["msg"]
    assert "would be fetched" in result["msg"]
    assert not Path(store).exists()
    assert hub.taken == []


def test_same_weights_twice_are_fetched_once(call, hub, store):
    call(hub.weights(store), hub.weights(store))
    assert sorted(hub.taken) == ["config.json", "model.safetensors", "tokenizer.json"]


@pytest.mark.parametrize(
    ("damage", "how"),
    [
        (lambda path: Path(path).unlink(), "missing"),
        (lambda path: os.truncate(path, 0), "empty"),
        (lambda path: os.truncate(path, 99), "truncated: 99 of "),
    ],
)
def test_only_the_damaged_file_is_fetched_again(call, hub, store, damage, how):
    weights = hub.weights(store)
    call(weights)
    damage(weights["directory"] + "/model.safetensors")
    told = call(weights, check=True)
    assert told["changed"]
    assert how in told["msg"]
    result = call(weights)
    assert result["stores"][0]["state"] == "repaired"
    assert f"fetched again: model.safetensors ({how}" in result["msg"]
    assert hub.taken[3:] == ["model.safetensors"]
    assert Path(weights["directory"], "model.safetensors").read_bytes() == REPOSITORY["model.safetensors"]
    assert not call(weights)["changed"]


def test_deep_verification_finds_a_hidden_flip(call, hub, store):
    weights = hub.weights(store)
    call(weights)
    path = Path(weights["directory"], "model.safetensors")
    state = path.stat()
    with path.open("r+b") as stream:
        stream.seek(300)
        stream.write(b"\xff")
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert not call(weights)["changed"]
    result = call(weights, deep=True)
    assert result["stores"][0]["flaws"] == [
        {"path": "model.safetensors", "how": "other bytes than were verified"}
    ]
    assert hub.taken[3:] == ["model.safetensors"]
    assert not call(weights, deep=True)["changed"]


def test_a_copied_store_is_recorded_anew_without_fetching(call, hub, store):
    weights = hub.weights(store)
    call(weights)
    for name in REPOSITORY:
        if name != "README.md":
            os.utime(f"{weights['directory']}/{name}", ns=(1, 1))
    result = call(weights)
    assert (result["changed"], result["stores"][0]["state"]) == (True, "recorded anew")
    assert len(hub.taken) == 3
    assert not call(weights)["changed"]


def test_files_that_a_person_put_there_are_taken_over(call, hub, store):
    weights = hub.weights(store)
    directory = Path(weights["directory"])
    directory.mkdir(parents=True)
    for name in ("model.safetensors", "config.json"):
        (directory / name).write_bytes(REPOSITORY[name])
    result = call(weights)
    assert hub.taken == ["tokenizer.json"]
    assert result["stores"][0]["by_sha256"] == 1
    assert not call(weights)["changed"]


def test_wrong_files_that_a_person_put_there_are_replaced(call, hub, store):
    weights = hub.weights(store)
    directory = Path(weights["directory"])
    directory.mkdir(parents=True)
    wrong = bytearray(REPOSITORY["model.safetensors"])
    wrong[-1] ^= 1
    (directory / "model.safetensors").write_bytes(wrong)
    result = call(weights)
    assert {"path": "model.safetensors", "how": "other bytes than the hub records"} in result["stores"][0][
        "flaws"
    ]
    assert not call(weights, deep=True)["changed"]


def test_a_whole_store_needs_no_list_of_files(call, hub, store):
    weights = hub.weights(store)
    call(weights)
    assert not call(dict(weights, files=[]))["changed"]
    Path(weights["directory"], "tokenizer.json").unlink()
    result = call(dict(weights, files=None))
    assert result["stores"][0]["state"] == "repaired"


def test_a_new_revision_takes_the_files_that_have_not_changed_from_the_old_one(call, hub, store):
    old = hub.weights(store)
    call(old)
    hub.files["config.json"] = b'{"model_type": "qwen3", "new": 1}'
    hub.write()
    revision = "f" * 40
    new = hub.weights(store, revision=revision, directory=f"{store}/acme--tiny/{revision}")
    result = call(new)
    assert result["stores"][0]["state"] == "fetched"
    assert sorted(hub.taken[3:]) == ["config.json", "tokenizer.json"], "no weights"
    both = [Path(one["directory"], "model.safetensors") for one in (old, new)]
    assert both[0].samefile(both[1])
    # A damaged one is not handed on.
    for one in both:
        os.truncate(one, 50)
    third = hub.weights(store, revision="e" * 40, directory=f"{store}/acme--tiny/{'e' * 40}")
    assert call(third)["changed"]
    assert both[0].stat().st_size == 50
    assert Path(third["directory"], "model.safetensors").read_bytes() == REPOSITORY["model.safetensors"]
    assert not call(third, deep=True)["changed"]


def test_a_flipped_bit_behind_a_whole_look_is_not_handed_on(call, hub, store):
    old = hub.weights(store)
    call(old)
    path = Path(old["directory"], "model.safetensors")
    state = path.stat()
    with path.open("r+b") as stream:
        stream.seek(300)
        stream.write(b"\xff")
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    new = hub.weights(store, revision="f" * 40, directory=f"{store}/acme--tiny/{'f' * 40}")
    assert call(new)["changed"]
    assert Path(new["directory"], "model.safetensors").read_bytes() == REPOSITORY["model.safetensors"]


def test_a_disk_that_was_carried_there_spares_the_line(call, hub, store, tmp_path):
    weights = hub.weights(store)
    disk = tmp_path / "disk" / "acme--tiny" / weights["revision"]
    disk.mkdir(parents=True)
    for name, content in REPOSITORY.items():
        (disk / name).write_bytes(content)
    result = call(weights, mirrors=[str(tmp_path / "disk"), str(tmp_path / "nowhere")])
    assert result["changed"]
    assert hub.taken == []
    assert f"from {disk}" in result["msg"]
    assert not call(weights, deep=True)["changed"]


def test_a_mirror_with_other_bytes_is_left_for_the_hub(call, hub, store, tmp_path):
    weights = hub.weights(store)
    disk = tmp_path / "disk" / "acme--tiny" / weights["revision"]
    disk.mkdir(parents=True)
    for name, content in REPOSITORY.items():
        (disk / name).write_bytes(content[:-1] + b"!" if name.endswith(".safetensors") else content)
    result = call(weights, mirrors=[str(tmp_path / "disk")])
    assert "gave wrong bytes of model.safetensors" in str(result["warnings"])
    assert hub.taken == ["model.safetensors"]
    assert Path(weights["directory"], "model.safetensors").read_bytes() == REPOSITORY["model.safetensors"]


def test_a_mirror_on_the_web(call, hub, store, tmp_path, monkeypatch):
    weights = hub.weights(store)
    place = hub.root / "acme--tiny" / weights["revision"]
    place.mkdir(parents=True)
    for name, content in REPOSITORY.items():
        (place / name).write_bytes(content)
    result = call(weights, mirrors=[os.environ["TEST_HUB"] + "/"])
    assert result["changed"]
    assert {path.rsplit("/", 1)[0] for path in hub.taken} == {f"acme--tiny/{weights['revision']}"}


def test_strangers_are_told(call, hub, store):
    weights = hub.weights(store)
    call(weights)
    Path(weights["directory"], "extra.safetensors").touch()
    result = call(weights)
    assert not result["changed"]
    assert "extra.safetensors" in str(result["warnings"])


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"config.json": b"{}", "pytorch_model.bin": b"x"}, "pickled format (pytorch_model.bin)"),
        ({"config.json": b"{}"}, "no weights in the safetensors format"),
        (
            {
                "config.json": b'{"auto_map": {"A": "b.C"}}',
                "m.safetensors": safetensors({"t": ("F16", [2], 2)}),
            },
            "code of its own",
        ),
        (
            {
                "config.json": b"{}",
                "m.safetensors": b"x",
                "model.safetensors.index.json": b'{"weight_map": {"t": "other.safetensors"}}',
            },
            "its index lists other.safetensors",
        ),
        ({"config.json": b"{}", "../m.safetensors": b"x"}, "leaves its directory"),
    ],
)
def test_refused(call, hub, store, files, words):
    hub.files = files
    hub.write()
    result = call(hub.weights(store))
    assert result.get("failed")
    assert words in result["msg"]
    assert not Path(hub.weights(store)["directory"]).exists()
    assert not [name for name in hub.taken if name.endswith((".safetensors", ".bin"))]


def test_code_is_fetched_where_it_is_allowed(call, hub, store):
    hub.files = dict(REPOSITORY, **{"config.json": b'{"auto_map": {"A": "b.C"}}', "b.py": b"pass\n"})
    hub.write()
    result = call(hub.weights(store), allow_code=["acme/tiny"])
    assert result["changed"], result
    assert "b.py" in names(hub.weights(store)["directory"])


def test_a_draft_model_that_the_engine_knows_may_name_code_and_brings_none(call, hub, store):
    hub.files["config.json"] = json.dumps({"auto_map": {"AutoModel": "dflash.DFlash2DraftModel"}}).encode()
    hub.files["dflash.py"] = b"print('never')"
    hub.write()
    assert "auto_map" in call(hub.weights(store))["msg"]
    native = hub.weights(store, native=True)
    assert call(native)["changed"]
    assert "dflash.py" not in names(native["directory"])
    assert call(native)["changed"] is False


def test_model_and_draft_model_come_together(call, hub, store):
    model = hub.weights(store)
    draft = hub.weights(
        store, repo="acme/draft", directory=f"{store}/acme--draft/{model['revision']}", native=True
    )
    first = call(model, draft, served=[model["directory"], draft["directory"]])
    assert [one["state"] for one in first["stores"]] == ["fetched", "fetched"]
    (Path(draft["directory"]) / "model.safetensors").write_bytes(b"damaged")
    again = call(model, draft)
    assert {one["repo"]: one["state"] for one in again["stores"]} == {
        "acme/tiny": "there",
        "acme/draft": "repaired",
    }


def test_no_room(call, hub, store):
    result = call(hub.weights(store), reserve=10**18)
    assert "not enough room" in result["msg"]
    assert hub.taken == []


def test_a_refusal_of_the_hub_shows_no_token(call, hub, store, monkeypatch):
    monkeypatch.setenv("TEST_FAULT", "error")
    result = call(hub.weights(store), token="hf_sesame_open")
    assert "does not accept the token" in result["msg"]
    assert "sesame" not in json.dumps(result)


def test_a_client_that_dies_shows_no_token_and_leaves_what_came(call, hub, store, monkeypatch):
    weights = hub.weights(store)
    monkeypatch.setenv("TEST_FAULT", "crash")
    result = call(weights, token="hf_sesame_open")
    assert "Segmentation fault" in result["msg"]
    assert "sesame" not in json.dumps(result)
    assert not Path(weights["directory"]).exists()
    staged = [name for place, _, names in os.walk(f"{store}/.staging") for name in names if "tree" in place]
    assert {"config.json", "tokenizer.json"} <= set(staged)
    monkeypatch.delenv("TEST_FAULT")
    assert call(weights)["changed"]


def test_leftovers_of_an_interrupted_run_go(call, hub, store):
    weights = hub.weights(store)
    tree = Path(store, ".staging", f"acme--tiny--{weights['revision']}", "tree")
    notes = tree / ".cache/huggingface/download"
    notes.mkdir(parents=True)
    for path in (notes / "AAAA.bbbb.cccc.incomplete", notes / "old.json.lock", tree / "old.safetensors"):
        path.write_bytes(b"x" * 1000)
    call(weights)
    assert names(weights["directory"]) == [
        store_manifest.NAME,
        "config.json",
        "model.safetensors",
        "tokenizer.json",
    ]


def test_two_runs_at_once_fetch_once(call, hub, store, monkeypatch):
    from boxwright.ansible.modules import model_store

    weights = hub.weights(store)
    real, began, go = model_store.fetch, threading.Event(), threading.Event()

    def slow(*arguments):
        began.set()
        assert go.wait(20)
        return real(*arguments)

    def second():
        assert began.wait(20)
        call_again(weights)

    class Module:
        check_mode = False

        def __init__(self, params):
            self.params = params

    def call_again(weights):
        params = {
            "store": store,
            "weights": [weights],
            "quantized": [],
            "served": [],
            "allow_pickle": [],
            "allow_code": [],
            "deep": False,
            "reserve": 0,
            "lock_timeout_s": 20,
            "progress_file": None,
        }
        results.append(model_store.Call(Module(params)).run())

    results = []
    monkeypatch.setattr(model_store, "fetch", slow)
    other = threading.Thread(target=second)
    other.start()
    threading.Timer(1.5, go.set).start()
    assert call(weights)["changed"]
    other.join(30)
    assert (results[0]["changed"], results[0]["stores"][0]["state"]) == (False, "there")
    assert len(hub.taken) == 3


def test_a_path_is_only_looked_at(call, tmp_path):
    directory = tmp_path / "mine"
    directory.mkdir()
    for name, content in REPOSITORY.items():
        (directory / name).write_bytes(content)
    weights = {"kind": "path", "directory": str(directory)}
    result = call(weights)
    assert not result["changed"]
    assert "1 tensors, all there" in result["msg"]
    (directory / "model.safetensors").write_bytes(b"")
    result = call(weights)
    assert result["failed"]
    assert "it is empty" in result["msg"]
    assert sorted(path.name for path in directory.iterdir()) == sorted(REPOSITORY)


def test_a_source_is_not_fetched_for_what_was_made_of_it(call, hub, store):
    weights = hub.weights(store)
    made = weights["directory"] + "-autoawq-w4g64"
    quantized = [{"method": "autoawq", "source": weights, "directory": made}]
    Path(made).mkdir(parents=True)
    store_manifest.save(made, store_manifest.Manifest("quantized", "acme/tiny", "x", []))
    result = call(weights, quantized=quantized, served=[made])
    assert (result["changed"], result["stores"][0]["state"]) == (False, "not needed")
    assert call(weights, quantized=quantized, served=[made, weights["directory"]])["changed"]


def test_a_directory_outside_the_store(call, hub, store):
    result = call(hub.weights(store, directory="/etc/model"))
    assert "outside the store" in result["msg"]
