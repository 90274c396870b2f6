"""Addresses of boxes as people type them, and what must never reach ssh."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boxwright.errors import UserError
from boxwright.spec.address import Address, parse_address


@pytest.mark.parametrize(
    ("text", "address", "ssh"),
    [
        ("me@192.0.2.17", Address("192.0.2.17", "me"), "ssh me@192.0.2.17"),
        ("192.0.2.17", Address("192.0.2.17"), "ssh 192.0.2.17"),
        ("me@box.example.org:2222", Address("box.example.org", "me", 2222), "ssh -p 2222 me@box.example.org"),
        ("gpu_box", Address("gpu_box"), "ssh gpu_box"),
        ("root@2001:db8::7", Address("2001:db8::7", "root"), "ssh root@2001:db8::7"),
        ("root@[2001:db8::7]:22", Address("2001:db8::7", "root", 22), "ssh -p 22 root@2001:db8::7"),
        ("[fe80::1%eth0]", Address("fe80::1%eth0"), "ssh fe80::1%eth0"),
        ("j.doe-x@b", Address("b", "j.doe-x"), "ssh j.doe-x@b"),
    ],
)
def test_right(text: str, address: Address, ssh: str) -> None:
    assert parse_address(text) == address
    assert parse_address(text).ssh() == ssh


@pytest.mark.parametrize(
    "text",
    [
        "", "@", "me@", "@host", "-oProxyCommand=touch /tmp/x", "me@-oProxyCommand=x", "-l@host",
        "me me@host", "host name", "host\n", "me\n@host", "host;id", "$(id)@host", "me@host'",
        'me@"host"', "me@{{ lookup }}", "{{ x }}@host", "me@host:0", "me@host:65536", "me@host:",
        "me@host:22x", "me@[::1", "me@[::1]22", "a@b@c", "me@ho\x1b[31mst", "me@host:٢٢",
        "fe80::1%eth0;id", "me@host.", "h" * 300, "u" * 70 + "@host", "ssh://me@host",
        "me@host/path",
    ],
)  # fmt: skip
def test_wrong(text: str) -> None:
    with pytest.raises(UserError) as error:
        parse_address(text)
    assert error.value.status == 2
    assert error.value.what.isprintable()
    assert error.value.ways_out


@settings(max_examples=300)
@given(st.text(max_size=40))
def test_what_passes_is_plain_words(text: str) -> None:
    try:
        found = parse_address(text)
    except UserError:
        return
    for word in (found.host, found.user or "x"):
        assert word.isascii()
        assert not word.startswith("-")
        assert not set(word) & set(" \t\n'\"`$;&|<>(){}\\*?!#=,/")


def test_a_configuration_of_its_own_goes_with_every_visit() -> None:
    found = replace(parse_address("me@box"), config="/a b/config")
    assert found.variables()["ansible_ssh_common_args"] == "-F '/a b/config'"
    assert found.ssh() == "ssh -F '/a b/config' me@box"
