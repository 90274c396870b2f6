"""The private registry's certificate: its authority signed it, and it stays the same."""

import ssl
import stat

from boxwright.lab import realm


def test_it_is_made_once_for_its_name(tmp_path):
    made = realm.ensure(tmp_path / "realm", "depot.boxwright.lab")
    assert realm.ensure(tmp_path / "realm", "depot.boxwright.lab") == made
    assert stat.S_IMODE((tmp_path / "realm" / realm.KEY).stat().st_mode) == 0o600
    assert made.authority != made.certificate


def test_a_client_that_trusts_the_authority_takes_the_certificate(tmp_path):
    made = realm.ensure(tmp_path, "depot.boxwright.lab")
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(tmp_path / realm.CERTIFICATE, tmp_path / realm.KEY)
    trusting, other = ssl.create_default_context(cadata=made.authority), ssl.create_default_context()
    # As Python from 3.13 on does by itself.
    trusting.verify_flags |= ssl.VERIFY_X509_STRICT
    assert _handshake(server, trusting, "depot.boxwright.lab") is None
    assert "verify failed" in _handshake(server, trusting, "other.boxwright.lab")
    assert "verify failed" in _handshake(server, other, "depot.boxwright.lab")


def _handshake(server, client, name):
    """What the client has against the server; None where it takes it."""
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        client.wrap_bio(to_client, to_server, server_hostname=name),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    for _ in range(4):
        for end in ends:
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
            except ssl.SSLCertVerificationError as error:
                return str(error)
    return None
