"""dnf as the manager of a group of packages: one transaction, simulated and judged before it happens."""

from __future__ import annotations

import contextlib
import os
import tempfile
from typing import Dict, Iterable, Iterator, List, Optional, Tuple

from ansible.module_utils import dnf
from ansible.module_utils.command import Result, read, run
from ansible.module_utils.package_locks import wait_for_locks
from ansible.module_utils.packages import (
    Declared,
    Package,
    PackagesError,
    Plan,
    Rules,
    StaleError,
    Step,
    Wanted,
    choose,
    fits,
    matches,
    refusals,
)
from ansible.module_utils.progress import Progress
from ansible.module_utils.versionlock import VersionLock

#: Brings the locks; Red Hat's name for it.
PLUGIN = "python3-dnf-plugin-versionlock"


class DnfManager:
    """dnf with nobody to answer it. Locks do not count for it: `refusals` guards those of others.

    stream: `module:stream` that the packages come from, where their source has modules; "" for none.
    """

    name = "dnf"
    unhold = "dnf versionlock delete NAME"
    repairing = "dnf remove --duplicates"
    #: Packages that it takes to hold others.
    needs = [PLUGIN]

    def __init__(
        self,
        root: str,
        timeout: float,
        lock_timeout: int,
        proxy: Optional[str],
        recommends: bool,
        stream: str = "",
    ) -> None:
        self.root, self.timeout, self.lock_timeout, self.stream = root, timeout, lock_timeout, stream
        self.env = {"http_proxy": proxy, "https_proxy": proxy} if proxy else {}
        self.weak = "--setopt=install_weak_deps=%d" % recommends
        self.locks = VersionLock(root)
        #: Who is told how far a change is: dnf itself tells no share.
        self.progress = Progress(None)

    # Reading

    def installed(self) -> Dict[str, Package]:
        """Every installed package by name."""
        packages: Dict[str, Package] = dnf.installed()
        return packages

    def held(self, packages: Dict[str, Package]) -> List[str]:
        """Names of the packages that are locked to a version."""
        names: List[str] = self.locks.locked(packages)
        return names

    def holds_others(self, names: List[str]) -> bool:
        """Whether what it needs to hold packages serves others than these."""
        return any(entry.pattern not in names for entry in self.locks.entries)

    def astray(self, names: Iterable[str], packages: Dict[str, Package]) -> List[str]:
        """Those whose lock is for another version than is there."""
        return [
            name for name in names if name in packages and not self.locks.allows(name, packages[name].version)
        ]

    def automatic(self) -> List[str]:
        """Names of the packages that came because others need them."""
        argv = [
            "dnf",
            "-q",
            "--disableplugin=versionlock",
            "repoquery",
            "--installed",
            "--qf",
            "%{name}\t%{reason}",
        ]
        done = run(argv, timeout=self.timeout, env=self.env)
        return [line.split("\t")[0] for line in done.stdout.splitlines() if not line.endswith("\tuser")]

    def available(self, names: Iterable[str]) -> Dict[str, List[str]]:
        """Versions of each package in the host's sources, newest first; in whatever stream."""
        options = ["--disable-modular-filtering"] if self.stream else []
        versions: Dict[str, List[str]] = dnf.available(names, options, self.env)
        return versions

    def reasons(self, done: Result) -> str:
        """Why a call failed."""
        text: str = dnf.reasons(done)
        return text

    # Streams

    def _module_file(self, module: str) -> str:
        return "%s/etc/dnf/modules.d/%s.module" % (self.root, module)

    def _wanted_stream(self) -> Optional[Tuple[str, str]]:
        """Module and stream where the stream is not the enabled one."""
        module, _, stream = self.stream.partition(":")
        return (module, stream) if stream and self._enabled(module) != stream else None

    def _enabled(self, module: str) -> Optional[str]:
        stream: Optional[str] = dnf.enabled_stream(read(self._module_file(module)))
        return stream

    def settings_due(self) -> bool:
        """Whether something has to change that only a transaction changes: the stream."""
        return self._wanted_stream() is not None and bool(self._streams())

    def _streams(self) -> List[str]:
        """Streams of the module in the host's sources; none where they have no such module."""
        module = self.stream.partition(":")[0]
        done = run(
            ["dnf", "-q", "--disableplugin=versionlock", "module", "list", module],
            timeout=self.timeout,
            env=self.env,
        )
        streams: List[str] = dnf.parse_streams(done.stdout, module)
        return streams

    def states(self) -> Dict[str, Optional[str]]:
        """Files that a transaction changes beside the packages, with their texts of now."""
        module = self.stream.partition(":")[0]
        path = self._module_file(module)
        return {path[len(self.root) :]: read(path)} if module else {}

    # Settings of a group

    def settings(self, group: str, declared: Optional[Declared]) -> Dict[str, Optional[str]]:
        """Texts of a group's files by path: none, for dnf-automatic heeds the locks."""
        return {}

    @contextlib.contextmanager
    def trying(self, group: str, declared: Optional[Declared]) -> "Iterator[None]":
        """dnf works as if the group's settings were written already."""
        yield

    # Changing

    def wait(self, timeout: float) -> Optional[str]:
        """Wait until nobody holds a package lock; who was waited for. Raises LockTimeout."""
        waited_for: Optional[str] = wait_for_locks(timeout, dnf.LOCKS, dnf.holder)
        return waited_for

    def interrupted(self) -> Optional[str]:
        """What an interrupted run left that no package shows: nothing, with rpm."""
        return None

    def repair(self, names: List[str]) -> Result:
        """Take out the older of two versions that an interrupted upgrade left side by side."""
        argv = ["dnf", "-y", "-q", "--disableplugin=versionlock", "remove", "--duplicates"]
        return run(argv, timeout=self.timeout, env=self.env)

    def refresh(self) -> None:
        """Read the package lists anew."""
        run(["dnf", "-q", "makecache", "--refresh"], timeout=self.timeout, env=self.env)

    def plan(self, due: List[Wanted], leaving: List[str], purge: bool, rules: Rules) -> Plan:
        """What dnf would do, allowed by the rules. Raises PackagesError; nothing is changed."""
        if self.locks.off:
            raise PackagesError("%s. Nothing was changed." % self.locks.off)
        packages = self.installed()
        enable = self._enable()
        arguments = self._choose(due)
        leaving = leaving + self._orphans(enable, arguments, leaving, rules, packages)
        steps: List[Step] = []
        script: List[str] = []
        for _ in range(5):
            script = commands(enable, arguments, leaving)
            found = dnf.parse_transaction(self._shell(script, ["--assumeno"]), packages)
            if found.problems:
                raise StaleError(self._impossible(found.problems, rules))
            steps = found.steps
            more = self._astray(steps, arguments, rules)
            if not more:
                break
            arguments.update(more)
        self._refuse(steps, rules._replace(removable=[*rules.removable, *rules.ours, *leaving]))
        return Plan(steps, script)

    def _choose(self, due: List[Wanted]) -> Dict[str, str]:
        """The versions to ask for of each package that is due, as of `commands`. Raises PackagesError."""
        have = self.available(one.name for one in due)
        try:
            choose(due, have)
        except StaleError as error:
            if "kernel-devel" not in str(error):
                raise
            # A release's sources forget its older kernels, and with the next release all of them.
            raise StaleError(
                "%s\nThe kernel is older than those of the sources: dnf upgrade kernel, reboot into it, "
                "then run again." % error
            ) from None
        arguments: Dict[str, str] = {}
        for one in due:
            # Of some packages several versions are due, as of kernel-devel where a newer kernel waits.
            versions = [arguments.get(one.name, ""), choose([one], have)[one.name] if one.version else ""]
            arguments[one.name] = " ".join(filter(None, versions))
        return arguments

    def _refuse(self, steps: List[Step], rules: Rules) -> None:
        # A person's lock may allow more than one version: `*nvidia*-3:580.*`.
        foreign = {
            step.name: rules.foreign[step.name]
            for step in steps
            if step.name in rules.foreign and not self.locks.allows(step.name, step.new)
        }
        refused = refusals(steps, rules._replace(foreign=foreign), self.name, self.unhold)
        if refused:
            raise PackagesError("\n".join([*refused, "Nothing was changed."]))

    def _enable(self) -> List[str]:
        """The command that enables the stream, where it has to be. Raises StaleError."""
        wanted = self._wanted_stream()
        streams = self._streams() if wanted else []
        if wanted is None or not streams:
            return []
        if wanted[1] not in streams:
            raise StaleError(
                "module %s has no stream %s; there is %s. Nothing was changed."
                % (wanted[0], wanted[1], ", ".join(sorted(streams)))
            )
        return ["module enable " + self.stream]

    def download(self, plan: Plan) -> None:
        """Fetch the packages of a plan. Raises StaleError."""
        done = self._shell(plan.command, ["-y", "--downloadonly"])
        if done.rc != 0 or dnf.complaints(done):
            raise StaleError("the packages cannot be downloaded, nothing was changed:\n" + dnf.reasons(done))

    def carry_out(self, plan: Plan) -> Result:
        """Change everything at once, and look whether it was done: `dnf shell` ends with 0 in any case."""
        done = self._shell(plan.command, ["-y"])
        after = self.installed()
        missed = [
            step.text()
            for step in plan.steps
            if not (
                self._enabled(step.name) == step.new
                if step.kind == "stream"
                else Wanted(step.name, step.new).met_by(after.get(step.name))
                if step.new
                else step.name not in after
            )
        ]
        if done.rc == 0 and missed:
            return Result(1, done.stdout, "%s\nError: not done: %s" % (done.stderr, "; ".join(missed)))
        return done

    def hold(self, names: List[str], packages: Dict[str, Package]) -> None:
        """Lock packages to the versions that are there."""
        self.locks.lock(names, packages)

    def release(self, names: List[str], packages: Dict[str, Package]) -> None:
        """Take the locks of packages away, those too of packages that are gone."""
        self.locks.unlock(names)

    def purge(self, names: List[str]) -> None:
        """Nothing: rpm takes a package's settings along with it, or keeps those that somebody edited."""

    def mark_automatic(self, names: List[str]) -> None:
        """Let packages count as come because others need them. Raises PackagesError."""
        if not names:
            return
        argv = ["dnf", "-q", "-y", "--disableplugin=versionlock", "mark", "remove", *names]
        done = run(argv, timeout=self.timeout, env=self.env)
        if done.rc != 0:
            raise PackagesError("dnf mark remove failed: %s" % dnf.reasons(done))

    def _shell(self, script: List[str], options: List[str], *more: str) -> Result:
        """Run a script of dnf's, as one transaction."""
        descriptor, path = tempfile.mkstemp(prefix="boxwright-dnf-")
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
                stream.write("\n".join([*script, "run"]) + "\n")
            remove = [] if more else ["--setopt=clean_requirements_on_remove=0"]
            argv = ["dnf", *dnf.OPTIONS, self.weak, *remove, *more, *options, "shell", path]
            return run(argv, timeout=self.timeout, env=self.env)
        finally:
            os.unlink(path)

    def _orphans(
        self,
        enable: List[str],
        arguments: Dict[str, str],
        leaving: List[str],
        rules: Rules,
        packages: Dict[str, Package],
    ) -> List[str]:
        """Packages of ours that nothing needs any more once `leaving` are gone."""
        if not leaving:
            return []
        script = commands(enable, arguments, leaving)
        clean = "--setopt=clean_requirements_on_remove=1"
        steps = dnf.parse_transaction(self._shell(script, ["--assumeno"], clean), packages).steps
        gone = [step.name for step in steps if step.kind == "remove"]
        return [name for name in gone if name in rules.ours and name not in leaving]

    def _impossible(self, problems: List[str], rules: Rules) -> str:
        text = "\n".join(problems)
        held = sorted(name for name in rules.foreign if name in text)
        note = " (on hold: %s)" % ", ".join(held) if held else ""
        return "dnf finds no way to do this%s. Nothing was changed:\n%s" % (note, "\n".join(problems[:12]))

    def _astray(self, steps: List[Step], arguments: Dict[str, str], rules: Rules) -> Dict[str, str]:
        """Versions for packages that belong together but would come in another than there is."""
        version = rules.version
        if version is None:
            return {}
        astray = [
            step.name
            for step in steps
            if step.new is not None
            and step.kind != "stream"
            and step.name not in arguments
            and matches(step.name, rules.kept_together)
            and not fits(step.new, version)
        ]
        fitting = {
            name: [v for v in found if fits(v, version)] for name, found in self.available(astray).items()
        }
        return {name: found[0] for name, found in fitting.items() if found}


def commands(enable: List[str], arguments: Dict[str, str], leaving: List[str]) -> List[str]:
    """A script of dnf's. arguments: versions by name, with spaces between; "" for the best that there is."""
    script = list(enable)
    gone = [name for name in leaving if name not in arguments]
    if gone:
        script.append("remove " + " ".join(gone))
    if arguments:
        specs = [
            "%s-%s" % (name, version) if version else name
            for name, versions in arguments.items()
            for version in versions.split() or [""]
        ]
        script.append("install " + " ".join(specs))
    return script
