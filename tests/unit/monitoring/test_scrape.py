"""What a Prometheus asks, from what boxes declare, and what it is refused."""

import ipaddress
import json

import pytest
import yaml

from boxwright.errors import UserError
from boxwright.monitoring import exporter, plan, scrape, server
from boxwright.spec.box import box_from_variables


def watched(host="box1", address="192.0.2.7", exporter_bind="192.0.2.7", allow=(), **deployment):
    """A box with one deployment."""
    declared = {
        "name": "qwen",
        "model": "qwen3.8-27b-int4",
        "image": "vllm/vllm-openai:v0.29.0",
        "open_paths": ["/metrics"],
        "bind": "192.0.2.7",
        **deployment,
    }
    variables = {
        "box_deployments": [declared] if deployment.get("name", "x") else [],
        "box_allow_from": list(allow),
    }
    return scrape.Watched(box_from_variables(host, variables), address, exporter_bind)


def asked(*boxes, me="monitor", address="192.0.2.1"):
    return {(one.job, one.where): dict(one.labels) for one in scrape.targets(me, address, boxes)}


def test_another_box_is_asked_where_it_listens():
    assert asked(watched(port=8001)) == {
        (scrape.NODES, "192.0.2.7:9100"): {"box": "box1"},
        (scrape.ENGINES, "192.0.2.7:8001"): {"box": "box1", "deployment": "qwen"},
    }


def test_what_listens_everywhere_is_asked_at_the_boxs_own_address():
    found = asked(watched(bind="0.0.0.0", exporter_bind="::", address="2001:db8::7"))
    assert set(found) == {(scrape.NODES, "[2001:db8::7]:9100"), (scrape.ENGINES, "[2001:db8::7]:8000")}


@pytest.mark.parametrize("bind", ["127.0.0.1", "0.0.0.0"])
def test_a_box_asks_itself_without_any_network(bind):
    found = asked(watched(bind=bind, exporter_bind=bind), me="box1")
    assert set(found) == {(scrape.NODES, "127.0.0.1:9100"), (scrape.ENGINES, "127.0.0.1:8000")}


def test_sglang_asks_for_no_key():
    engine = {"engine": "sglang", "image": "lmsysorg/sglang:v0.5.23", "open_paths": []}
    assert (scrape.ENGINES, "192.0.2.7:8000") in asked(watched(**engine))


def test_boxes_without_deployments_are_watched_too():
    box = scrape.Watched(box_from_variables("box2", {}), "192.0.2.8", "0.0.0.0")
    assert set(asked(box)) == {(scrape.NODES, "192.0.2.8:9100")}


@pytest.mark.parametrize(
    ("box", "told", "way"),
    [
        (watched(open_paths=[]), "/metrics asks for the key", "open_paths: [/metrics]"),
        (
            watched(bind="127.0.0.1"),
            "it listens on 127.0.0.1 alone, and monitor cannot ask",
            "bind: an address",
        ),
        (
            watched(exporter_bind="127.0.0.1"),
            "its node exporter listens on 127.0.0.1 alone",
            "monitoring_bind: ",
        ),
        (watched(exporter_bind="::1"), "its node exporter listens on ::1 alone", "monitoring_bind: "),
        (
            watched(allow=["192.0.2.64/26"]),
            "box_allow_from lets 192.0.2.64/26 in, and monitor is 192.0.2.1",
            "192.0.2.1 in box_allow_from of box1",
        ),
    ],
)
def test_what_cannot_be_reached_is_refused(box, told, way):
    with pytest.raises(UserError) as error:
        asked(box)
    assert told in error.value.what
    assert error.value.where.startswith("box1")
    assert any(one.startswith(way) for one in error.value.ways_out)


def test_everything_that_is_refused_is_told_at_once():
    with pytest.raises(UserError) as error:
        asked(watched(exporter_bind="127.0.0.1", open_paths=[]), watched("box2", bind="127.0.0.1"))
    assert [
        word in error.value.what for word in ("box1: its node exporter", "box1: deployment", "box2: ")
    ] == [True] * 3


@pytest.mark.parametrize("allow", [["192.0.2.0/24"], ["2001:db8::/32", "192.0.2.1"]])
def test_a_network_that_is_let_in(allow):
    assert (scrape.ENGINES, "192.0.2.7:8000") in asked(watched(allow=allow))


def test_a_name_cannot_be_judged_by_a_network():
    assert asked(watched(allow=["198.51.100.0/24"]), address="monitor.example.org")


