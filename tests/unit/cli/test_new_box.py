"""The verb init, whole: what it writes, and that it writes nothing when anything is wrong.

ssh is a program of the test's: it either says what a real one says when it fails, or runs the command here.
"""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from boxwright.cli import new_box, recommending, staging
from boxwright.cli.verb import told

ROOT = Path(__file__).resolve().parents[3]
AT = "me@192.0.2.17"


class Done(NamedTuple):
    status: int
    out: str
    err: str


@pytest.fixture
def init(capsys: pytest.CaptureFixture[str]) -> Any:
    """The verb as a user meets it, but for the parsing of its words: init("me@host", facts_file=…)."""

    def run(host: str, **options: Any) -> Done:
        wish = recommending.wish(options.pop("context", ""), "", options.pop("image", ""))
        given = {name: str(value) if isinstance(value, Path) else value for name, value in options.items()}
        status = 0
        try:
            told(new_box.init)(host, wanted=wish, **given)
        except SystemExit as end:
            status = int(end.code or 0)
        return Done(status, *capsys.readouterr())

    return run


def invoke(*words: object) -> Done:
    done = subprocess.run(
        [sys.executable, "-m", "invoke", "--search-root", str(ROOT), *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    return Done(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def inventory(tmp_path: Path) -> Path:
    """An inventory of somebody's own, empty, in a directory with a space."""
    place = tmp_path / "my boxes"
    place.mkdir()
    return place


@pytest.fixture
def recorded(tmp_path: Path, box_facts: Any) -> Any:
    """Writes the facts of a box as `invoke facts --json` does."""

    def write(*arguments: Any, **more: Any) -> Path:
        file = tmp_path / "facts.json"
        file.write_text(json.dumps(box_facts(*arguments, **more).to_json()))
        return file

    return write


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Puts a program first in PATH."""
    place = tmp_path / "bin"
    place.mkdir()
    monkeypatch.setenv("PATH", f"{place}:{os.environ['PATH']}")

    def put(name: str, text: str) -> None:
        (place / name).write_text(f"#!/bin/sh\n{text}\n")
        (place / name).chmod(0o755)

    return put


def files(place: Path) -> dict[str, str]:
    return {str(one.relative_to(place)): one.read_text() for one in place.rglob("*") if one.is_file()}


def test_a_box_is_declared_validated_and_planned(inventory: Path, recorded: Any) -> None:
    """By the command line, each verb a program of its own."""
    facts = recorded(["rtx5090"], None)
    done = invoke("init", "--host", f"{AT}:2222", "--facts", facts, "--inventory", inventory)
    assert done.status == 0, done.err
    assert "box1: RTX 5090, Debian GNU/Linux 13 (trixie), no driver yet" in done.out
    assert "./invoke provision --host box1 --inventory '" in done.out
    assert max(map(len, done.out.splitlines())) <= 100 + len(str(inventory))
    assert set(files(inventory)) == {"hosts.yml", "host_vars/box1.yml"}
    reach = yaml.safe_load(files(inventory)["hosts.yml"])["all"]["hosts"]["box1"]
    assert reach == {"ansible_host": "192.0.2.17", "ansible_user": "me", "ansible_port": 2222}
    validated = invoke("validate", "--inventory", inventory)
    assert (validated.status, "nothing wrong" in validated.out) == (0, True)
    for words in (["--facts", facts], ["--offline"]):
        planned = invoke("plan", "--host", "box1", *words, "--inventory", inventory, "--json")
        assert planned.status == 0, planned.out
        assert json.loads(planned.out)["gates"] == []


ROCKY = (
    'ID="rocky"\nID_LIKE="rhel centos fedora"\nVERSION_ID="9.6"\nPRETTY_NAME="Rocky Linux 9.6 (Blue Onyx)"\n'
)


def test_a_rocky_box_is_declared_with_dockers_own_packages(inventory: Path, recorded: Any, init: Any) -> None:
    facts = recorded(["rtx5090"], None, system=ROCKY)
    done = init(AT, name="box1", facts_file=facts, inventory=inventory)
    assert done.status == 0, done.err
    assert "Rocky Linux 9.6 (Blue Onyx), no driver yet" in done.out
    assert "advice   dkms-needs-epel" in done.out
    text = files(inventory)["host_vars/box1.yml"]
    assert "container_runtime_source: vendor\n" in text
    assert "# Rocky Linux 9.6 (Blue Onyx) has no Docker of its own" in text
    declared = yaml.safe_load(text)
    assert declared["nvidia_driver_branch"] == "580"


def test_an_option_in_place_of_an_address(inventory: Path) -> None:
    done = invoke("init", "--host", "-oProxyCommand=touch x", "--inventory", inventory)
    assert (done.status, "is no address of a box" in done.err) == (2, True)
    assert "Traceback" not in done.err


def test_a_second_box_leaves_the_first_as_it_is(init: Any, inventory: Path, recorded: Any) -> None:
    (inventory / "hosts.yml").write_text(
        "# mine\nall:\n  hosts:\n    box1: {ansible_host: 192.0.2.9}  # old\n"
    )
    before = files(inventory)["hosts.yml"]
    (inventory / "hosts.yml").chmod(0o640)
    facts = recorded(["rtx3090"] * 2, "580.105.08")
    done = init(AT, facts_file=facts, inventory=inventory, as_json=True)
    assert done.status == 0, done.err
    said = json.loads(done.out)
    assert (said["host"], said["written"]) == ("box2", True)
    assert said["declaration"]["box_gpus"] == {"model": "rtx3090", "count": 2}
    assert set(said) == {"host", "address", "written", "files", "declaration", "text", "choice"}
    assert said["text"] == files(inventory)["host_vars/box2.yml"]
    assert files(inventory)["hosts.yml"].startswith(before)
    assert (inventory / "hosts.yml").stat().st_mode & 0o777 == 0o640


def test_print_shows_and_writes_nothing(init: Any, inventory: Path, recorded: Any) -> None:
    done = init(AT, facts_file=recorded(["rtx5090"], None), inventory=inventory, only_show=True)
    assert done.status == 0, done.err
    assert "model: qwen3.8-27b-int4" in done.out
    assert "ansible_host: 192.0.2.17" in done.out
    assert files(inventory) == {}


@pytest.mark.parametrize(
    ("host", "name"), [("gpu_a.example.org", "gpu-a"), ("me@2001:db8::7", "box1"), ("Box9", "box9")]
)
def test_the_name_of_a_box(host: str, name: str, init: Any, inventory: Path, recorded: Any) -> None:
    done = init(host, facts_file=recorded(["rtx5090"], None), inventory=inventory, as_json=True)
    assert json.loads(done.out)["host"] == name


def test_groups_give_the_box_what_they_give_every_box(init: Any, inventory: Path, recorded: Any) -> None:
    (inventory / "group_vars").mkdir()
    (inventory / "group_vars" / "all.yml").write_text('nvidia_driver_branch: "590"\nbox_root_dir: /srv/bw\n')
    done = init(AT, facts_file=recorded(["rtx5090"], None), inventory=inventory)
    assert done.status == 0, done.err
    assert "nvidia_driver_branch" not in yaml.safe_load(files(inventory)["host_vars/box1.yml"])


def test_what_is_wrong_in_the_groups_is_said_of_their_file(init: Any, inventory: Path, recorded: Any) -> None:
    (inventory / "group_vars").mkdir()
    (inventory / "group_vars" / "all.yml").write_text("box_root_dir: not a path\n")
    before = files(inventory)
    done = init(AT, facts_file=recorded(["rtx5090"], None), inventory=inventory)
    assert done.status == 2
    assert f"{inventory}/group_vars/all.yml:1" in done.err
    assert files(inventory) == before


@pytest.mark.parametrize(
    ("host", "options", "status", "said"),
    [
        ("-oProxyCommand=touch x", {}, 2, "is no address of a box"),
        ("me@192.0.2.17\nall:", {}, 2, "is no address of a box"),
        ("me@'; id", {}, 2, "is no address of a box"),
        (AT, {"name": "../../etc/x"}, 2, "is not a host name"),
        (AT, {"name": "a b"}, 2, "is not a host name"),
        (AT, {"name": "a\nb"}, 2, "is not a host name"),
        (AT, {"name": "my_box"}, 2, "my-box"),
        (AT, {"name": "{{ x }}"}, 2, "is not a host name"),
        (AT, {"name": "taken"}, 2, 'has a host "taken" already'),
        (AT, {"name": "all"}, 2, 'has a group "all" already'),
        (AT, {"name": "lonely"}, 2, "is not overwritten"),
        (AT, {"inventory": "/nowhere/at/all"}, 2, "there is no inventory at /nowhere/at/all"),
        (AT, {"inventory": " "}, 2, "there is no inventory"),
        (AT, {"model": "gpt9"}, 2, "begins with 'gpt9'"),
        (AT, {"model": "qwen3.8-27b-fp8"}, 3, "weights-do-not-fit"),
        (AT, {"facts_file": "/nowhere/facts.json"}, 2, "cannot be read"),
    ],
)
def test_wrong_words_write_nothing(
    host: str, options: dict[str, str], status: int, said: str, init: Any, inventory: Path, recorded: Any
) -> None:
    (inventory / "host_vars").mkdir()
    (inventory / "host_vars" / "lonely.yaml").write_text("{}\n")
    (inventory / "hosts.yml").write_text("all:\n  hosts:\n    taken:\n")
    before = files(inventory)
    done = init(host, **{"facts_file": recorded(["rtx5090"], None), "inventory": inventory, **options})
    assert done.status == status, done.out + done.err
    assert said in done.out + done.err
    assert "boxwright itself failed" not in done.err
    assert files(inventory) == before


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        ({"cards": []}, 1, "no NVIDIA card on its PCI bus"),
        ({"cards": ["rtx3060"]}, 1, "10de:2504"),
        ({"cards": ["gtx1080ti"], "driver": "580.105.08"}, 3, "card-older-than-image"),
        (
            {"cards": ["rtx5090"], "system": 'ID=fedora\nVERSION_ID=42\nNAME="Fedora"\n'},
            1,
            "roles are made for",
        ),
        ({"cards": ["rtx5090"], "system": "\n"}, 1, "roles are made for"),
        ({"cards": ["rtx5090"], "free": 5_000_000_000}, 3, "disk-too-small"),
    ],
)
def test_a_box_that_cannot_serve(
    arguments: dict[str, Any], status: int, said: str, init: Any, inventory: Path, recorded: Any
) -> None:
    done = init(AT, facts_file=recorded(**arguments), inventory=inventory)
    assert done.status == status, done.out + done.err
    assert said in " ".join((done.out + done.err).split())
    assert files(inventory) == {}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("all:\n  hosts: {a: }\n", "box1: {ansible_host: 192.0.2.17, ansible_user: me}"),
        ("all:\n  hosts: [\n", "not valid YAML"),
        ("plugin: constructed\n", ""),
    ],
)
def test_a_list_that_cannot_be_extended(
    text: str, said: str, init: Any, inventory: Path, recorded: Any
) -> None:
    (inventory / "hosts.yml").write_text(text)
    done = init(AT, facts_file=recorded(["rtx5090"], None), inventory=inventory)
    assert done.status in (1, 2)
    assert said in done.err
    assert files(inventory) == {"hosts.yml": text}


def test_an_inventory_that_is_a_file(init: Any, inventory: Path, recorded: Any) -> None:
    (inventory / "hosts").write_text("box9\n")
    done = init(AT, facts_file=recorded(["rtx5090"], None), inventory=inventory / "hosts")
    assert (done.status, "is a file" in done.err) == (2, True)


def test_a_list_that_cannot_be_written_takes_the_host_file_back(
    init: Any, inventory: Path, recorded: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*words: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "hosts.yml")

    monkeypatch.setattr(staging.os, "replace", full)
    (inventory / "hosts.yml").write_text("all:\n  hosts:\n    a:\n")
    before = files(inventory)
    done = init(AT, facts_file=recorded(["rtx5090"], None), inventory=inventory)
    assert (done.status, "No space left on device" in done.err) == (1, True)
    assert files(inventory) == before


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is read-only to root")
def test_an_inventory_that_cannot_be_written(init: Any, inventory: Path, recorded: Any) -> None:
    inventory.chmod(0o555)
    done = init(AT, facts_file=recorded(["rtx5090"], None), inventory=inventory)
    assert (done.status, "cannot be written" in done.err) == (2, True)


def test_ssh_says_no(init: Any, inventory: Path, program: Any) -> None:
    program("ssh", "echo 'Host key verification failed.' >&2; exit 255")
    done = init(f"{AT}:22", inventory=inventory)
    assert done.status == 1
    assert "does not know the box's host key" in done.err
    assert "ssh -p 22 me@192.0.2.17 true" in done.err
    assert files(inventory) == {}


HERE = 'for last; do :; done\nexec sh -c "$last"'


def test_sudo_says_no(init: Any, inventory: Path, program: Any) -> None:
    program("ssh", HERE)
    program("sudo", "echo 'me is not in the sudoers file.' >&2; exit 1")
    done = init(AT, inventory=inventory)
    assert (done.status, "may not use sudo" in done.err) == (1, True)
    assert files(inventory) == {}


def test_a_real_probe(init: Any, inventory: Path, program: Any, tmp_path: Path) -> None:
    """The module runs, on this machine; it finds the card of a program nvidia-smi, or says why not."""
    row = (
        "0, GPU-0, NVIDIA GeForce GTX 9, 580.105.08, 00000000:01:00.0, 1024 MiB, 24 MiB, 2 MiB, 5.2, "
        "Enabled, 575.00 W, 575.00 W, 400.00 W, 600.00 W, 210 MHz, 3090 MHz, 405 MHz, 14001 MHz, 1, 5, 16, "
        "16, [N/A]"
    )
    log = tmp_path / "ssh.log"
    program("nvidia-smi", f"case $1 in --query-gpu=*) echo '{row}' ;; *) exit 1 ;; esac")
    program("sudo", 'while [ "$1" != /bin/sh ]; do shift; done\nexec "$@"')
    program("ssh", f'echo "$*" >> {log}\n{HERE}')
    nobody = "127.0.0.1:1/vllm/vllm-openai:v0.29.0"
    done = init(f"{AT}:2222", inventory=inventory, image=nobody, as_json=True)
    assert "boxwright itself failed" not in done.err
    assert "-o Port=2222" in log.read_text()
    if "roles are made for" in done.err:
        pytest.skip("this machine's own system is none for a box")
    assert done.status == 3, done.err
    assert "card-older-than-image" in json.loads(done.out)["dropped"]
    assert files(inventory) == {}
