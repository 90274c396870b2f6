"""Every refusal of a hub has its own message with a way out, and none shows a secret."""

import pytest
from ansible.module_utils import hub_messages

CASES = [
    ({"kind": "unauthorized", "status": 401}, {"token": True}, "does not accept the token"),
    ({"kind": "unauthorized", "status": 401}, {}, "set box_hub.token"),
    ({"kind": "not-found", "status": 401}, {}, "nobody without a token"),
    (
        {"kind": "gated", "status": 403},
        {"token": True},
        "Accept its licence at https://hub.example/acme/tiny",
    ),
    ({"kind": "gated", "status": 401}, {}, "then set box_hub.token"),
    ({"kind": "forbidden", "status": 403}, {"token": True}, "forbids acme/tiny to this token"),
    ({"kind": "forbidden", "status": 403}, {}, "forbids acme/tiny without a token"),
    ({"kind": "not-found", "status": 404}, {}, "has no acme/tiny"),
    ({"kind": "no-revision", "status": 404}, {}, "no revision f00"),
    ({"kind": "rate-limited", "status": 429, "retry_after": "17"}, {}, "in 17 s"),
    ({"kind": "rate-limited", "status": 429}, {}, "in some minutes"),
    ({"kind": "server", "status": 503}, {}, "fault of its own (503)"),
    ({"kind": "dns"}, {}, "does not resolve"),
    ({"kind": "tls"}, {}, "update-ca-certificates"),
    ({"kind": "no-tls"}, {}, "does not speak TLS"),
    ({"kind": "proxy", "status": 407}, {"proxy": "http://u:secret@proxy:3128"}, "the proxy (proxy:3128)"),
    ({"kind": "unreachable"}, {"proxy": "http://u:secret@proxy:3128"}, "through the proxy (proxy:3128)"),
    ({"kind": "unreachable"}, {}, "cannot be reached from this host"),
    ({"kind": "timeout"}, {}, "does not answer in time"),
    ({"kind": "disk-full"}, {}, "disk became full"),
    (
        {"kind": "wrong-bytes", "path": "a.safetensors", "detail": "x"},
        {},
        "a.safetensors of acme/tiny keeps arriving",
    ),
    (
        {"kind": "wrong-size", "path": "a.safetensors", "detail": "12"},
        {},
        "has another a.safetensors of acme/tiny than it records: 12 bytes",
    ),
    (
        {"kind": "redirected", "path": "config.json", "detail": "a page"},
        {},
        "whether a login page stands before",
    ),
    (
        {"kind": "unreadable", "path": "a.safetensors", "detail": "Input/output error"},
        {},
        "a.safetensors of acme/tiny cannot be read: Input/output error",
    ),
    ({"kind": "new kind", "detail": "Boom"}, {}, "could not be fetched from hub.example: Boom"),
]


@pytest.mark.parametrize(("event", "how", "words"), CASES)
def test_message(event, how, words):
    said = hub_messages.message(
        event,
        "acme/tiny",
        "f00",
        "https://user:secret@hub.example",
        how.get("token", False),
        how.get("proxy", ""),
    )
    assert words in said
    assert "secret" not in said


def test_every_message_has_a_case():
    kinds = {key.replace(" with token", "").replace(" without token", "") for key in hub_messages.MESSAGES}
    tried = {event["kind"] for event, _, _ in CASES} | {"through proxy", "unexpected"}
    assert kinds <= tried
