"""Having candidates tried on a box, one after the other; after it the box is as it was."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any

from boxwright import facts as host_facts
from boxwright.ansible import lost_runs, runs
from boxwright.bench.run import read
from boxwright.cli.ansible_run import HostReport, play
from boxwright.cli.console import say_aside, wrapped
from boxwright.cli.recording import recorded
from boxwright.cli.ssh_trouble import trouble
from boxwright.cli.tune_journal import Journal
from boxwright.errors import EXIT_REFUSED, UserError
from boxwright.facts import HostFacts
from boxwright.spec.flat import LIMITS
from boxwright.spec.inventory import Inventory
from boxwright.tuner.trial import FAILED, MEASURED, REFUSED, Candidate, Goal, Trial

#: What the host says where not even the release that counts serves.
NOTHING_SERVES = "NOTHING SERVES"
#: Share by which the same setting may differ in two runs for their measurements to be of one box.
LEAST_MOVED = 0.1
NOT_AS_THEN = "is not as fast as it was then, so nothing that was measured then holds"
#: Exit status -> kind of a failure, where it is no plain one.
KINDS = {EXIT_REFUSED: "refused"}


def alike(goal: Goal, then: Trial, now: Trial) -> bool:
    """Whether a setting that was measured twice is as fast as it was: the same box, as busy and as warm."""
    found = goal.difference(then, now)
    return found is not None and abs(found.change) <= LEAST_MOVED


def failure_of(error: BaseException) -> dict[str, Any]:
    """What ended a tuning early, as the history keeps failures."""
    if isinstance(error, UserError):
        what = f"{error.what}: {error.why}" if error.why else error.what
        return {"role": None, "task": "tune", "message": what, "kind": KINDS.get(error.status, "failed")}
    stopped = isinstance(error, KeyboardInterrupt)
    what = "stopped by hand" if stopped else f"boxwright itself failed: {type(error).__name__}"
    return {"role": None, "task": "tune", "message": what, "kind": "failed"}


@dataclass(frozen=True)
class Start:
    """What a box was before the first trial. releases: id -> its declaration, None where it is not known."""

    facts: HostFacts
    origin: str
    releases: Mapping[str, Any]


class Trials:
    """The trials of one deployment on one box, as a context: at its end the box is as it was.

    bench: variables of the measurement. limits: whether the cards' limits are among what is tried.
    """

    def __init__(
        self,
        host: str,
        deployment: str,
        inventory: Inventory,
        paths: Sequence[Path],
        bench: Mapping[str, Any],
        *,
        minutes: int,
        quiet: bool,
        say: Callable[[str], None],
        options: Sequence[str] = (),
    ) -> None:
        """quiet: runs show nothing of themselves. say: prints a line of progress.

        options: of the verb, as the history is to tell them.
        """
        self.host, self.deployment, self.bench = host, deployment, dict(bench)
        self.limits = False
        #: What became of the way back: None before it, else whether the release that counts serves.
        self.restored: bool | None = None
        self._inventory, self._paths, self._quiet, self._tell = inventory, paths, quiet, say
        self._until, self._longest, self._count = time.monotonic() + 60 * minutes, 0.0, 0
        self._began = False
        #: What the history is to tell, beside how many were tried.
        self.did: list[str] = []
        self._run = recorded("tune", paths, options)
        self._ends: Counter[str] = Counter()
        self._failure: dict[str, Any] | None = None

    def __enter__(self) -> Trials:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._began:
            if error is not None:
                self._failure = failure_of(error)
            self.end(interrupted=kind is not None)

    def begin(self) -> Start:
        """Record what serves. Raises UserError where the box cannot be asked, or nothing serves there."""
        report = self._play("tune_begin.yml", quiet=True, **self._run)
        found = report.results.get("engine_trial")
        if not found:
            failure = dict(report.failure or {})
            if failure.get("role") == "engine":
                raise UserError(
                    str(failure["message"]),
                    where=self.host,
                    ways_out=(f"provision it first: ./invoke provision --host {self.host}",),
                )
            raise trouble(self.host, report.failure, variables=self._inventory.variables(self.host))
        self._began = True
        known = host_facts.parse(report.results["host_facts"][0]["raw"], self.host)
        return Start(known, str(found[0]["origin"]), dict(found[0]["releases"]))

    def drive(self, asking: Generator[Candidate, Trial | None, None], journal: Journal, goal: Goal) -> None:
        """Try what a search asks for until it ends; what the journal has is not tried again.

        But for the first: where that is not as fast as it was then, nothing of then holds.
        """
        try:
            candidate = next(asking)
            first = journal.get(candidate)
            if first is not None and first.measured:
                anew = self._tried(candidate, journal)
                if anew.measured and not alike(goal, first, anew):
                    journal.forget_but(anew)
                    self._tell(wrapped(f"{self.host}: {candidate.label} {NOT_AS_THEN}", hang=2))
                candidate = asking.send(anew)
            while True:
                trial = journal.get(candidate)
                if trial is None and self._in_time():
                    trial = self._tried(candidate, journal)
                candidate = asking.send(trial)
        except StopIteration:
            return

    def end(self, *, interrupted: bool = False) -> None:
        """Have what served before serve again; on Ctrl-C, at once."""
        if interrupted:
            say_aside(f"{self.host}: going back to the release that served before")
        self.restored = False
        report = self._play("tune_end.yml", quiet=True, **self._run, **{runs.VERB: self._told()})
        found = report.results.get("engine_trial")
        if found:
            self.restored = bool(found[0]["serves"])
            self._began = False
            if found[0].get("limits"):
                say_aside(f"{self.host}: the cards are not back at their limits: {found[0]['limits']}")
            return
        self._keep_end(report.failure)
        say_aside(str(self._not_back(dict(report.failure or {"message": "it was not visited"}))))

    def _told(self) -> dict[str, Any]:
        """What the history tells of the whole run."""
        count = sum(self._ends.values())
        ends = ", ".join(f"{number} {word}" for word, number in self._ends.items())
        tried = [f"{count} setting{'' if count == 1 else 's'} tried: {ends}"] if count else []
        return {"did": [*tried, *self.did], "failure": self._failure}

    def _keep_end(self, failure: Mapping[str, Any] | None) -> None:
        """Keep the line of the end here where the box cannot have it: its next run takes it there."""
        if (failure or {}).get("kind") != "unreachable":
            return
        line = runs.ended(self._run[runs.VARIABLE], {"failure": failure}, (), self._told())
        try:
            lost_runs.keep(lost_runs.place(self.host, self._inventory.variables(self.host)), line)
        except OSError as error:
            say_aside(f"{self.host}: how this run ended is kept nowhere: {error}")

    def _not_back(self, failure: Mapping[str, Any]) -> UserError:
        """What there is to say of a box that is not as it was."""
        again = f"./invoke provision --host {self.host}"
        if failure.get("kind") == "failed":
            return UserError(
                "the release that served before does not serve again",
                where=self.host,
                why=str(failure["message"]),
                ways_out=(f"./invoke doctor --host {self.host} says why", again),
            )
        minutes = round((self.bench["bench_limit_s"] + 300) / 60)
        return UserError(
            "it could not be told to go back to the release that served before",
            where=self.host,
            why=str(failure["message"]),
            ways_out=(
                f"wait: a timer of its own takes it back within {minutes} minutes of a trial",
                f"once it is reached again: {again}",
            ),
        )

    def _in_time(self) -> bool:
        return not self._count or time.monotonic() + self._longest < self._until

    def _tried(self, candidate: Candidate, journal: Journal) -> Trial:
        self._count += 1
        more = f" (once more, {candidate.again})" if candidate.again else ""
        self._tell(wrapped(f"{self.host}: trying {candidate.label}{more}", hang=2))
        started = time.monotonic()
        own = {name: value for name, value in candidate.options.items() if not name.startswith(LIMITS)}
        limits = {name: value for name, value in candidate.options.items() if name.startswith(LIMITS)}
        report = self._play(
            "tune_try.yml",
            quiet=self._quiet,
            tune_changes={"deployment": self.deployment, "options": own},
            tune_limits=self.limits,
            **limits,
        )
        seconds = round(time.monotonic() - started, 1)
        self._longest = max(self._longest, seconds)
        self.did += [
            str(task.get("said") or task["task"])
            for task in report.changed_tasks
            if task["role"] not in ("engine", "gpu_tuning", None)
        ]
        trial = Trial(candidate, FAILED, seconds=seconds)
        results = report.results.get("engine_bench")
        if results:
            kept = [results[0]["run"]]
            trial = replace(trial, status=MEASURED, runs=(read(kept[0]),))
            journal.put(trial, kept)
            self._ends[trial.status] += 1
            return trial
        failure = dict(report.failure or {"message": "the host was not visited"})
        if failure.get("kind") == "unreachable" or report.failure is None:
            raise trouble(self.host, report.failure, variables=self._inventory.variables(self.host))
        why = str(failure["message"])
        if NOTHING_SERVES in why:
            raise UserError(why, where=self.host)
        status = REFUSED if failure.get("kind") == "refused" else FAILED
        trial = replace(trial, status=status, why=why)
        self._ends[trial.status] += 1
        if status == REFUSED or failure.get("role") == "engine":
            # What failed otherwise (requests of others, a pull) says nothing of it: it is tried again.
            journal.put(trial, [])
        return trial

    def _play(self, playbook: str, *, quiet: bool, **variables: Any) -> HostReport:
        words = {
            "tune_deployment": self.deployment,
            "tune_measure_s": self.bench["bench_limit_s"],
            **self.bench,
            **variables,
        }
        report = play(playbook, [self.host], self._paths, quiet=quiet, variables=words)
        return report.hosts.get(self.host, HostReport(self.host))
