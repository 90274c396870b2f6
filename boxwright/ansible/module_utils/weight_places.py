"""The places that are asked for a revision's bytes before the hub: other boxes, mirrors, carried disks."""

from __future__ import annotations

import os
from typing import Any, Dict, List
from urllib.parse import urlsplit

from ansible.module_utils.http_ranges import Lines
from ansible.module_utils.s3_signature import Keys
from ansible.module_utils.weight_sources import (
    BucketSource,
    DirectorySource,
    PeerSource,
    Source,
    WebSource,
)
from ansible.module_utils.weight_store import Store

#: Seconds without a byte after which another place is asked for the same.
BOX_TIMEOUT_S, MIRROR_TIMEOUT_S = 10.0, 30.0


def boxes(store: Store, peers: List[Dict[str, Any]], key: str) -> List[Source]:
    """The other boxes that have the revision, or will. peers: name, addresses, port, places."""
    lines = Lines(timeout=BOX_TIMEOUT_S, direct=True)
    return [
        PeerSource(peer["name"], peer["addresses"], int(peer["port"]), key, store.place, lines)
        for peer in peers
        if store.place in peer["places"]
    ]


def buckets(store: Store, bucket: Dict[str, Any], proxy: str) -> List[Source]:
    """The declared bucket, if any: url, access_key, secret_key, region."""
    if not bucket:
        return []
    keys = Keys(bucket["access_key"], bucket["secret_key"], bucket.get("region") or "us-east-1")
    base = "%s/%s" % (bucket["url"].rstrip("/"), store.place)
    lines = Lines(proxy, timeout=MIRROR_TIMEOUT_S)
    return [BucketSource(urlsplit(bucket["url"]).netloc, base, lines, keys)]


def mirrors(store: Store, given: List[str], proxy: str) -> List[Source]:
    """The declared addresses, and those of the declared directories that have the revision."""
    found: List[Source] = []
    for mirror in given:
        if not mirror.startswith("/"):
            lines = Lines(proxy, timeout=MIRROR_TIMEOUT_S)
            base = "%s/%s" % (mirror.rstrip("/"), store.place)
            found.append(WebSource(urlsplit(mirror).netloc, base, lines, {}))
        elif os.path.isdir(os.path.join(mirror, store.place)):
            found.append(DirectorySource(os.path.join(mirror, store.place)))
    return found
