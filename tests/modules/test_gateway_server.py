"""A box is taken out of a gateway's use and put back: what HAProxy's socket is told, and what it answers."""

import contextlib
import socket
import threading

import pytest
from ansible.module_utils import gateway_socket

HEAD = "# pxname,svname,scur,status,check_status,last_chk,"
STATES = "1\n# be_id be_name srv_id srv_name srv_addr srv_op_state srv_admin_state srv_uweight srv_iweight\n"


class HAProxy:
    """A runtime socket. servers: (backend, name) -> [what its check found, requests]; held: those that are
    out of use by order, of which HAProxy says so only while they are well. refuses: its answer to orders.
    """

    def __init__(self, path):
        self.path, self.servers, self.told, self.refuses = str(path), {}, [], ""
        self.held = set()
        self.on_look = lambda: None
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(self.path)
        self._listener.listen()
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        with contextlib.suppress(OSError):
            while True:
                channel, _ = self._listener.accept()
                with channel:
                    channel.sendall(self.answer(channel.recv(4096).decode().strip()).encode())

    def close(self):
        self._listener.close()

    def answer(self, command):
        if command == "show stat":
            self.on_look()
            rows = [
                f"{server[0]},{server[1]},{now[1]},{self.status(server)},L4CON,refused"
                for server, now in self.servers.items()
            ]
            return "\n".join([HEAD, "clients,FRONTEND,9,OPEN,,", *rows, "model.q,BACKEND,9,UP,,", ""])
        if command == "show servers state":
            rows = [
                f"3 {back} 1 {name} 192.0.2.1 2 {8 if (back, name) in self.held else 0} 1 1"
                for back, name in self.servers
            ]
            return STATES + "\n".join(rows) + "\n\n"
        if command == "show info":
            return "Name: HAProxy\nVersion: 3.0\ndescription: 0123456789abcdef\n"
        self.told.append(command)
        if self.refuses:
            return self.refuses + "\n"
        server, _, state = command.removeprefix("set server ").partition(" state ")
        {"drain": self.held.add, "ready": self.held.discard}[state](tuple(server.split("/")))
        return "\n"

    def status(self, server):
        found = self.servers[server][0]
        return found.replace("UP", "DRAIN") if server in self.held else found


@pytest.fixture
def haproxy(tmp_path):
    made = HAProxy(tmp_path / "admin.sock")
    yield made
    made.close()


@pytest.fixture
def told(run_module, haproxy):
    def call(state, boxes=None, **more):
        boxes = boxes or {"box1": ["q", "r"]}
        return run_module(
            "gateway_server", boxes=boxes, state=state, socket=haproxy.path, **{"timeout_s": 5, **more}
        )

    return call


def test_a_box_is_drained_in_all_its_models_and_its_requests_end(haproxy, told):
    haproxy.servers = {
        ("model.q", "box1"): ["UP", 2],
        ("model.r", "box1"): ["UP 1/2", 0],
        ("model.q", "box2"): ["UP", 5],
        ("model.r", "box2"): ["UP", 0],
        ("box.q_box1-0", "engine"): ["no check", 2],
    }
    looks = []

    def ends():
        looks.append(1)
        if len(looks) > 3:
            haproxy.servers["model.q", "box1"][1] = 0

    haproxy.on_look = ends
    done = told("drained")
    assert (done["changed"], done["drained"], done["told"]) == (True, ["box1"], [])
    assert haproxy.told == ["set server model.q/box1 state drain", "set server model.r/box1 state drain"]
    assert len(looks) > 3


def test_the_only_box_of_a_model_stays_in_use(haproxy, told):
    haproxy.servers = {
        ("model.q", "box1"): ["UP", 1],
        ("model.q", "box2"): ["DOWN", 0],
        ("model.r", "box1"): ["UP", 0],
        ("model.r", "box2"): ["UP", 0],
    }
    done = told("drained")
    assert (done["changed"], done["drained"]) == (False, [])
    assert "box1 alone serves q" in done["told"][0]
    assert haproxy.told == []


def test_a_box_that_is_down_can_be_changed_while_nobody_else_serves(haproxy, told):
    haproxy.servers = {("model.q", "box1"): ["DOWN 1/2", 0]}
    assert told("drained")["drained"] == ["box1"]


