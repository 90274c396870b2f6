"""Rules for published ports: whom they let through, that nothing else is touched, and that they are kept."""

import contextlib
import importlib.util
import json
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest
from host_doubles import World

SCRIPT = Path(__file__).resolve().parents[3] / "roles/engine/files/port-access.py"
DOCKER = {
    "INPUT": ["-p tcp -m tcp --dport 22 -j ACCEPT"],
    "FORWARD": ["-j DOCKER-USER"],
    "DOCKER-USER": ["-j RETURN"],
}
#: IPv6 where Docker keeps no rules for it.
PLAIN = {"INPUT": [], "FORWARD": []}
PLAIN_BOTH = {"4": PLAIN, "6": PLAIN}
OPEN = {"name": "q", "bind": "0.0.0.0", "port": 8000}


@pytest.fixture
def host(root, tmp_path, monkeypatch, module):
    """A host with Docker; call(**arguments) runs the module, chains(version) tells the rules."""
    from boxwright.ansible.modules import port_access

    config, receipts = str(root / "etc/access.json"), str(root / "run/access.json")
    script = str(root / "access.py")
    world = World(
        tmp_path,
        monkeypatch,
        "netfilter",
        tables={"4": DOCKER, "6": PLAIN},
        unit={"enabled": "disabled", "active": "inactive"},
        watch={"enabled": "disabled", "active": "inactive"},
        program=[script, "apply", config, receipts],
        file=str(tmp_path / "world.json"),
    )
    monkeypatch.setattr(port_access, "PYTHON", "python3")
    world.call = module(
        "port_access",
        allow_from=["192.0.2.0/24", "2001:db8::/32"],
        deployments=[OPEN],
        config="/etc/access.json",
        receipts="/run/access.json",
        script="/access.py",
        script_text=SCRIPT.read_text(),
        unit="access.service",
    )
    world.chains = lambda version=4: world["tables"][str(version)]
    world.unit_text = lambda: (root / "etc/systemd/system/access.service").read_text()
    world.files = lambda: sorted(str(p.relative_to(root)) for p in root.rglob("*") if p.is_file())
    return world


def test_only_declared_sources_pass(host):
    result = host.call()
    assert result["changed"]
    chains = host.chains()
    assert chains["DOCKER-USER"] == ["-j BOXWRIGHT-ACCESS", "-j RETURN"]
    assert chains["INPUT"] == ["-j BOXWRIGHT-ACCESS", *DOCKER["INPUT"]]
    assert chains["FORWARD"] == DOCKER["FORWARD"]
    assert chains["BOXWRIGHT-ACCESS"] == [
        "-i lo -j RETURN",
        "-m conntrack --ctstate RELATED,ESTABLISHED -j RETURN",
        "-p tcp -m conntrack --ctstate DNAT --ctorigdstport 8000 --ctdir ORIGINAL -j BOXWRIGHT-FROM",
        "-p tcp -m tcp --dport 8000 -m addrtype --dst-type LOCAL -j BOXWRIGHT-FROM",
    ]
    assert chains["BOXWRIGHT-FROM"] == ["-s 192.0.2.0/24 -j RETURN", "-j DROP"]
    # Without rules of Docker's for IPv6 its own chain is not there, and its proxy listens behind INPUT.
    assert host.chains(6)["FORWARD"] == host.chains(6)["INPUT"] == ["-j BOXWRIGHT-ACCESS"]
    assert host.chains(6)["BOXWRIGHT-FROM"] == ["-s 2001:db8::/32 -j RETURN", "-j DROP"]


def test_the_unit_comes_after_docker_and_before_engines_that_need_it(host):
    host.call(deployments=[OPEN, {**OPEN, "name": "inner", "bind": "127.0.0.1", "port": 8001}])
    text = host.unit_text()
    assert "After=docker.service" in text
    assert "PartOf=docker.service" in text
    assert "Before=boxwright-q.service\n" in text
    assert "RequiredBy=boxwright-q.service\n" in text


def test_again_nothing_changes(host):
    host.call()
    assert not host.call()["changed"]


