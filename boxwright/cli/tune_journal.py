"""What a tuning has measured, kept on this machine: a run that was killed goes on from there."""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from boxwright.ansible import state
from boxwright.bench.run import read
from boxwright.errors import UserError
from boxwright.tuner.trial import FAILED, MEASURED, REFUSED, Candidate, Trial

FORMAT = 1


def digest(value: Any) -> str:
    """A short name for a value by its content."""
    text = json.dumps(value, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


class Journal:
    """The trials of one search. about: what they hold for; those of another declaration are not taken."""

    def __init__(self, kind: str, host: str, deployment: str, about: Any, *, fresh: bool) -> None:
        name = re.sub(r"[^A-Za-z0-9._-]", "_", f"{kind}-{host}-{deployment}")
        self.path = state.directory("tuning") / f"{name}.json"
        self._about = digest(about)
        kept = {} if fresh else self._read()
        self._entries: dict[str, Any] = dict(kept.get("trials", {}))
        self._began = str(kept.get("began") or time.strftime("%Y-%m-%d %H:%M"))

    @property
    def resumed(self) -> str:
        """What is taken over from a run before, in words; empty where nothing is."""
        count = len(self._entries)
        if not count:
            return ""
        return f"carries on from {self._began}: {count} measurement{'' if count == 1 else 's'} of then hold"

    def get(self, candidate: Candidate) -> Trial | None:
        """What came of a candidate before; None where it was not tried."""
        entry = self._entries.get(_key(candidate))
        if entry is None:
            return None
        runs = tuple(read(one) for one in entry["runs"])
        return Trial(candidate, entry["status"], runs, entry["why"], float(entry["seconds"]))

    def put(self, trial: Trial, kept: list[Mapping[str, Any]]) -> None:
        """Keep what came of a candidate. kept: its runs as the host keeps them."""
        self._entries[_key(trial.candidate)] = {
            "label": trial.candidate.label,
            "options": dict(trial.candidate.options),
            "status": trial.status,
            "why": trial.why,
            "seconds": trial.seconds,
            "runs": kept,
        }
        self._write(done=False)

    def forget_but(self, trial: Trial) -> None:
        """Keep of all that was measured this one only."""
        key = _key(trial.candidate)
        self._entries = {key: self._entries[key]}
        self._began = time.strftime("%Y-%m-%d %H:%M")
        self._write(done=False)

    def close(self) -> None:
        """The search came to its end: the next one begins anew."""
        self._write(done=True)

    def _read(self) -> Mapping[str, Any]:
        # Whatever it is: what is no journal of this search is begun anew.
        with suppress(OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            found = json.loads(self.path.read_text(encoding="utf-8"))
            if found["format"] == FORMAT and found["about"] == self._about and not found["done"]:
                return {**found, "trials": {key: one for key, one in found["trials"].items() if _whole(one)}}
        return {}

    def _write(self, *, done: bool) -> None:
        document = {
            "format": FORMAT,
            "about": self._about,
            "began": self._began,
            "done": done,
            "trials": self._entries,
        }
        new = self.path.with_suffix(".new")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            new.touch(0o600)
            new.write_text(json.dumps(document, indent=1), encoding="utf-8")
            new.replace(self.path)
        except OSError as error:
            raise UserError(
                f"what was measured cannot be kept: {error.strerror or error}", where=str(self.path)
            ) from error


def _whole(entry: Any) -> bool:
    """Whether a trial was kept whole."""
    return (
        isinstance(entry, dict)
        and entry.get("status") in (MEASURED, REFUSED, FAILED)
        and isinstance(entry.get("why"), str)
        and isinstance(entry.get("seconds"), (int, float))
        and isinstance(entry.get("runs"), list)
        and all(isinstance(run, dict) for run in entry["runs"])
        and (bool(entry["runs"]) or entry["status"] != MEASURED)
    )


def _key(candidate: Candidate) -> str:
    return digest([dict(candidate.options), candidate.again])
