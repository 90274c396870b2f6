import base64
from pathlib import Path

import pytest
from ansible.module_utils import openpgp
from hypothesis import given
from hypothesis import strategies as st

HERE = Path(__file__).parent
#: Made with gpg 2.2.40, fingerprints as `gpg --list-keys` prints them.
KEYS = {
    "key-one.asc": "FE1088D86AE6DE5BA3C59716D615894BB0DBC62D",
    "key-rsa.asc": "12C3AF4F3C2A4EA35DD4D7DD9F4BC3E4BF27EF89",
}


def armored(name):
    return (HERE / name).read_bytes()


@pytest.mark.parametrize("name", KEYS)
def test_fingerprint_is_what_gpg_says(name):
    assert openpgp.fingerprints(openpgp.dearmor(armored(name))) == [KEYS[name]]


def test_several_blocks_make_one_keyring():
    keyring = openpgp.dearmor(armored("key-one.asc") + b"\n" + armored("key-rsa.asc"))
    assert openpgp.fingerprints(keyring) == list(KEYS.values())


def test_binary_keyring_stays_as_it_is():
    binary = openpgp.dearmor(armored("key-one.asc"))
    assert openpgp.dearmor(binary) == binary


def test_armor_headers_are_skipped():
    text = armored("key-one.asc").replace(b"BLOCK-----\n\n", b"BLOCK-----\nVersion: GnuPG v2\n\n", 1)
    assert openpgp.fingerprints(openpgp.dearmor(text)) == [KEYS["key-one.asc"]]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"<!DOCTYPE html><html>sign in", "no OpenPGP keyring"),
        (b"", "no public key"),
        (b"-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nmDMEawy8", "before its END"),
        (b"-----BEGIN PGP PUBLIC KEY BLOCK-----\n\n!!\n-----END PGP PUBLIC KEY BLOCK-----", "damaged"),
        (base64.b64decode(b"mDMEawy8/hYJKwYBBAHaRw8BAQdA"), "cut short"),
    ],
)
def test_what_is_no_key_is_said(data, reason):
    with pytest.raises(openpgp.KeyringError, match=reason):
        openpgp.fingerprints(openpgp.dearmor(data))


@given(st.binary(max_size=300))
def test_any_bytes_give_fingerprints_or_a_reason(data):
    try:
        found = openpgp.fingerprints(openpgp.dearmor(data))
    except openpgp.KeyringError as error:
        found = [str(error)]
    assert all(found)


@given(st.integers(0, 200), st.integers(0, 255))
def test_a_damaged_key_never_passes_as_itself(position, value):
    binary = bytearray(openpgp.dearmor(armored("key-one.asc")))
    if binary[position] == value:
        return
    binary[position] = value
    try:
        found = openpgp.fingerprints(bytes(binary))
    except openpgp.KeyringError:
        return
    # Damage in the signatures is apt's to find; the key itself takes the first 53 bytes.
    assert position >= 53 or found != [KEYS["key-one.asc"]]


@pytest.mark.parametrize(
    "text",
    ["fe10 88d8 6ae6 de5b a3c5  9716 d615 894b b0db c62d", "0xFE1088D86AE6DE5BA3C59716D615894BB0DBC62D"],
)
def test_fingerprints_are_compared_as_people_write_them(text):
    assert openpgp.normal(text) == KEYS["key-one.asc"]