def test_requests_that_do_not_end_are_told(haproxy, told):
    haproxy.servers = {("model.q", "box1"): ["UP", 3], ("model.q", "box2"): ["UP", 0]}
    done = told("drained", timeout_s=0)
    assert done["drained"] == ["box1"]
    assert "still works on 3 requests" in done["told"][0]


def test_two_boxes_are_alone_together(haproxy, told):
    haproxy.servers = {("model.q", "box1"): ["UP", 0], ("model.q", "box2"): ["UP", 0]}
    done = told("drained", {"box1": ["q"], "box2": ["q"]})
    assert done["drained"] == []
    assert "box1, box2 alone serves q" in done["told"][0]


def test_a_box_that_the_gateway_does_not_know_is_told(haproxy, told):
    haproxy.servers = {("model.q", "box2"): ["UP", 0]}
    done = told("drained")
    assert (done["changed"], done["drained"]) == (False, [])
    assert "sends box1 nothing yet" in done["told"][0]


@pytest.mark.parametrize("found", ["UP", "DOWN", "DOWN 1/2"])
def test_back_in_use_it_has_to_be_found_well(haproxy, told, found):
    """Also where its check has not seen yet that it is up: HAProxy does not call such a one drained."""
    haproxy.servers = {("model.q", "box1"): [found, 0], ("model.q", "box2"): ["UP", 0]}
    haproxy.held = {("model.q", "box1")}
    failed = {} if found == "UP" else told("ready", timeout_s=0)
    assert bool(failed.get("failed")) == (found != "UP")
    haproxy.servers["model.q", "box1"][0] = "UP"
    done = told("ready")
    assert (done["changed"], haproxy.told) == (found == "UP", ["set server model.q/box1 state ready"])
    haproxy.servers["model.q", "box1"][0] = "DOWN"
    failed = told("ready", timeout_s=0)
    assert failed["failed"]
    assert "box1 answers, but not to the gateway: q is DOWN there (L4CON refused)" in failed["msg"]


def test_one_that_does_not_answer_is_offered_and_not_waited_for(haproxy, told):
    haproxy.servers = {("model.q", "box1"): ["DOWN", 0], ("model.q", "box2"): ["UP", 0]}
    haproxy.held = {("model.q", "box1"), ("model.q", "box2")}
    done = told("offered")
    assert (done["changed"], done["said"]) == (True, "new requests again for box1")
    assert haproxy.held == {("model.q", "box2")}
    again = told("offered")
    assert (again["changed"], again["said"]) == (False, "")


def test_a_model_that_a_box_serves_no_more_stays_out_of_use(haproxy, told):
    """It is well, and would be asked for what it does not know."""
    haproxy.servers = {("model.q", "box1"): ["UP", 0], ("model.old", "box1"): ["UP", 0]}
    haproxy.held = set(haproxy.servers)
    assert told("ready", {"box1": ["q"]})["changed"] is True
    assert haproxy.held == {("model.old", "box1")}


def test_nothing_is_told_in_check_mode(haproxy, told):
    haproxy.servers = {("model.q", "box1"): ["UP", 1], ("model.q", "box2"): ["UP", 0]}
    assert told("drained", check=True)["changed"] is True
    assert told("ready", check=True)["changed"] is False
    assert haproxy.told == []


def test_what_haproxy_does_not_do_is_said(haproxy, told):
    haproxy.servers = {("model.q", "box1"): ["UP", 0], ("model.q", "box2"): ["UP", 0]}
    haproxy.refuses = "Permission denied"
    failed = told("drained")
    assert failed["failed"]
    assert "Permission denied" in failed["msg"]


def test_a_gateway_that_is_not_there_sends_nobody_anything(run_module, tmp_path):
    for state in ("drained", "offered", "ready"):
        done = run_module("gateway_server", boxes={"box1": ["q"]}, state=state, socket=str(tmp_path / "none"))
        assert (done["changed"], done["drained"]) == (False, [])
        assert done["told"] == ["no gateway runs there"]


def test_what_runs_says_its_name(haproxy):
    assert gateway_socket.description(haproxy.path) == "0123456789abcdef"
