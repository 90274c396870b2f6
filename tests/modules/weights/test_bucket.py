"""A bucket of S3's protocol that asks for keys: its signature, and weights that come from one."""

import hashlib
import hmac
import json
import re
from pathlib import Path
from urllib.parse import unquote

import pytest
from ansible.module_utils import s3_signature
from ansible.module_utils.python_environment import Step, Wanted
from ansible.module_utils.s3_signature import Keys

from .conftest import REPOSITORY
from .test_modelscope import serving

REVISION = "0123456789abcdef0123456789abcdef01234567"
ACCESS, SECRET = "AKEXAMPLE", "very/secret+key"


def test_the_signature_is_that_of_the_documented_example():
    """https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html, GET Object."""
    keys = Keys("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "us-east-1")
    url = "https://examplebucket.s3.amazonaws.com/test.txt"
    sent = s3_signature.headers(keys, url, "20130524T000000Z", {"Range": "bytes=0-9"})
    assert sent["Authorization"] == (
        "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,"
        "SignedHeaders=host;range;x-amz-content-sha256;x-amz-date,"
        "Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"
    )


class Bucket:
    """Objects behind a signature, checked from what arrives; counts the bytes that it gives."""

    def __init__(self, files):
        self.files = files
        self.sent, self.heard = {}, []

    def answer(self, request):
        self.heard.append(str(request.headers))
        path = unquote(request.path)
        if not self.signed(request):
            return self.say(request, 403, b"<Error><Code>SignatureDoesNotMatch</Code></Error>")
        prefix = f"/bucket/my models/acme--tiny/{REVISION}/"
        content = self.files.get(path.removeprefix(prefix)) if path.startswith(prefix) else None
        if content is None:
            return self.say(request, 404, b"<Error><Code>NoSuchKey</Code></Error>")
        first, last = (int(one) for one in request.headers["Range"].removeprefix("bytes=").split("-"))
        part = content[first : last + 1]
        name = path.rsplit("/", 1)[-1]
        self.sent[name] = self.sent.get(name, 0) + len(part)
        return self.say(request, 206, part, {"Content-Range": f"bytes {first}-{last}/{len(content)}"})

    def signed(self, request):
        """As a server does it: from the request as it came, with its own copy of the key."""
        found = re.fullmatch(
            r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/s3/aws4_request,"
            r"SignedHeaders=([a-z0-9;-]+),Signature=([0-9a-f]{64})",
            request.headers.get("Authorization", ""),
        )
        if not found or found[1] != ACCESS:
            return False
        _, day, region, names, signature = found.groups()
        covered = "".join(f"{name}:{request.headers[name]}\n" for name in names.split(";"))
        whole = ["GET", request.path, "", covered, names, request.headers["x-amz-content-sha256"]]
        scope = f"{day}/{region}/s3/aws4_request"
        digest = hashlib.sha256("\n".join(whole).encode()).hexdigest()
        text = "\n".join(["AWS4-HMAC-SHA256", request.headers["x-amz-date"], scope, digest])
        key = ("AWS4" + SECRET).encode()
        for word in (day, region, "s3", "aws4_request"):
            key = hmac.new(key, word.encode(), "sha256").digest()
        return hmac.new(key, text.encode(), "sha256").hexdigest() == signature

    @staticmethod
    def say(request, status, body, headers=None):
        request.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
            request.send_header(name, value)
        request.end_headers()
        request.wfile.write(body)


@pytest.fixture
def call(tmp_path, run_module, prepared, hub):
    """Run the module model_store with a bucket before the hub, which has the same files."""
    from .conftest import CLIENT

    path = str(tmp_path / "venvs" / "hub")
    prepared(Wanted(path, [Step(["client==1.0"], [])], []))
    store = str(tmp_path / "box" / "models")

    def run(url, secret=SECRET):
        weights = hub.weights(store)
        environment = {
            "path": path,
            "packages": ["client==1.0"],
            "constraints": [],
            "index_url": "",
            "size": 0,
        }
        bucket = {"url": f"{url}/bucket/my%20models", "access_key": ACCESS, "secret_key": secret}
        return run_module(
            "model_store",
            store=store,
            weights=[weights],
            environment=environment,
            client=CLIENT,
            bucket=bucket,
            progress_file=str(tmp_path / "progress.json"),
            reserve=0,
        ), Path(weights["directory"])

    return run


def test_weights_come_from_the_bucket_and_the_key_is_not_sent(call, hub):
    bucket = Bucket(REPOSITORY)
    with serving(bucket.answer) as url:
        result, directory = call(url)
    assert result.get("changed"), result
    assert (directory / "model.safetensors").read_bytes() == REPOSITORY["model.safetensors"]
    assert bucket.sent == {name: len(REPOSITORY[name]) for name in REPOSITORY if name != "README.md"}
    assert hub.taken == []
    assert SECRET not in "".join(bucket.heard) + json.dumps(result)


@pytest.mark.parametrize("secret", ["another-secret", SECRET])
def test_what_the_bucket_does_not_give_comes_from_the_hub(call, hub, secret):
    bucket = Bucket({} if secret == SECRET else REPOSITORY)
    with serving(bucket.answer) as url:
        result, directory = call(url, secret)
    assert result.get("changed"), result
    assert (directory / "model.safetensors").read_bytes() == REPOSITORY["model.safetensors"]
    assert bucket.sent == {}
    assert "model.safetensors" in hub.taken
