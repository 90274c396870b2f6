"""Which subnet and addresses a lab takes."""

from ipaddress import IPv4Network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boxwright.errors import UserError
from boxwright.lab.network import address_for, candidates, choose_subnet, routes
from boxwright.lab.state import HostState, State

TABLE = """\
Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT
eth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0
docker0\t000011AC\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0
eth0\t000200C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0
"""


def networks(*texts):
    return [IPv4Network(text) for text in texts]


def test_routes_are_read_from_the_kernels_table():
    assert routes(TABLE) == networks("0.0.0.0/0", "172.17.0.0/16", "192.0.2.0/24")


def test_a_default_route_does_not_take_every_subnet():
    assert choose_subnet(networks("0.0.0.0/0")) == IPv4Network("172.28.0.0/24")


@pytest.mark.parametrize(
    ("taken", "kept", "chosen"),
    [
        ([], "", "172.28.0.0/24"),
        (["172.28.0.0/16"], "", "172.29.0.0/24"),
        (["172.28.0.128/25"], "", "172.28.1.0/24"),
        (["172.16.0.0/12"], "", "10.213.0.0/24"),
        (["172.16.0.0/12", "10.213.0.0/16"], "", "10.197.0.0/24"),
        ([], "10.61.7.0/24", "10.61.7.0/24"),
        (["10.61.0.0/16"], "10.61.7.0/24", "172.28.0.0/24"),
    ],
)
def test_the_first_free_subnet_is_chosen(taken, kept, chosen):
    assert choose_subnet(networks(*taken), kept) == IPv4Network(chosen)


def test_no_free_subnet_is_said_with_a_way_out():
    with pytest.raises(UserError, match="no free subnet") as error:
        choose_subnet(networks("172.16.0.0/12", "10.0.0.0/8"))
    assert "docker network prune" in error.value.ways_out[0]


@given(st.lists(st.tuples(st.integers(0, 2**32 - 1), st.integers(8, 32)), max_size=30))
def test_what_is_chosen_overlaps_nothing(taken):
    used = [IPv4Network((address, length), strict=False) for address, length in taken]
    if all(any(candidate.overlaps(network) for network in used) for candidate in candidates()):
        return
    chosen = choose_subnet(used)
    assert chosen.is_private
    assert not any(chosen.overlaps(network) for network in used)


def test_a_host_keeps_its_address_and_a_new_one_gets_the_lowest_free():
    state = State(subnet="172.28.3.0/24")
    state.hosts["b"] = HostState("rtx5090", "trixie", "172.28.3.11")
    assert address_for("b", state) == "172.28.3.11"
    assert address_for("a", state) == "172.28.3.10"
    state.hosts["a"] = HostState("rtx5090", "trixie", "172.28.3.10")
    assert address_for("c", state) == "172.28.3.12"


def test_a_full_network_is_said():
    state = State(subnet="172.28.3.0/24")
    for number in range(10, 251):
        state.hosts[f"h{number}"] = HostState("none", "trixie", f"172.28.3.{number}")
    with pytest.raises(UserError, match="no address left"):
        address_for("one-more", state)
