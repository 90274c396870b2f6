import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from ansible.inventory.manager import InventoryManager
from ansible.parsing.dataloader import DataLoader
from ansible.parsing.vault import VaultLib, VaultSecret
from ansible.vars.manager import VariableManager

from boxwright.errors import EXIT_BAD_INPUT, UserError
from boxwright.spec.inventory import Inventory, load, resolve_hosts
from boxwright.spec.problem import SpecErrors
from boxwright.spec.validate import check
from boxwright.spec.values import Opaque

Read = Callable[[Mapping[str, str]], Inventory]
Write = Callable[[Mapping[str, str]], Path]

#: One inventory in which every place that can give a variable gives some, so that precedence shows.
EVERYWHERE = {
    "hosts.yml": """\
all:
  vars: {a: all-inventory, b: all-inventory, c: all-inventory, d: all-inventory, e: all-inventory, f: 1, g: 1}
  children:
    zebra:
      vars: {b: zebra-inventory, c: zebra-inventory, d: zebra-inventory, e: 2, f: 2}
      hosts:
        box1: {d: host-inventory, e: host-inventory}
        box2:
    ape:
      vars:
        b: ape-inventory
        h: ape
      hosts:
        box1:
          i:
            j: [1, {k: text}]
    late:
      vars: {ansible_group_priority: 10, b: late-inventory}
      hosts:
        box2:
""",
    "group_vars/all.yml": "c: all-file\nd: all-file\ne: all-file\n",
    "group_vars/zebra/one.yml": "# first\nd: zebra-file\nf: zebra-file\n",
    "group_vars/zebra/two.yml": "f: zebra-second\n",
    "group_vars/ape.yml": "d: ape-file\n",
    "host_vars/box1.yml": "\n\ne: host-file\nbox_deployments:\n  - name: x\n    image: 'y'\n",
}


def test_the_place_of_a_value_is_the_one_that_ansible_took_it_from(write: Write) -> None:
    """Ansible tags each string with its origin: a second opinion on every place of the test inventory."""
    directory = write(EVERYWHERE)
    inventory = load([directory])
    loader = DataLoader()
    manager = InventoryManager(loader, sources=[str(directory)])
    variables = VariableManager(loader, manager)
    compared = 0
    for host in inventory.hosts:
        for name, value in variables.get_vars(host=manager.get_host(host)).items():
            if name.startswith(("inventory_", "ansible_", "group", "playbook", "omit")):
                continue
            for path, text in _strings(value, name):
                origin = _origin(text)
                place = inventory.location(host, path)
                assert origin is not None
                assert place is not None
                assert (str(place.file), place.line) == (str(origin.path), origin.line_num), f"{host} {path}"
                compared += 1
    assert compared > 15


def _strings(value: object, path: str) -> list[tuple[str, str]]:
    if isinstance(value, dict):
        return [found for key, item in value.items() for found in _strings(item, f"{path}.{key}")]
    if isinstance(value, list):
        return [found for index, item in enumerate(value) for found in _strings(item, f"{path}[{index}]")]
    return [(path, value)] if isinstance(value, str) else []


def _origin(value: str) -> object | None:
    from ansible._internal._datatag._tags import Origin

    return Origin.get_tag(value)


def test_values_are_plain_and_templates_are_known_as_such(read: Read) -> None:
    inventory = read({
        "host_vars/box1.yml": "box_root_dir: '{{ base }}/x'\nbase: /srv\n"
        "box_proxy: !unsafe '{{ no }}'\nn: 5\nt: true\n",
    })  # fmt: skip
    raw = inventory.raw("box1")
    assert raw["box_root_dir"] == Opaque("template", "{{ base }}/x")
    assert raw["box_proxy"] == "{{ no }}"
    assert (type(raw["n"]), type(raw["base"]), raw["t"]) == (int, str, True)
    assert inventory.variables("box1") == {"box_root_dir": "/srv/x", "box_proxy": "{{ no }}"}


def test_a_template_that_cannot_be_filled_in_is_told_with_its_place(read: Read, tmp_path: Path) -> None:
    inventory = read(
        {"host_vars/box1.yml": "x: 1\nbox_root_dir: '{{ nobody }}/x'\nbox_proxy: '{{ box_proxy }}'\n"}
    )
    with pytest.raises(SpecErrors) as raised:
        inventory.variables("box1")
    found = {problem.variable: problem for problem in raised.value.problems}
    assert (found["box_root_dir"].file, found["box_root_dir"].line) == (f"{tmp_path}/host_vars/box1.yml", 2)
    assert "nobody" in found["box_root_dir"].message
    assert "box_proxy" in found


