"""Networks as a person declares them: `192.0.2.0/24`, `2001:db8::/32`, one address."""

from __future__ import annotations

import ipaddress

from boxwright.spec.decode import INVALID, Decoder


def mistake(text: str) -> tuple[str, str] | None:
    """What is wrong with a network and what would be right, or None."""
    allowed = "a network like 192.0.2.0/24 or 2001:db8::/32, or one address"
    if "%" in text:
        return "names an interface, and a network has none", allowed
    try:
        found = ipaddress.ip_network(text)
    except ValueError:
        try:
            return "has bits beside its prefix", str(ipaddress.ip_network(text, strict=False))
        except ValueError:
            return "is no network", allowed
    if isinstance(found, ipaddress.IPv6Network) and found.network_address.ipv4_mapped:
        return "is an IPv4 network written as one of IPv6", "the IPv4 network itself"
    return None


def read(decode: Decoder, value: object, path: str) -> object:
    """Networks as the standard library writes them."""
    texts = decode.value(tuple[str, ...], value, path)
    if texts is INVALID:
        return INVALID
    wrong = False
    for place, text in enumerate(texts):
        if said := mistake(text):
            decode.fail(f"{path}[{place}]", text, *said)
            wrong = True
    return INVALID if wrong else tuple(str(ipaddress.ip_network(text)) for text in texts)