def test_an_address_is_guarded_alone(host):
    host.call(deployments=[{**OPEN, "bind": "192.0.2.9"}])
    rules = host.chains()["BOXWRIGHT-ACCESS"][2:]
    assert rules == [
        "-p tcp -m conntrack --ctstate DNAT --ctorigdst 192.0.2.9 --ctorigdstport 8000 --ctdir ORIGINAL "
        "-j BOXWRIGHT-FROM",
        "-d 192.0.2.9 -p tcp -m tcp --dport 8000 -m addrtype --dst-type LOCAL -j BOXWRIGHT-FROM",
    ]
    assert host.chains(6) == PLAIN


@pytest.mark.parametrize(
    "spoil",
    [
        lambda tables: tables["4"]["DOCKER-USER"].remove("-j BOXWRIGHT-ACCESS"),
        lambda tables: tables["4"]["DOCKER-USER"].append(tables["4"]["DOCKER-USER"].pop(0)),
        lambda tables: tables["6"]["INPUT"].clear(),
        lambda tables: tables["4"]["BOXWRIGHT-FROM"].insert(0, "-s 198.51.100.1/32 -j RETURN"),
        lambda tables: tables["4"]["BOXWRIGHT-FROM"].pop(),
        lambda tables: tables["4"]["INPUT"].append("-j BOXWRIGHT-ACCESS"),
    ],
)
def test_what_somebody_changed_is_told_and_mended(host, spoil):
    host.call()
    good, tables = host["tables"], host["tables"]
    spoil(tables)
    host.set(tables=tables)
    checked = host.call(check=True)
    assert checked["changed"]
    assert host["tables"] == tables
    assert host.call()["done"] == checked["done"]
    assert host["tables"] == good


def test_other_sources_and_ports_replace_the_old_ones(host):
    host.call()
    assert host.call(allow_from=["198.51.100.7"], deployments=[{**OPEN, "port": 9000}])["changed"]
    assert host.chains()["BOXWRIGHT-FROM"] == ["-s 198.51.100.7/32 -j RETURN", "-j DROP"]
    assert not [rule for rule in host.chains()["BOXWRIGHT-ACCESS"] if "8000" in rule]


@pytest.mark.parametrize(
    "arguments", [{"allow_from": []}, {"deployments": []}, {"deployments": [{**OPEN, "bind": "::1"}]}]
)
def test_what_is_dropped_is_taken_away_whole(host, arguments):
    host.call()
    before = [call for call in host["calls"] if call[0] == "systemctl"]
    assert host.call(**arguments)["changed"]
    assert host["tables"] == {"4": DOCKER, "6": PLAIN}
    assert host.files() == []
    verbs = [call[1] for call in host["calls"] if call[0] == "systemctl"][len(before) :]
    assert verbs.index("disable") < verbs.index("stop"), "engines would be stopped with the unit"
    assert not host.call(**arguments)["changed"]


def test_check_mode_touches_nothing(host):
    assert host.call(check=True)["changed"]
    assert host["tables"] == {"4": DOCKER, "6": PLAIN}
    assert host.files() == []


def test_a_refusal_of_the_program_is_told(host):
    host.set(refuses="iptables: Permission denied (you must be root).")
    result = host.call()
    assert "you must be root" in result["msg"]


@pytest.mark.parametrize("network", ["10.0.0.7/8", "anywhere", "0.0.0.0/0 -j ACCEPT", "::1/129", "-j"])
def test_a_network_that_is_none_changes_nothing(host, network):
    result = host.call(allow_from=[network])
    assert "box_allow_from" in result["msg"]
    assert host.files() == []
    assert host["tables"] == {"4": DOCKER, "6": PLAIN}


def test_the_rules_are_kept_as_they_read(host, root):
    host.call()
    kept = json.loads((root / "run/access.json").read_text())
    assert set(kept) == {"config", "4", "6"}


@pytest.fixture
def firewalld(host, root):
    """firewalld is installed on the host."""
    (root / "usr/sbin").mkdir(parents=True)
    (root / "usr/sbin/firewalld").touch()
    return host


