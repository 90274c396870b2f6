"""Signs a request to a bucket of S3's protocol (AWS Signature Version 4), for whoever may read it. Pure.

https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Dict, NamedTuple
from urllib.parse import urlsplit

#: SHA-256 of nothing: a GET has no body.
EMPTY = hashlib.sha256(b"").hexdigest()


class Keys(NamedTuple):
    """Who asks, and for which region; a server of one's own takes any region that is set there."""

    access_key: str
    secret_key: str
    region: str


def headers(keys: Keys, url: str, now: str, extra: Dict[str, str]) -> Dict[str, str]:
    """What to send with a GET of a URL without a query, whose path is quoted. now: `20130524T000000Z`.

    extra: further headers that the signature is to cover; the caller sends them himself.
    """
    parts = urlsplit(url)
    day = now[:8]
    signed = {"host": parts.netloc, "x-amz-content-sha256": EMPTY, "x-amz-date": now}
    signed.update((name.lower(), text) for name, text in extra.items())
    names = ";".join(sorted(signed))
    lines = "".join("%s:%s\n" % (name, signed[name].strip()) for name in sorted(signed))
    request = "\n".join(["GET", parts.path or "/", "", lines, names, EMPTY])
    scope = "%s/%s/s3/aws4_request" % (day, keys.region)
    told = "\n".join(["AWS4-HMAC-SHA256", now, scope, hashlib.sha256(request.encode("utf-8")).hexdigest()])
    key = ("AWS4" + keys.secret_key).encode("utf-8")
    for word in (day, keys.region, "s3", "aws4_request"):
        key = hmac.new(key, word.encode("utf-8"), hashlib.sha256).digest()
    signature = hmac.new(key, told.encode("utf-8"), hashlib.sha256).hexdigest()
    return {
        "x-amz-content-sha256": EMPTY,
        "x-amz-date": now,
        "Authorization": "AWS4-HMAC-SHA256 Credential=%s/%s,SignedHeaders=%s,Signature=%s"
        % (keys.access_key, scope, names, signature),
    }
