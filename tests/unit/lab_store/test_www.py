"""The file server."""

from __future__ import annotations

import http.client

import pytest


def test_connections_are_kept(www):
    connection = http.client.HTTPConnection("127.0.0.1", www.port, timeout=5)
    for path, status in (("/debs/a.deb", 200), ("/none", 404), ("/debs/", 200), ("/debs/a.deb", 200)):
        connection.request("GET", path)
        kept = connection.sock
        response = connection.getresponse()
        response.read()
        assert response.status == status
        assert connection.sock is kept


def test_a_file_and_its_headers(www):
    answer = www.ask("/debs/a.deb")
    assert (answer.status, answer.body, answer.headers["Accept-Ranges"]) == (200, b"0123456789", "bytes")
    head = www.ask("/debs/a.deb", "HEAD")
    assert (head.body, head.headers["Content-Length"]) == (b"", "10")


def test_an_unchanged_file_is_not_sent_again(www):
    first = www.ask("/debs/a.deb")
    assert www.ask("/debs/a.deb", If_None_Match=first.headers["ETag"]).status == 304
    assert www.ask("/debs/a.deb", If_Modified_Since=first.headers["Last-Modified"]).status == 304
    assert www.ask("/debs/a.deb", If_Modified_Since="Thu, 01 Jan 1970 00:00:00 GMT").status == 200
    assert www.ask("/debs/a.deb", If_Modified_Since="nonsense").status == 200


def test_a_resumed_download_gets_the_rest_only_of_the_same_file(www):
    tag = www.ask("/debs/a.deb").headers["ETag"]
    assert www.ask("/debs/a.deb", Range="bytes=8-", If_Range=tag).body == b"89"
    assert www.ask("/debs/a.deb", Range="bytes=8-", If_Range='"older"').body == b"0123456789"


def test_folders(www):
    assert www.ask("/debs").headers["Location"] == "/debs/"
    assert b'<a href="a.deb">a.deb</a>' in www.ask("/debs/").body
    assert www.ask("/simple/six/").body.startswith(b"<a href='six-1.whl'>")
    assert b'<a href="six/">' in www.ask("/simple/").body


@pytest.mark.parametrize(
    "path",
    ["/../control.json", "/debs/%2e%2e/%2e%2e/control.json", "/simple/../../x", "/debs/a.deb/", "/%00"],
)
def test_nothing_outside_the_mounts(www, path):
    www.control.write_text("{}")
    assert www.ask(path).status == 404
