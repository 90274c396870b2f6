"""The hub's protocol, as a client on the wire sees it."""

from __future__ import annotations

import hashlib
import re
import urllib.parse

import pytest

from boxwright.lab.store.servers.control import Access, Settings

WEIGHTS = bytes(range(256)) * 40
TOKEN = "hf_test"


def follow(hub, path: str, **headers: str):
    """GET, following the redirect to storage as the client does."""
    answer = hub.ask(path, **headers)
    if answer.status == 302:
        parts = urllib.parse.urlsplit(answer.headers["Location"])
        headers.pop("Authorization", None)
        return hub.ask(f"{parts.path}?{parts.query}", **headers)
    return answer


def test_a_commit_is_a_sha_that_only_content_changes(hub):
    first = hub.ask("/api/models/acme/tiny/revision/main").json["sha"]
    assert re.fullmatch("[0-9a-f]{40}", first)
    assert hub.ask(f"/api/models/acme/tiny/revision/{first}").json["sha"] == first
    assert hub.ask(f"/api/models/acme/tiny/revision/{first[:7]}").json["sha"] == first
    (hub.root / "acme/tiny/config.json").touch()
    assert hub.ask("/api/models/acme/tiny").json["sha"] == first
    (hub.root / "acme/tiny/config.json").write_text("{}")
    assert hub.ask("/api/models/acme/tiny").json["sha"] != first


def test_branches_are_folders(hub):
    refs = hub.ask("/api/models/acme/tiny/refs").json
    branches = {each["name"]: each["targetCommit"] for each in refs["branches"]}
    assert list(branches) == ["main", "v1"]
    assert hub.ask("/api/models/acme/tiny/revision/v1").json["sha"] == branches["v1"]
    assert hub.ask("/acme/tiny/resolve/v1/config.json").body == b"{}"


def test_info_lists_sizes_and_hashes_when_asked(hub):
    info = hub.ask("/api/models/acme/tiny?blobs=True").json
    siblings = {each["rfilename"]: each for each in info["siblings"]}
    sha256 = hashlib.sha256(WEIGHTS).hexdigest()
    assert siblings["model.safetensors"]["lfs"]["sha256"] == sha256
    assert siblings["model.safetensors"]["size"] == len(WEIGHTS)
    content = b'{"model_type": "qwen3"}'
    blob = b"blob %d\0" % len(content) + content
    assert siblings["config.json"]["blobId"] == hashlib.sha1(blob).hexdigest()
    assert hub.ask("/api/models/acme/tiny").json["siblings"][0] == {"rfilename": "config.json"}


def test_tree_lists_one_level_or_all(hub):
    def kinds(query: str) -> list[tuple[str, str]]:
        tree = hub.ask(f"/api/models/acme/tiny/tree/main{query}").json
        return [(each["type"], each["path"]) for each in tree]

    top = [("directory", "sub"), ("file", "config.json"), ("file", "model.safetensors")]
    assert kinds("") == top
    assert kinds("?recursive=True&expand=False") == [
        ("directory", "sub"),
        ("directory", "sub/deep"),
        *top[1:],
        ("file", "sub/deep/notes.md"),
    ]
    assert kinds("/sub/deep") == [("file", "sub/deep/notes.md")]
    assert hub.ask("/api/models/acme/tiny/tree/main/none").headers["X-Error-Code"] == "EntryNotFound"


def test_tree_comes_in_pages(hub):
    seen, path = [], "/api/models/acme/tiny/tree/main?recursive=true&limit=2"
    for _ in range(5):
        answer = hub.ask(path)
        seen += [each["path"] for each in answer.json]
        if "Link" not in answer.headers:
            break
        following = re.fullmatch(r'<(.+)>; rel="next"', answer.headers["Link"])[1]
        assert following.startswith(f"http://127.0.0.1:{hub.port}/api/models/acme/tiny/tree/main?")
        path = following.partition(str(hub.port))[2]
    assert seen == ["sub", "sub/deep", "config.json", "model.safetensors", "sub/deep/notes.md"]


def test_a_small_file_is_sent_and_a_large_one_redirected(hub):
    small = hub.ask("/acme/tiny/resolve/main/config.json", "HEAD")
    sha = hub.ask("/api/models/acme/tiny").json["sha"]
    assert (small.status, small.body, small.headers["Content-Length"]) == (200, b"", "23")
    assert small.headers["X-Repo-Commit"] == sha
    large = hub.ask("/acme/tiny/resolve/main/model.safetensors", "HEAD")
    assert large.status == 302
    assert large.headers["X-Repo-Commit"] == sha
    assert large.headers["X-Linked-Size"] == str(len(WEIGHTS))
    assert large.headers["X-Linked-ETag"] == f'"{hashlib.sha256(WEIGHTS).hexdigest()}"'
    assert "X-Xet-Hash" not in large.headers
    assert follow(hub, "/acme/tiny/resolve/main/model.safetensors").body == WEIGHTS


def test_storage_serves_only_what_was_signed(hub):
    answer = hub.ask("/acme/tiny/resolve/main/model.safetensors")
    location = urllib.parse.urlsplit(answer.headers["Location"])
    assert hub.ask(location.path).status == 403
    assert hub.ask(f"{location.path}?signature=%C3%A9").status == 403
    other = location.path.replace("model.safetensors", "config.json")
    assert hub.ask(f"{other}?{location.query}").status == 403