SECRET = "s3cret-word"
DECLARED = {
    "monitoring_exporters": True,
    "monitoring_bind": "192.0.2.7",
    "monitoring_server": True,
    "monitoring_server_bind": "127.0.0.1",
    "monitoring_interval_s": 10,
    "monitoring_retention_days": 7,
    "monitoring_retention_gb": 3,
    "monitoring_alertmanagers": ["alerts.example.org:9093"],
    "monitoring_remote_write": {
        "url": "https://m.example.org/w",
        "username": "box",
        "password": "s3cret-word",
    },
    "box_allow_from": ["192.0.2.0/24"],
}


def of(**changes):
    return plan.declared({**DECLARED, **changes})


def test_both_parts_of_a_box():
    found = plan.kept(of(), scrape.targets("box1", "192.0.2.7", [watched()]))
    config = yaml.safe_load(found["files"][server.CONFIG])
    assert config["global"]["scrape_interval"] == "10s"
    assert [one["job_name"] for one in config["scrape_configs"]] == [
        "prometheus",
        scrape.ENGINES,
        scrape.NODES,
    ]
    assert config["alerting"]["alertmanagers"][0]["static_configs"] == [
        {"targets": ["alerts.example.org:9093"]}
    ]
    engines = json.loads(found["files"][server.TARGETS[scrape.ENGINES]])
    assert engines == [{"labels": {"box": "box1", "deployment": "qwen"}, "targets": ["192.0.2.7:8000"]}]
    assert "retention.time=7d" in found["files"][server.DROP_IN]
    assert "retention.size=3GB" in found["files"][server.DROP_IN]
    assert "flush-deadline=10s" in found["files"][server.DROP_IN]
    assert "SendSIGKILL=yes" in found["files"][server.DROP_IN]
    assert found["gone"] == []
    assert found["ended"] == []


def test_the_secret_is_in_no_file_that_others_read():
    found = plan.kept(of(), [])
    assert found["secrets"] == {server.PASSWORD: SECRET}
    assert not [path for path, text in found["files"].items() if SECRET in text]
    remote = yaml.safe_load(found["files"][server.CONFIG])["remote_write"]
    assert remote[0]["basic_auth"] == {"username": "box", "password_file": server.PASSWORD}


def test_without_a_name_the_password_is_a_token():
    one = of(monitoring_remote_write={"url": "https://m.example.org/w", "password": SECRET})
    (remote,) = yaml.safe_load(plan.kept(one, [])["files"][server.CONFIG])["remote_write"]
    assert remote["authorization"] == {"type": "Bearer", "credentials_file": server.PASSWORD}


def test_what_is_declared_no_more_goes_with_its_units():
    found = plan.kept(of(monitoring_exporters=False, monitoring_server=False), [])
    assert (found["files"], found["secrets"], found["check"]) == ({}, {}, [])
    both = plan.kept(of(), [])
    assert {*both["files"], *both["secrets"], exporter.OUTPUT} == set(found["gone"])
    assert {one["name"]: one["mark"] for one in found["ended"]} == {
        "boxwright-gpu-metrics.timer": exporter.TIMER_FILE,
        "prometheus-node-exporter.service": exporter.DROP_IN,
        "prometheus.service": server.DROP_IN,
    }


def test_a_password_that_is_declared_no_more_is_taken_away():
    assert plan.kept(of(monitoring_remote_write={}), [])["gone"] == [server.PASSWORD]


def test_only_allowed_networks_are_answered_by_an_exporter_that_others_reach():
    assert "IPAddressDeny=any\nIPAddressAllow=localhost 192.0.2.0/24\n" in exporter.drop_in(
        "192.0.2.7", ["192.0.2.0/24"]
    )
    assert "IPAddress" not in exporter.drop_in("127.0.0.1", ["192.0.2.0/24"])
    assert "IPAddress" not in exporter.drop_in("192.0.2.7", [])


def test_what_is_asked_to_see_that_it_works():
    targets = scrape.targets("box1", "192.0.2.7", [watched()])
    assert plan.asked(of(), targets) == {
        "exporter": {"host": "192.0.2.7", "port": 9100},
        "server": {
            "host": "127.0.0.1",
            "port": 9090,
            "expected": [[scrape.NODES, "192.0.2.7:9100"], [scrape.ENGINES, "192.0.2.7:8000"]],
        },
    }
    assert plan.asked(of(monitoring_exporters=False, monitoring_server=False), []) == {}


def test_every_address_is_one():
    assert ipaddress.ip_address(scrape.local("::1")).is_loopback
    assert scrape.local("*") == "127.0.0.1"
