"""The words by which ssh reaches a box, and what ssh makes of them."""

import pytest

from boxwright.cli.ssh_route import Route, parse, route, ssh_words


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({}, ["ssh", "box1"]),
        ({"ansible_host": "192.0.2.7", "ansible_user": "me"}, ["ssh", "-l", "me", "192.0.2.7"]),
        (
            {"ansible_ssh_common_args": "-F '/a b/ssh_config'", "ansible_port": 2222},
            ["ssh", "-F", "/a b/ssh_config", "-p", "2222", "box1"],
        ),
        (
            {"ansible_host": "fd00::1", "ansible_ssh_extra_args": "-o ProxyJump=gate"},
            ["ssh", "-o", "ProxyJump=gate", "fd00::1"],
        ),
    ],
)
def test_ssh_words(variables, words):
    assert ssh_words("box1", variables) == words


def test_names_of_the_configuration_are_resolved(tmp_path):
    config = tmp_path / "config"
    config.write_text("Host box\n HostName fd00::1\n Port 2222\n ProxyJump me@gate:2200\n")
    assert route(["ssh", "-F", str(config), "box"]) == Route("fd00::1", 2222, "me@gate:2200")
    assert route(["ssh", "-F", str(config), "192.0.2.7"]) == Route("192.0.2.7", 22)


def test_a_program_between_is_a_jump_too(tmp_path):
    config = tmp_path / "config"
    config.write_text("Host box\n ProxyCommand ssh gate -W %h:%p\n")
    found = route(["ssh", "-F", str(config), "box"])
    assert found is not None
    assert found.jump.startswith("ssh gate -W")


@pytest.mark.parametrize("words", [["ssh", "-F", "/no/such/file", "box"], ["/no/such/ssh", "box"]])
def test_where_ssh_does_not_say(words):
    assert route(words) is None


@pytest.mark.parametrize("text", ["", "nonsense", "hostname box", "hostname box\nport x"])
def test_an_answer_that_is_none(text):
    assert parse(text) is None
