"""The authority of one's gateways: made once, its certificates for the names of now, its key nobody's."""

import datetime
import stat

import pytest
from cryptography import x509

from boxwright.ansible import authority
from boxwright.errors import UserError

NOW = datetime.datetime(2026, 11, 30, tzinfo=datetime.UTC)
NAMES = ["gw", "192.0.2.7", "models.example.org", "2001:db8::7"]


def days(count):
    return NOW + datetime.timedelta(days=count)


@pytest.fixture
def directory(tmp_path):
    return tmp_path / authority.DIRECTORY


def test_a_certificate_is_for_the_names_and_from_the_authority(directory):
    made = x509.load_pem_x509_certificate(authority.bundle(directory, "gw", NAMES, NOW).encode())
    trusted = x509.load_pem_x509_certificate((directory / authority.CA).read_bytes())
    made.verify_directly_issued_by(trusted)
    shown = made.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert shown.get_values_for_type(x509.DNSName) == ["gw", "models.example.org"]
    assert [str(one) for one in shown.get_values_for_type(x509.IPAddress)] == ["192.0.2.7", "2001:db8::7"]
    assert trusted.extensions.get_extension_for_class(x509.BasicConstraints).value.ca


def test_keys_are_for_their_owner_alone_and_for_no_repository(directory):
    authority.bundle(directory, "gw", NAMES, NOW)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in directory.iterdir()}
    assert modes == {"ca.key": 0o600, "ca.pem": 0o644, "gateway-gw.pem": 0o600, ".gitignore": 0o644}
    assert (directory / ".gitignore").read_text().splitlines()[-1] == "*"


@pytest.mark.parametrize(
    ("names", "now", "same"),
    [
        (NAMES, days(1), True),
        (NAMES, days(366), True),
        (NAMES, days(368), False),
        (NAMES, days(500), False),
        ([*NAMES, "more.example.org"], days(1), False),
    ],
)
def test_it_is_made_anew_near_its_end_or_for_other_names(directory, names, now, same):
    first = authority.bundle(directory, "gw", NAMES, NOW)
    trusted = (directory / authority.CA).read_bytes()
    assert (authority.bundle(directory, "gw", names, now) == first) is same
    assert (directory / authority.CA).read_bytes() == trusted


def test_it_is_made_anew_for_another_authority(directory):
    first = authority.bundle(directory, "gw", NAMES, NOW)
    (directory / authority.CA).unlink()
    assert authority.bundle(directory, "gw", NAMES, NOW) != first


@pytest.mark.parametrize("name", ["two words", "a/b", "a\nb", "-x", "x..y", ".", "ü.example.org"])
def test_what_is_no_name_is_refused(directory, name):
    with pytest.raises(UserError, match="no name or address of a gateway"):
        authority.bundle(directory, "gw", ["gw", name], NOW)


def test_files_that_cannot_be_used_are_named(directory):
    authority.bundle(directory, "gw", NAMES, NOW)
    (directory / authority.CA_KEY).write_text("nothing")
    with pytest.raises(UserError, match="cannot be used") as caught:
        authority.bundle(directory, "gw", NAMES, NOW)
    assert str(directory) in str(caught.value)


def test_a_given_certificate_goes_with_its_key_alone(directory):
    text = authority.bundle(directory, "gw", NAMES, NOW)
    begin = text.index("-----BEGIN PRIVATE KEY")
    certificate, key = text[:begin], text[begin:]
    assert authority.given(certificate, key, NOW) == text
    other = authority.bundle(directory, "gw2", NAMES, NOW)
    for wrong, said in (
        ((certificate, other[other.index("-----BEGIN PRIVATE KEY") :]), "another certificate's"),
        ((certificate, ""), "no PEM"),
        (("", key), "no PEM"),
    ):
        with pytest.raises(UserError, match=said):
            authority.given(*wrong, NOW)
    with pytest.raises(UserError, match="ended on"):
        authority.given(certificate, key, days(398))
