"""The engine's own benchmark, run inside the container of a release that serves."""

from __future__ import annotations

import json
import re
from typing import Any, Dict, List, Optional, Sequence

from ansible.module_utils.bench_points import PLACE, READY_OPTION, RESULT
from ansible.module_utils.command import Result, run
from ansible.module_utils.engine_container import KEY_FILE
from ansible.module_utils.engine_unit import DOCKER

#: Beside the benchmark's own limit, so that it is the one that ends it.
GRACE_S = 30
TRANSFER_S = 60
#: Lines of its output that a message quotes.
QUOTED = 6
#: Of its result, what is many times longer than what it says: every text, and every gap between two tokens.
_LONG = ("generated_texts", "itls", "errors", "queue_times", "latencies", "start_times")
#: The engine wants the key; here it is read inside the container, as the release itself does.
_WRAPPER = 'OPENAI_API_KEY=$(cat %s) && export OPENAI_API_KEY && exec timeout --kill-after=5 "$@"' % KEY_FILE


class ClientError(Exception):
    """The benchmark did not do; the text says why. unknown: the option that this release does not have."""

    def __init__(self, text: str, unknown: Optional[str] = None) -> None:
        super().__init__(text)
        self.unknown = unknown


class Client:
    """Programs and files in a running container."""

    def __init__(self, container: str) -> None:
        self._container = container

    def prepare(self) -> None:
        """Make the place for files. Raises ClientError where the container does not run."""
        self._do(["mkdir", "-p", PLACE])

    def forget(self) -> None:
        """Take the place away again; the container may be gone by then."""
        self._exec(["rm", "-rf", PLACE], TRANSFER_S)

    def put(self, path: str, value: Any) -> None:
        """Write JSON to a file there."""
        self._do(["sh", "-c", 'cat > "$1"', "boxwright", path], json.dumps(value))

    def measure(self, argv: Sequence[str], limit_s: int) -> Dict[str, Any]:
        """Run the benchmark; what it wrote. Raises ClientError when it did not end well, or not in time."""
        self._do(["rm", "-f", RESULT])
        words = ["sh", "-c", _WRAPPER, "boxwright", str(limit_s), *argv]
        done = self._exec(words, limit_s + GRACE_S)
        if done.rc == 124:
            raise ClientError("it was not done within %d s" % limit_s)
        if done.rc != 0:
            unknown = re.search(r"unrecognized arguments:.*(%s)" % READY_OPTION, done.text)
            raise ClientError(
                "it ended with status %d: %s" % (done.rc, _last(done.text)), unknown and unknown.group(1)
            )
        text = self._do(["cat", RESULT]).stdout
        try:
            found = json.loads(text)
        except ValueError as error:
            raise ClientError("its result is no JSON: %s" % text[:200]) from error
        if not isinstance(found, dict):
            raise ClientError("its result is no object: %s" % text[:200])
        return found

    def _do(self, words: Sequence[str], stdin: Optional[str] = None) -> Result:
        done = self._exec(words, TRANSFER_S, stdin)
        if done.rc != 0:
            raise ClientError("docker exec %s: %s" % (words[0], _last(done.text)))
        return done

    def _exec(self, words: Sequence[str], timeout: float, stdin: Optional[str] = None) -> Result:
        interactive = ["--interactive"] if stdin is not None else []
        argv = [DOCKER, "exec", *interactive, self._container, *words]
        done: Result = run(argv, timeout=timeout, stdin=stdin)
        return done


def _last(text: str) -> str:
    lines: List[str] = [line.strip() for line in text.splitlines() if line.strip()]
    return " | ".join(lines[-QUOTED:]) or "it said nothing"


def span(result: Dict[str, Any], ended: float) -> List[float]:
    """When the requests ran, by time.monotonic(): a container has the clock of its host.

    ended: when the program had ended; a release that does not tell when its requests began is taken to have
    ended with the last of them.
    """
    duration = float(result.get("duration") or 0)
    starts = [float(one) for one in result.get("start_times") or [] if one]
    start = min(starts) if starts else ended - duration
    if not ended - 24 * 3600 < start <= ended:
        start = ended - duration
    return [start, min(start + duration, ended)]


def kept(result: Dict[str, Any]) -> Dict[str, Any]:
    """What of a result is kept: all but the long lists; of the errors each one once."""
    found = {name: value for name, value in result.items() if name not in _LONG}
    errors = [str(one).strip().splitlines()[-1] for one in result.get("errors") or [] if str(one).strip()]
    if errors:
        found["errors"] = sorted(set(errors))[:5]
    return found