def test_connection_variables_come_resolved_too(read: Read) -> None:
    inventory = read(
        {"host_vars/box1.yml": "ansible_host: '{{ ip }}'\nip: 192.0.2.1\nansible_become_password: x\n"}
    )
    assert inventory.variables("box1") == {"ansible_host": "192.0.2.1"}


def test_an_ini_inventory_has_places_too(read: Read) -> None:
    inventory = read({
        "hosts.yml": "",
        "hosts": "# comment\n[gpus]\nbox1 ansible_host=192.0.2.1 box_proxy=http://p:1\nbox[2:3]\n\n[gpus:vars]\nbox_root_dir=/srv/box\n"
                 "[others:children]\ngpus\n",
    })  # fmt: skip
    assert inventory.hosts == ("box1", "box2", "box3")
    assert inventory.groups("box2") == ("all", "others", "gpus")
    place, other = inventory.location("box1", "box_proxy"), inventory.location("box2", "box_root_dir")
    assert place is not None
    assert other is not None
    assert (place.line, other.line) == (3, 7)
    assert not check(inventory)


def test_a_broken_file_stops_only_those_who_read_it(read: Read) -> None:
    inventory = read({
        "hosts.yml": "all:\n  hosts:\n    box1:\n    box2:\n",
        "host_vars/box1.yml": "box_root_dir: [",
        "host_vars/box2.yml": "box_root_dir: /srv/box\n",
    })  # fmt: skip
    assert inventory.raw("box2")["box_root_dir"] == "/srv/box"
    with pytest.raises(SpecErrors, match=r"box1\.yml:1: not valid YAML"):
        inventory.raw("box1")
    assert not check(inventory, ["box2"])
    assert len(check(inventory)) == 1


def test_a_broken_list_of_hosts_is_told_before_a_host_is_called_unknown(read: Read) -> None:
    inventory = read({"hosts.yml": "all:\n  hosts:\n  box1: [\n"})
    with pytest.raises(SpecErrors, match=r"hosts.yml:\d+: not valid YAML"):
        resolve_hosts(inventory, ["box1"])


@pytest.mark.parametrize(
    ("files", "words"),
    [
        (
            {"host_vars/bxo1.yml": "x: 1\n"},
            'belongs to no host: there is none named "bxo1"\n    allowed: did you mean "box1"?',
        ),
        ({"group_vars/gpus.yml": "x: 1\n"}, "belongs to no group"),
        (
            {"host_vars/box1/a.yml": "x: 1\n", "host_vars/box1.yml": "y: 1\n"},
            "box1.yml: is never read: box1 is",
        ),
        ({"host_vars/box1.yml": "- a\n"}, "box1.yml:1: must be a mapping of variables, not a list"),
        ({"host_vars/box1.yml": "text\n"}, "box1.yml:1: must be a mapping of variables, not a single value"),
    ],
)
def test_files_that_ansible_would_pass_over(read: Read, files: Mapping[str, str], words: str) -> None:
    assert any(words in str(problem) for problem in check(read(files)))


@pytest.mark.parametrize(
    "files",
    [
        {"host_vars/box1.yml": ""},
        {"host_vars/box1.yml": "---\n"},
        {"group_vars/all/x": "a: 1\n"},
        {".boxwright.lock.json": '{"format": 1, "hosts": {"box1": {}}}'},
        {"README.md": "# x\n"},
    ],
)
def test_files_that_are_all_right(read: Read, files: Mapping[str, str]) -> None:
    inventory = read(files)
    assert not check(inventory)
    assert inventory.hosts == ("box1",)


def test_bytes_that_are_no_text(write: Write) -> None:
    directory = write({})
    (directory / "host_vars").mkdir()
    (directory / "host_vars" / "box1.yml").write_bytes(b"a: 1\nb: \xff\n")
    assert [
        "box1.yml:2: is not UTF-8 text (byte 0xff)" in str(problem) for problem in check(load([directory]))
    ] == [True]


