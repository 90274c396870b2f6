"""Running programs and writing files on a host: argument lists, time limits, whole files or none."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from typing import BinaryIO, Dict, NamedTuple, Optional, Sequence


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
    argv: Sequence[str],
    timeout: float = 60,
    env: Optional[Dict[str, str]] = None,
    stdin: Optional[str] = None,
    keep: Sequence[int] = (),
) -> Result:
    """Run `argv` (no shell) for at most `timeout` seconds, with the C locale so that output can be parsed.

    A program that hangs in the kernel, as nvidia-smi does on a wedged card, cannot be killed: neither it nor
    children that hold its output are waited for once the time is over. rc 126: it could not be started.
    keep: file descriptors that it gets beside its streams.
    """
    merged = dict(os.environ, LC_ALL="C.UTF-8", LANGUAGE="C")
    merged.update(env or {})
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, tempfile.TemporaryFile() as given:
        given.write((stdin or "").encode("utf-8"))
        given.seek(0)
        try:
            process = subprocess.Popen(
                list(argv),
                stdin=given,
                stdout=out,
                stderr=err,
                env=merged,
                start_new_session=True,
                pass_fds=tuple(keep),
            )
        except FileNotFoundError:
            return Result(127, "", "%s: not found" % argv[0])
        except (OSError, ValueError) as error:
            return Result(126, "", "%s: cannot be started: %s" % (argv[0], error))
        try:
            rc = process.wait(timeout)
        except subprocess.TimeoutExpired:
            note = ""
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except OSError as error:
                note = " (and could not be ended: %s)" % error.strerror
            return Result(124, "", "%s: no answer within %g s%s" % (argv[0], timeout, note))
        return Result(rc, _whole(out), _whole(err))


def _whole(stream: BinaryIO) -> str:
    stream.seek(0)
    return stream.read().decode("utf-8", "replace")


def read(path: str) -> Optional[str]:
    """The text of a file, or None where there is none."""
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            return stream.read()
    except (FileNotFoundError, NotADirectoryError, ProcessLookupError):  # the last one below /proc
        return None


def take_away(path: str) -> None:
    """Remove a file of ours, if it is there, and the directories of ours that are empty then."""
    if os.path.lexists(path):
        os.unlink(path)
    folder = os.path.dirname(path)
    while "boxwright" in folder.split("/") and os.path.isdir(folder) and not os.listdir(folder):
        os.rmdir(folder)
        folder = os.path.dirname(folder)


def write(path: str, text: str, mode: int = 0o644) -> None:
    """Replace the whole file at once: a reader sees the old text or the new, also after a power cut.

    Bytes that are no UTF-8 come back where the text was read with surrogateescape.
    """
    directory = os.path.dirname(path)
    os.makedirs(directory, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=directory, prefix=".boxwright-")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="surrogateescape", newline="") as stream:
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
