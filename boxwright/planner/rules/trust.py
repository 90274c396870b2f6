"""Rules about the authorities that a box is to trust."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from boxwright.facts.parsers import pem
from boxwright.planner.case import Case, Host
from boxwright.planner.rules.registry import Note, host_advice, host_gate, note

SOURCE = "https://manpages.debian.org/stable/ca-certificates/update-ca-certificates.8.en.html"
_AT = "box_ca"


@host_gate("authority-unreadable", source=SOURCE)
def unreadable(host: Host, cases: Sequence[Case]) -> Iterator[Note]:
    """What is declared as a certificate has to be one, each whole and by itself.

    One that was cut when it was copied would be passed over, and everything that it was to vouch for would
    then be refused with a word about certificates.
    """
    text, way = (
        host.box.ca or "",
        "the file as its authority gives it: openssl x509 -in FILE -noout -subject -dates",
    )
    if not pem.whole(text):
        yield note("a certificate of box_ca is cut or is none", way, at=_AT)
    for number, one in enumerate(pem.certificates(text), 1):
        if problem := pem.problem(one):
            yield note(f"certificate {number} of box_ca cannot be used: {problem}", way, at=_AT)


@host_advice("authority-vouches-for-nothing", source=SOURCE)
def vouches_for_nothing(host: Host, cases: Sequence[Case]) -> Iterator[Note]:
    """An authority whose time is over vouches for nothing, and neither does a server's own certificate.

    Programs then say of the server that its certificate has expired, or that its issuer is not known, and
    mean this one. Red Hat's update-ca-trust takes none that is no authority's.
    """
    now = host.facts.clock.controller
    for number, one in enumerate(pem.certificates(host.box.ca or ""), 1):
        if pem.problem(one):
            continue
        until = pem.until(one)
        if until is None:
            yield note(
                f"certificate {number} of box_ca is a server's own, and no authority's",
                "the certificate of the authority that signed it",
                at=_AT,
            )
        elif now is not None and until < now:
            day = time.strftime("%Y-%m-%d", time.gmtime(until))
            yield note(
                f"certificate {number} of box_ca was valid until {day}",
                "the authority's present certificate",
                "take it out, where the others are enough",
                at=_AT,
            )