def test_a_unit_watches_firewalld_where_it_is_installed(firewalld, root):
    """A reload of it empties iptables: seen of firewalld 1.3.3, whose backend was nftables."""
    result = firewalld.call()
    assert "enable and start access-watch.service" in result["done"]
    text = (root / "etc/systemd/system/access-watch.service").read_text()
    assert "access.py watch" in text
    assert "Restart=always\n" in text
    assert firewalld["watch"] == {"enabled": "enabled", "active": "active"}
    assert not firewalld.call()["changed"]
    firewalld.set(watch={"enabled": "enabled", "active": "failed"})
    assert firewalld.call()["changed"]
    assert firewalld["watch"]["active"] == "active"


def test_that_unit_goes_with_the_rules(firewalld):
    firewalld.call()
    assert firewalld.call(allow_from=[])["changed"]
    assert firewalld["watch"] == {"enabled": "disabled", "active": "inactive"}
    assert firewalld.files() == ["usr/sbin/firewalld"]


def test_without_firewalld_there_is_no_such_unit(host):
    host.call()
    assert "etc/systemd/system/access-watch.service" not in host.files()


@pytest.fixture
def watch(root, monkeypatch):
    """Runs the watching program: watch(step, …) lets each step happen and has firewalld say what it returns.

    The result: what the program printed and the seconds it waited.
    """
    spec = importlib.util.spec_from_file_location("port_access_program", SCRIPT)
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    real, waited = subprocess.Popen, []

    def run(capsys, *steps):
        def popen(argv, **options):
            if argv[0] != "busctl":
                return real(argv, **options)
            asked = [word.partition("member='")[2].partition("'")[0] for word in argv if "--match=" in word]
            assert asked == ["Reloaded", "NameOwnerChanged"]
            lines = (json.dumps({"member": step()}, separators=(",", ":")) + "\n" for step in steps)
            return contextlib.nullcontext(SimpleNamespace(stdout=lines, returncode=1))

        monkeypatch.setattr(subprocess, "Popen", popen)
        monkeypatch.setattr(program, "time", SimpleNamespace(sleep=waited.append))
        with pytest.raises(program.Refused, match="busctl ended with status 1"):
            program.watch(root / "etc/access.json", root / "run/access.json")
        return capsys.readouterr().out, waited

    return run


def test_rules_that_a_start_or_a_stop_of_firewalld_took_are_made_again(host, watch, capsys):
    """Either empties iptables, and neither is a reload: https://github.com/firewalld/firewalld/issues/863."""
    host.call()
    good = host["tables"]

    def emptied():
        host.set(tables={"4": DOCKER, "6": PLAIN})
        return "NameOwnerChanged"

    said, waited = watch(capsys, emptied)
    assert said.count("applied again: ") == 1
    assert host["tables"] == good
    assert waited == [0, 1, 3, 10, 30]


def test_rules_that_a_reload_took_are_made_again(host, watch, capsys):
    """Also where Docker has its chain back only a moment later, or has none."""
    host.call()
    good = host["tables"]

    def emptied():
        host.set(tables=PLAIN_BOTH)
        return "Reloaded"

    def with_dockers_chain():
        assert host.chains()["FORWARD"] == ["-j BOXWRIGHT-ACCESS"]
        host.set(tables={"4": DOCKER, "6": PLAIN})
        return "Reloaded"

    said, waited = watch(capsys, emptied, with_dockers_chain)
    assert said.count("applied again: ") == 2
    assert host["tables"] == good
    assert waited == [0, 1, 3, 10, 30] * 2


def test_rules_that_were_gone_before_the_program_started(host, watch, capsys):
    host.call()
    good = host["tables"]
    host.set(tables={"4": DOCKER, "6": PLAIN})
    said, waited = watch(capsys, lambda: "NameAcquired")
    assert said.count("applied again: ") == 1
    assert host["tables"] == good
    assert waited == []


def test_what_is_declared_no_more_is_not_made_again(host, watch, capsys):
    host.call()
    host.call(allow_from=[])
    said, _ = watch(capsys, lambda: "Reloaded")
    assert said == ""
    assert host["tables"] == {"4": DOCKER, "6": PLAIN}
