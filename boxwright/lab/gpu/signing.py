"""The key that signs the lab's package repositories, and signatures made with it.

The key is made once a user and kept in the lab's cache. Signatures carry a fixed time, so that the same
index is signed to the same bytes.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from boxwright.errors import UserError

USER_ID = "Boxwright lab package signing <lab@boxwright.invalid>"
#: The key is older than every signature, and both are older than any clock that reads them.
KEY_TIME, SIGNING_TIME = "20250101T000000", "20251201T000000"
TRIES = 5


class Signer:
    """Signs with the lab's key. Use it as a context manager: gpg's agent lives as long as it does."""

    def __init__(self, key_file: Path) -> None:
        self._key_file = key_file
        self._home = Path()

    def __enter__(self) -> Signer:
        if shutil.which("gpg") is None:
            raise UserError(
                "gpg is missing; the lab signs its package repository with it",
                ways_out=("apt-get install gnupg   (Debian, Ubuntu)", "dnf install gnupg2   (Fedora)"),
            )
        # A short path: a socket's name must not exceed 107 characters, and a cache directory's may.
        self._home = Path(tempfile.mkdtemp(prefix="bw-gpg-", dir="/tmp"))
        try:
            with _locked(self._key_file.with_suffix(".lock")):
                if not self._key_file.exists():
                    self._generate()
                else:
                    self._gpg("--import", stdin=self._key_file.read_bytes())
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_exception: object) -> None:
        subprocess.run(
            ["gpgconf", "--homedir", str(self._home), "--kill", "all"],
            check=False,
            timeout=30,
            capture_output=True,
        )
        # The agent takes its sockets away itself, while it ends: those that are gone already are.
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(self._home)
        shutil.rmtree(self._home, ignore_errors=True)

    def public_key(self, armor: bool = False) -> bytes:
        """The public key, binary as apt's keyrings are, or armored."""
        return self._gpg(*(["--armor"] if armor else []), "--export")

    def fingerprint(self) -> str:
        """The key's fingerprint, 40 hex digits."""
        listing = self._gpg("--with-colons", "--list-keys").decode()
        return next(line.split(":")[9] for line in listing.splitlines() if line.startswith("fpr:"))

    def detached(self, content: bytes) -> bytes:
        """An armored detached signature (Release.gpg)."""
        return self._gpg(*self._at(SIGNING_TIME), "--armor", "--detach-sign", stdin=content)

    def inline(self, content: bytes) -> bytes:
        """The content with its signature around it (InRelease)."""
        return self._gpg(*self._at(SIGNING_TIME), "--clearsign", stdin=content)

    def _generate(self) -> None:
        self._gpg(
            *self._at(KEY_TIME),
            "--passphrase",
            "",
            "--quick-generate-key",
            USER_ID,
            "ed25519",
            "sign",
            "never",
        )
        secret = self._gpg("--passphrase", "", "--armor", "--export-secret-keys")
        self._key_file.parent.mkdir(parents=True, exist_ok=True)
        temporary = self._key_file.with_suffix(".new")
        temporary.touch(mode=0o600)
        temporary.write_bytes(secret)
        temporary.replace(self._key_file)

    @staticmethod
    def _at(when: str) -> tuple[str, str]:
        return "--faked-system-time", f"{when}!"

    def _gpg(self, *arguments: str, stdin: bytes = b"") -> bytes:
        argv = [
            "gpg",
            "--homedir",
            str(self._home),
            "--batch",
            "--quiet",
            "--yes",
            "--no-tty",
            "--pinentry-mode",
            "loopback",
            "--digest-algo",
            "SHA512",
            *arguments,
        ]
        for attempt in range(1, TRIES + 1):
            done = subprocess.run(
                argv,
                input=stdin,
                capture_output=True,
                check=False,
                timeout=120,
                env=os.environ | {"LC_ALL": "C.UTF-8"},
            )
            if done.returncode == 0:
                return done.stdout
            # A machine under load keeps gpg waiting for its agent for longer than the five seconds it grants.
            time.sleep(attempt)
        raise UserError("gpg could not sign the lab's package repository", why=done.stderr.decode().strip())


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield
