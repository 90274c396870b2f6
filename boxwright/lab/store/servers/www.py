"""A file server for package repositories and wheel indexes: folders mounted at paths, ranges, conditions.

Run: python3 -m servers.www --mount /=WWW --mount /simple=WHEELS/simple [--port 80] [--control FILE]
     [--log FILE]
"""

from __future__ import annotations

import argparse
import email.utils
import html
import mimetypes
import urllib.parse
from pathlib import Path

from .control import Control
from .files import Handler, RequestLog, serve


class FileHandler(Handler):
    """One connection to the file server. `mounts`: path prefix ("", "/simple") to folder, set by `main`."""

    mounts: dict[str, Path]

    def answer(self, path: str, query: dict[str, str]) -> None:
        """Send a file, a folder's index.html, or a plain listing of the folder (as PEP 503 wants it)."""
        found = self._find(path)
        if found is None:
            self.send_whole(404, f"{path}: not found\n".encode(), "text/plain; charset=utf-8")
        elif found.is_dir():
            self._send_folder(found, path)
        else:
            self._send(found, path)

    def _find(self, path: str) -> Path | None:
        segments = [each for each in path.split("/") if each]
        if any(each == ".." or "\0" in each for each in segments):
            return None
        wanted = "/" + "/".join(segments)
        for prefix in sorted(self.mounts, key=len, reverse=True):
            if wanted == prefix or wanted.startswith(prefix + "/"):
                found = self.mounts[prefix] / wanted[len(prefix) :].lstrip("/")
                # A path that ends in "/" means a folder: a file is not sent for it.
                return found if found.is_dir() or (found.is_file() and not path.endswith("/")) else None
        return None

    def _send_folder(self, folder: Path, path: str) -> None:
        if not path.endswith("/"):
            self.send_whole(301, b"", "text/plain", {"Location": urllib.parse.quote(path) + "/"})
            return
        if (folder / "index.html").is_file():
            self._send(folder / "index.html", path)
            return
        names = sorted(each.name + ("/" if each.is_dir() else "") for each in folder.iterdir())
        links = "".join(
            f'<a href="{urllib.parse.quote(name)}">{html.escape(name)}</a><br>\n' for name in names
        )
        self.send_whole(
            200,
            f"<!DOCTYPE html>\n<html><body>\n{links}</body></html>\n".encode(),
            "text/html; charset=utf-8",
        )

    def _send(self, file: Path, path: str) -> None:
        stat = file.stat()
        etag = f"{stat.st_mtime_ns:x}-{stat.st_size:x}"
        modified = email.utils.formatdate(stat.st_mtime, usegmt=True)
        if self._unchanged(etag, int(stat.st_mtime)):
            self.send_response(304)
            self.send_header("ETag", f'"{etag}"')
            self.send_header("Last-Modified", modified)
            self.end_headers()
            return
        kind = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
        self.send_file(file, path, etag, {"Content-Type": kind, "Last-Modified": modified})

    def _unchanged(self, etag: str, modified: int) -> bool:
        """Whether the client has this state already (RFC 9110, 13.1: a tag outweighs a date)."""
        if tags := self.headers.get("If-None-Match"):
            return tags.strip() == "*" or f'"{etag}"' in tags
        try:
            since = email.utils.parsedate_to_datetime(self.headers.get("If-Modified-Since", "")).timestamp()
        except (TypeError, ValueError):
            return False
        return modified <= since


def main(arguments: list[str] | None = None) -> None:
    """Serve until killed."""
    parser = argparse.ArgumentParser(prog="servers.www", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--mount", action="append", required=True, metavar="PATH=FOLDER", type=_mount)
    parser.add_argument("--bind", default="0.0.0.0")
    parser.add_argument("--port", type=int, default=80)
    parser.add_argument("--control", type=Path, help="JSON file with faults; read again when it changes")
    parser.add_argument("--log", type=Path, help="file that gets one JSON line a request (default: stderr)")
    options = parser.parse_args(arguments)
    FileHandler.mounts = dict(options.mount)
    serve((options.bind, options.port), FileHandler, Control(options.control), RequestLog(options.log))


def _mount(text: str) -> tuple[str, Path]:
    prefix, sign, folder = text.partition("=")
    if not sign or not prefix.startswith("/"):
        raise argparse.ArgumentTypeError(f"{text!r} is not PATH=FOLDER, such as /simple=/srv/wheels/simple")
    return prefix.rstrip("/"), Path(folder)


if __name__ == "__main__":
    main()
