"""Running programs and writing files on a host: argument lists, time limits, whole files or none."""

from __future__ import annotations

import os
import subprocess
import tempfile
from typing import Dict, List, NamedTuple, Optional


class Result(NamedTuple):
    """What a program did. rc: exit status (127 when it is not installed, 124 when the time ran out)."""

    rc: int
    stdout: str
    stderr: str

    @property
    def text(self) -> str:
        """Both streams, for a message: nvidia-smi tells its errors on stdout, apt on stderr."""
        return "\n".join(part.strip() for part in (self.stdout, self.stderr) if part.strip())


def run(
    argv: List[str], timeout: float = 60, env: Optional[Dict[str, str]] = None, stdin: Optional[str] = None
) -> Result:
    """Run `argv` (no shell) for at most `timeout` seconds, with the C locale so that output can be parsed."""
    merged = dict(os.environ, LC_ALL="C.UTF-8", LANGUAGE="C")
    merged.update(env or {})
    try:
        done = subprocess.run(
            argv,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            input=stdin,
            env=merged,
            timeout=timeout,
            check=False,
            encoding="utf-8",
            errors="replace",
            **({} if stdin is not None else {"stdin": subprocess.DEVNULL}),
        )
    except FileNotFoundError:
        return Result(127, "", "%s: not found" % argv[0])
    except subprocess.TimeoutExpired:
        return Result(124, "", "%s: no answer within %g s" % (argv[0], timeout))
    return Result(done.returncode, done.stdout, done.stderr)


def read(path: str) -> Optional[str]:
    """The text of a file, or None where there is none."""
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            return stream.read()
    except (FileNotFoundError, NotADirectoryError):
        return None


def write(path: str, text: str, mode: int = 0o644) -> None:
    """Replace the whole file at once: a reader sees the old text or the new, also after a power cut."""
    directory = os.path.dirname(path)
    os.makedirs(directory, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=directory, prefix=".boxwright-")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(temporary, mode)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def ensure(path: str, text: str, mode: int = 0o644, check: bool = False) -> bool:
    """Make the file hold `text` with `mode`; True if it did not. Nothing is written when `check`."""
    if read(path) == text and (os.stat(path).st_mode & 0o7777) == mode:
        return False
    if not check:
        write(path, text, mode)
    return True