def test_two_inventories_together(tmp_path: Path) -> None:
    for name, text in {
        "a/hosts.yml": "all: {hosts: {box1: , box2: }}",
        "b/hosts.yml": "all: {hosts: {box2: , box3: }}",
        "a/group_vars/all.yml": "box_root_dir: /a\n",
        "b/group_vars/all.yml": "box_root_dir: /b\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    inventory = load([tmp_path / "a", tmp_path / "b"])
    assert inventory.hosts == ("box1", "box2", "box3")
    assert [str(inventory.directory(host).relative_to(tmp_path)) for host in ("box1", "box3")] == ["a", "b"]
    place = inventory.location("box1", "box_root_dir")
    assert place is not None
    assert (place.file.parent.parent.name, inventory.raw("box1")["box_root_dir"]) == ("b", "/b")


@pytest.mark.parametrize(
    "files", [{"hosts.yml": ""}, {"hosts.yml": "all:\n"}, {"hosts.yml": "", "hosts": "# none\n"}]
)
def test_an_inventory_without_hosts(read: Read, files: Mapping[str, str]) -> None:
    assert [problem.message for problem in check(read(files))] == ["lists no hosts"]


def test_the_schema_is_not_taken_for_an_inventory() -> None:
    root = Path(__file__).resolve().parents[3] / "inventory"
    assert [problem.message for problem in load([root]).problems] == ["is a JSON Schema, not an inventory"]


def test_an_inventory_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no inventory") as raised:
        load([tmp_path / "nope"])
    assert raised.value.status == EXIT_BAD_INPUT


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["bxo1"], 'no host "bxo1"'),
        (["box1", "bxo2"], 'no host "bxo2"'),
        (["box1,bxo2"], 'no host "bxo2"'),
        (["box*"], "is a pattern"),
        (["box[1:2]"], "is a pattern"),
        (["all"], "is a group"),
        (["gpus"], "is a group"),
        (["!box1"], "is a pattern"),
        (["localhost"], 'no host "localhost"'),
        (["box1,"], "is empty"),
        ([""], "no host is named"),
        ([], "no host is named"),
        (["bxo1", "box1", "bxo2"], 'no host "bxo1"; there is no host "bxo2"'),
        (["; reboot"], "no host"),
        (["BOX1"], 'no host "BOX1"'),
    ],
)
def test_only_hosts_that_are_named_exactly(read: Read, names: list[str], words: str) -> None:
    inventory = read({"hosts.yml": "gpus:\n  hosts:\n    box1:\n    box2:\n"})
    with pytest.raises(UserError) as raised:
        resolve_hosts(inventory, names)
    assert words in raised.value.what
    assert "known hosts: box1, box2" in str(raised.value)
    assert raised.value.status == EXIT_BAD_INPUT


def test_a_misspelt_host_is_guessed(read: Read) -> None:
    with pytest.raises(UserError) as raised:
        resolve_hosts(read({}), ["bxo1"])
    assert raised.value.ways_out == ("--host box1",)


def test_hosts_come_once_and_in_the_order_asked_for(read: Read) -> None:
    inventory = read({"hosts.yml": "gpus:\n  hosts:\n    box1:\n    box2:\n    box3:\n"})
    assert resolve_hosts(inventory, ["box3, box1", "box3"]) == ["box3", "box1"]


PASSWORD = "open sesame"


def _vaulted(text: str) -> str:
    return VaultLib([("default", VaultSecret(PASSWORD.encode()))]).encrypt(text).decode()


def _inline(text: str) -> str:
    return "!vault |\n" + "".join(f"    {line}\n" for line in _vaulted(text).splitlines())


@pytest.fixture
def password(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "password"
    file.write_text(f"{PASSWORD}\n")
    file.chmod(0o600)
    monkeypatch.setenv("ANSIBLE_VAULT_PASSWORD_FILE", str(file))


def test_a_vault_without_a_password(tmp_path: Path) -> None:
    place = tmp_path / "inventory"
    (place / "host_vars" / "box1").mkdir(parents=True)
    (place / "hosts.yml").write_text("all:\n  hosts:\n    box1:\n")
    (place / "host_vars" / "box1" / "vault.yml").write_text(_vaulted("vault_key: x\n"))
    (place / "host_vars" / "box1" / "main.yml").write_text("box_hub:\n  token: x\n")
    said = [str(problem) for problem in check(load([place]))]
    assert len(said) == 1
    assert "vault.yml:1: is encrypted, and no vault password is known" in said[0]
    assert "ANSIBLE_VAULT_PASSWORD_FILE" in said[0]


def test_an_encrypted_value_without_a_password(read: Read) -> None:
    said = [
        str(p) for p in check(read({"host_vars/box1.yml": f"x: 1\nbox_proxy: {_inline('http://u:p@h')}"}))
    ]
    assert len(said) == 1
    assert "box1.yml:2: box1: box_proxy: is encrypted, and no vault password is known" in said[0]


@pytest.mark.usefixtures("password")
def test_a_vault_with_its_password(tmp_path: Path) -> None:
    place = tmp_path / "inventory"
    (place / "host_vars" / "box1").mkdir(parents=True)
    (place / "hosts.yml").write_text("all:\n  hosts:\n    box1:\n")
    (place / "host_vars" / "box1" / "vault.yml").write_text(
        _vaulted("key: topsecret1\nbox_root_dir: hush hush\n")
    )
    (place / "host_vars" / "box1" / "main.yml").write_text(
        f"box_hub:\n  token: '{{{{ key }}}}'\nbox_proxy: {_inline('http://p:1')}"
    )
    inventory = load([place])
    [problem] = check(inventory)
    assert str(problem).endswith("allowed: an absolute path of letters, digits, ., _ and -")
    assert (Path(problem.file or "").name, problem.line, problem.value) == ("vault.yml", 2, "********")
    assert "hush" not in str(problem)
    assert inventory.variables("box1") == {
        "box_hub": {"token": "topsecret1"}, "box_root_dir": "hush hush", "box_proxy": "http://p:1"
    }  # fmt: skip


@pytest.mark.usefixtures("password")
def test_a_vault_with_another_password(read: Read, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    other = VaultLib([("default", VaultSecret(b"another"))]).encrypt("a: 1\n").decode()
    place = tmp_path / "inventory"
    (place / "host_vars").mkdir(parents=True)
    (place / "hosts.yml").write_text("all:\n  hosts:\n    box1:\n")
    (place / "host_vars" / "box1.yml").write_text(other)
    said = [str(problem) for problem in check(load([place]))]
    assert any("no known password opens it" in line for line in said)


def test_a_password_file_that_is_not_there(read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANSIBLE_VAULT_PASSWORD_FILE", "/nonexistent/password")
    said = [str(problem) for problem in check(read({"host_vars/box1.yml": _vaulted("a: 1\n")}))]
    assert any("its password cannot be read" in line for line in said)
    assert not check(read({"host_vars/box1.yml": "x: 1\n"}))


def test_it_is_quick(write: Write) -> None:
    deployment = "box_deployments:\n  - {name: q, model: qwen3-8b, image: 'x:1'}\n"
    files = {f"host_vars/box{number}.yml": deployment for number in range(1, 41)}
    directory = write({"hosts.yml": "all:\n  hosts:\n    box[1:40]:\n", **files})
    started = time.process_time()
    assert not check(load([directory]))
    assert time.process_time() - started < 10


@pytest.mark.usefixtures("password")
def test_a_value_that_another_password_opens(read: Read) -> None:
    """Validate says it too, without a connection, and where the value stands."""
    other = VaultLib([("default", VaultSecret(b"another"))]).encrypt("hush hush").decode()
    token = "!vault |\n" + "".join(f"    {line}\n" for line in other.splitlines())
    inventory = read({"host_vars/box1.yml": f"box_hub:\n  token: {token}"})
    [problem] = [problem for problem in check(inventory) if problem.variable]
    assert (problem.variable, problem.line) == ("box_hub.token", 2)
    assert problem.message == "is encrypted, and no known password opens it"
    assert "ANSIBLE_VAULT_PASSWORD_FILE" in problem.allowed


def test_a_password_that_would_be_asked_for(read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANSIBLE_ASK_VAULT_PASS", "1")
    [problem] = check(read({"host_vars/box1.yml": f"box_proxy: {_inline('http://u:p@h')}"}))
    assert "its password would have to be asked for" in problem.message


def test_several_threads_read_an_inventory_and_none_loses_what_another_says(tmp_path, capsys):
    """A tuning of several boxes reads their variables at once, and prints meanwhile."""
    (tmp_path / "hosts.yml").write_text(
        "all: {vars: {box_root_dir: '/srv/{{ inventory_hostname }}'}, hosts: {a: {}, b: {}, c: {}, d: {}}}"
    )
    found, before = {}, sys.stdout

    def read(name):
        for _ in range(10):
            print(f"{name} speaks")
            found[name] = load([tmp_path]).variables(name)["box_root_dir"]

    threads = [threading.Thread(target=read, args=(name,)) for name in "abcd"]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert sys.stdout is before
    assert capsys.readouterr().out.count(" speaks\n") == 40
    assert found == {name: f"/srv/{name}" for name in "abcd"}
