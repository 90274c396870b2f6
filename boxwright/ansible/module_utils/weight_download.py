"""Files of a revision from their sources into a directory: over several connections, hashed on the way."""

from __future__ import annotations

import collections
import errno
import hashlib
import os
import random
import threading
import time
from typing import Any, Callable, Deque, Dict, List, NamedTuple, Optional, Set

from ansible.module_utils.http_ranges import FetchError
from ansible.module_utils.partial_file import PartialFile
from ansible.module_utils.store_manifest import BLOCK, sha256_of
from ansible.module_utils.weight_meter import Limits, Meter
from ansible.module_utils.weight_sources import Source

#: Failures of the line, and how often in a row one without a byte is tried again, after longer pauses.
PASSING, TRIES = ("server", "unreachable", "timeout", "cut", "dns"), 6
#: Longest wait, in seconds, that a server may ask for; what is taken for one where it does not say.
PATIENCE_S, USUAL_WAIT_S = 600.0, 30.0
#: Seconds between flushes to the disk, for a power that fails; between looks at a box that fetches, too.
SETTLE_S, LATER_S = 20.0, 0.25
#: Seconds without news that a file of another box, still to come, is waited for.
POLL_S = 0.5


class DiskError(Exception):
    """The disk does not take what came; carries the OSError as its cause."""


class _File:
    """One file on its way."""

    def __init__(self, file: Dict[str, Any], target: str) -> None:
        self.path, self.size, self.sha256 = str(file["path"]), int(file["size"]), file["sha256"]
        self.target = os.path.join(target, self.path)
        self.partial: Optional[PartialFile] = None
        self.moved = threading.Event()
        self.attempt = 1
        self.swept = False
        self.tainted: Set[str] = set()


class _Task(NamedTuple):
    """A piece of a file to fetch; piece None: all of it in one stream. attempt: which of the file's it is."""

    file: _File
    piece: Optional[int]
    attempt: int

    @property
    def stale(self) -> bool:
        """Whether the file was begun anew since: its bytes were wrong, and others fetch it."""
        return self.attempt != self.file.attempt