@pytest.mark.parametrize(
    ("asked", "status", "span", "content"),
    [
        ("bytes=0-9", 206, "bytes 0-9/10240", WEIGHTS[:10]),
        ("bytes=10230-", 206, "bytes 10230-10239/10240", WEIGHTS[-10:]),
        ("bytes=-4", 206, "bytes 10236-10239/10240", WEIGHTS[-4:]),
        ("bytes=10000-99999", 206, "bytes 10000-10239/10240", WEIGHTS[10000:]),
        ("bytes=10240-", 416, "bytes */10240", b""),
        ("bytes=5-2", 416, "bytes */10240", b""),
        ("bytes=0-1,4-5", 200, None, WEIGHTS),
        ("lines=1-2", 200, None, WEIGHTS),
    ],
)
def test_ranges(hub, asked, status, span, content):
    answer = follow(hub, "/acme/tiny/resolve/main/model.safetensors", Range=asked)
    assert (answer.status, answer.headers.get("Content-Range"), answer.body) == (status, span, content)


def test_paths_info(hub):
    answer = hub.ask(
        "/api/models/acme/tiny/paths-info/main",
        "POST",
        b"paths=config.json&paths=none",
        Content_Type="application/x-www-form-urlencoded",
    )
    assert [each["path"] for each in answer.json] == ["config.json"]


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/api/models/acme/tiny/revision/nope", "RevisionNotFound"),
        ("/acme/tiny/resolve/nope/config.json", "RevisionNotFound"),
        ("/acme/tiny/resolve/main/nope.json", "EntryNotFound"),
    ],
)
def test_what_is_not_there(hub, path, code):
    answer = hub.ask(path)
    assert (answer.status, answer.headers["X-Error-Code"]) == (404, code)


def test_a_stranger_is_not_told_whether_a_repository_exists(hub):
    hub.tell(Settings(users={TOKEN: "ann"}))
    answer = hub.ask("/api/models/acme/nope")
    assert (answer.status, answer.headers["X-Error-Code"]) == (401, "RepoNotFound")
    answer = hub.ask("/api/models/acme/nope", Authorization=f"Bearer {TOKEN}")
    assert (answer.status, answer.headers["X-Error-Code"]) == (404, "RepoNotFound")


@pytest.mark.parametrize("name", ["acme/..", "../root", "acme/.hidden", "acme/tiny@v1"])
def test_no_name_leads_out_of_the_folder(hub, name):
    assert hub.ask(f"/api/models/{urllib.parse.quote(name)}").status in (401, 404)


def test_a_private_repository(hub):
    hub.tell(Settings({}, {TOKEN: "ann", "hf_other": "bob"}, {"acme/tiny": Access("private", ("ann",))}))
    path = "/acme/tiny/resolve/main/config.json"
    assert hub.ask(path).status == 401
    assert hub.ask(path, Authorization="Bearer hf_other").status == 404
    assert hub.ask(path, Authorization=f"Bearer {TOKEN}").status == 200
    assert hub.ask("/api/models/acme/tiny", Authorization=f"Bearer {TOKEN}").json["private"] is True
    large = follow(hub, "/acme/tiny/resolve/main/model.safetensors", Authorization=f"Bearer {TOKEN}")
    assert large.body == WEIGHTS


def test_a_gated_repository_is_seen_but_not_read(hub):
    hub.tell(Settings({}, {TOKEN: "ann", "hf_other": "bob"}, {"acme/tiny": Access("gated", ("ann",))}))
    path = "/acme/tiny/resolve/main/config.json"
    assert hub.ask("/api/models/acme/tiny").json["gated"] == "manual"
    stranger, other = hub.ask(path), hub.ask(path, Authorization="Bearer hf_other")
    assert (stranger.status, stranger.headers["X-Error-Code"]) == (401, "GatedRepo")
    assert (other.status, other.headers["X-Error-Code"]) == (403, "GatedRepo")
    assert hub.ask(path, Authorization=f"Bearer {TOKEN}").status == 200


def test_a_wrong_token_is_refused_even_for_a_public_repository(hub):
    answer = hub.ask("/api/models/acme/tiny", Authorization="Bearer wrong")
    assert answer.status == 401
    assert answer.headers["X-Error-Message"] == "Invalid credentials in Authorization header"
    assert hub.ask("/api/whoami-v2").status == 401


def test_the_log_names_users_and_no_tokens(hub):
    hub.tell(Settings(users={TOKEN: "ann"}))
    hub.ask("/acme/tiny/resolve/main/config.json", Authorization=f"Bearer {TOKEN}")
    hub.ask("/api/whoami-v2", Authorization="Bearer hf_secret")
    # Each line is written after its answer was sent, so that two may change places.
    first, second = sorted(hub.requests(2), key=lambda line: int(str(line["status"])))
    assert (first["user"], first["status"], first["bytes"]) == ("ann", 200, 23)
    assert second["user"] == "invalid token"
    assert TOKEN not in hub.log.read_text()
    assert "hf_secret" not in hub.log.read_text()