class Download:
    """A run over some files. target: their directory. told: called now and then with how much is there."""

    def __init__(
        self,
        files: List[Dict[str, Any]],
        target: str,
        sources: List[Source],
        limits: Limits,
        meter: Meter,
        told: Callable[[int], None],
    ) -> None:
        self._files = [_File(file, target) for file in files]
        self._sources, self._limits, self._meter, self._told = sources, limits, meter, told
        self._lock = threading.Condition()
        self._tasks: Deque[_Task] = collections.deque()
        self._unopened: Deque[_File] = collections.deque(self._files)
        self._off: Dict[str, str] = {}
        self._resting: Dict[str, float] = {}
        self._sums: Dict[str, str] = {}
        self._error: Optional[BaseException] = None

    def run(self) -> Dict[str, str]:
        """Fetch and verify; SHA-256 by path. Raises FetchError or DiskError; what came is kept either way."""
        self._meter.resume()
        threads = [
            threading.Thread(target=self._guarded, args=(self._work,), daemon=True)
            for _ in range(self._limits.workers)
        ]
        for thread in threads:
            thread.start()
        settled = time.monotonic()
        try:
            while not self._over:
                with self._lock:
                    self._lock.wait(POLL_S)
                self._told(sum(self._held(file) for file in self._files))
                if time.monotonic() - self._meter.moved > self._limits.stall_s:
                    self._fail(FetchError("timeout", "no byte for %d s" % self._limits.stall_s))
                if time.monotonic() - settled > SETTLE_S:
                    settled = time.monotonic()
                    self._settle()
        except BaseException as error:
            self._fail(error)
            raise
        finally:
            for file in self._files:
                if file.partial and file.path not in self._sums:
                    file.partial.close()
        if self._error:
            raise self._error
        return self._sums

    # Threads

    @property
    def _over(self) -> bool:
        return self._error is not None or len(self._sums) == len(self._files)

    def _guarded(self, work: Callable[..., None], *arguments: Any) -> None:
        try:
            work(*arguments)
        except BaseException as error:
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        with self._lock:
            self._error = self._error or error
            self._lock.notify_all()

    def _work(self) -> None:
        while True:
            with self._lock:
                while not self._tasks and not self._unopened and not self._over:
                    self._lock.wait()
                if self._over:
                    return
                if not self._tasks:
                    self._open(self._unopened.popleft())
                    continue
                task = self._tasks.popleft()
            self._fetch(task)

    def _open(self, file: _File) -> None:
        """Begin with a file, or go on where an earlier run stopped."""
        if not os.path.exists(file.target):
            file.partial = PartialFile(file.target, file.size, file.sha256 or "")
            self._tasks.extend(_Task(file, span.piece, file.attempt) for span in file.partial.missing())
        threading.Thread(target=self._guarded, args=(self._verify, file), daemon=True).start()

    def _settle(self) -> None:
        for file in self._files:
            if file.partial and file.path not in self._sums:
                file.partial.settle()

    def _held(self, file: _File) -> int:
        if file.path in self._sums:
            return file.size
        return file.partial.written if file.partial else 0

    # Fetching

    def _fetch(self, task: _Task) -> None:
        """Fetch what is missing of a piece, from whichever source has it."""
        file, failures, waited = task.file, 0, 0.0
        partial = file.partial
        assert partial is not None
        while not self._over:
            span = partial.left(task.piece or 0)
            first, end = (0, file.size) if task.piece is None else (span.first, span.end)
            # Looked at after the span: a file begun anew counts its attempt before it forgets its bytes.
            if task.stale:
                return
            if (task.piece is None and not partial.missing()) or first == end:
                return
            if file.swept and task.piece is not None:
                return
            source = self._source(file)
            before = partial.written
            try:
                source.read(file.path, first, end, file.size, self._sink(task, source, first))
                failures = 0
                continue
            except FetchError as error:
                if self._over or task.stale:
                    return
                if partial.written > before:
                    failures = 0
                pause = self._judge(error, source, file, failures, waited)
                failures += error.kind in PASSING
                waited += pause if error.kind == "rate-limited" else 0
            self._rest(pause)

    def _sink(self, task: _Task, source: Source, first: int) -> Callable[[memoryview], None]:
        partial, position = task.file.partial, first
        assert partial is not None

        def sink(data: memoryview) -> None:
            nonlocal position
            if self._over or task.stale:
                raise FetchError("given-up")
            try:
                if task.piece is None:
                    partial.sweep(position, data)
                else:
                    partial.write(task.piece, data)
            except OSError as error:
                raise DiskError(task.file.path) from error
            position += len(data)
            if source is not self._sources[-1]:
                task.file.tainted.add(source.name)
            task.file.moved.set()
            self._meter.count(source.name, len(data))

        return sink

    def _source(self, file: _File) -> Source:
        """The place to read from: one that is well; another box before the last resort, any of them."""
        now = time.monotonic()
        well = [source for source in self._sources[:-1] if source.name not in self._off]
        ready = [source for source in well if self._resting.get(source.name, 0) <= now]
        if ready:
            return random.choice(ready)
        return min(well, key=lambda one: self._resting[one.name]) if well else self._sources[-1]

    def _judge(self, error: FetchError, source: Source, file: _File, failures: int, waited: float) -> float:
        """How long to wait before the next try. Raises the error when another try is of no use."""
        error.path = error.path or file.path
        if error.kind == "no-ranges":
            with self._lock:
                if not file.swept:
                    file.swept = True
                    self._tasks.appendleft(_Task(file, None, file.attempt))
                    self._lock.notify()
            return 0
        if error.kind == "later":
            # Another box still fetches it; how it goes there is what counts here, too.
            self._meter.patient(0)
            self._resting[source.name] = time.monotonic() + LATER_S
            return LATER_S
        if error.kind == "rate-limited":
            pause = USUAL_WAIT_S if error.wait is None else error.wait
            if waited + pause <= PATIENCE_S:
                self._meter.patient(pause)
                return pause
        elif error.kind in PASSING and failures + 1 < (TRIES if source.last else 3):
            return float(min(8.0, 0.25 * 2**failures))
        if not source.last:
            self._off[source.name] = error.detail or error.kind
            self._meter.note(
                "%s could not give %s (%s)" % (source.name, file.path, error.detail or error.kind)
            )
            return 0
        raise error

    def _rest(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while not self._over and time.monotonic() < until:
            time.sleep(min(0.25, max(0.0, until - time.monotonic())))

    # Verifying

    def _verify(self, file: _File) -> None:
        """Hash a file while it comes; begin it anew when its bytes are wrong."""
        if file.partial is None:
            digest = sha256_of(file.target)
            if os.path.getsize(file.target) == file.size and file.sha256 in (None, digest):
                self._done(file, digest)
                return
            os.unlink(file.target)
            with self._lock:
                self._open(file)
                self._lock.notify_all()
            return
        digest = self._hash(file, file.partial)
        if digest is None:
            return
        if file.sha256 not in (None, digest):
            self._again(file, file.partial, digest)
            return
        try:
            file.partial.finish()
        except OSError as error:
            raise DiskError(file.path) from error
        self._done(file, digest)

    def _hash(self, file: _File, partial: PartialFile) -> Optional[str]:
        """The file's SHA-256 once all of it is there; None when the run ends before."""
        digest, position, block = hashlib.sha256(), 0, memoryview(bytearray(BLOCK))
        while position < file.size:
            file.moved.clear()
            reached = partial.frontier
            if reached - position < BLOCK and reached < file.size:
                file.moved.wait(POLL_S)
                if self._over:
                    return None
                continue
            count = partial.read(position, block[: min(BLOCK, reached - position)])
            digest.update(block[:count])
            position += count
        return digest.hexdigest()

    def _again(self, file: _File, partial: PartialFile, digest: str) -> None:
        wrong = "its sha256 is %s, the hub's record says %s" % (digest, file.sha256)
        if file.attempt >= self._limits.attempts:
            error = FetchError("wrong-bytes", wrong)
            error.path = file.path
            # Nothing of it is worth keeping.
            partial.forget()
            raise error
        file.attempt += 1
        for name in file.tainted:
            self._off[name] = "it gave wrong bytes"
            self._meter.note("%s gave wrong bytes of %s" % (name, file.path))
        file.tainted.clear()
        self._meter.note("%s came damaged and was fetched again" % file.path)
        partial.forget()
        with self._lock:
            file.swept = False
            missing = reversed(partial.missing())
            self._tasks.extendleft(_Task(file, span.piece, file.attempt) for span in missing)
            self._lock.notify_all()
        threading.Thread(target=self._guarded, args=(self._verify, file), daemon=True).start()

    def _done(self, file: _File, digest: str) -> None:
        with self._lock:
            self._sums[file.path] = digest
            self._lock.notify_all()


def is_full(error: DiskError) -> bool:
    """Whether the disk has no room, rather than a fault."""
    cause = error.__cause__
    return isinstance(cause, OSError) and cause.errno in (errno.ENOSPC, errno.EDQUOT)
