"""apt as the manager of a group of packages: one change, resolved, simulated and judged before it happens."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import tempfile
from typing import Dict, Iterable, Iterator, List, Optional

from ansible.module_utils import apt
from ansible.module_utils.apt_command import command, resolve
from ansible.module_utils.apt_status import CHANGING, FETCHING, Share, watched
from ansible.module_utils.apt_texts import blacklist_text, pins_text
from ansible.module_utils.command import Result, read, run, write
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
    fits,
    matches,
    refusals,
)
from ansible.module_utils.progress import Progress


class AptManager:
    """apt-get with nobody to answer it. Holds do not count for it: `refusals` guards those of others.

    timeout: seconds for one call; lock_timeout: seconds that apt itself waits for locks. root: prefix of our
    own settings.
    """

    name = "apt"
    unhold = "apt-mark unhold NAME"
    #: Packages that it takes to hold others.
    needs: List[str] = []

    def __init__(
        self,
        root: str,
        timeout: float,
        lock_timeout: int,
        proxy: Optional[str],
        recommends: bool,
        stream: str = "",
    ) -> None:
        if stream:
            raise PackagesError("apt knows no streams, and %s is asked for" % stream)
        self.root, self.timeout, self.lock_timeout = root, timeout, lock_timeout
        self.proxy, self.recommends = proxy, recommends
        self.preferences: Optional[str] = None
        #: Who is told how far a change is.
        self.progress = Progress(None)

    # Reading

    def installed(self) -> Dict[str, Package]:
        """Every installed package by name."""
        packages: Dict[str, Package] = apt.installed()
        return packages

    def held(self, packages: Dict[str, Package]) -> List[str]:
        """Names of the packages that are on hold."""
        names: List[str] = apt.holds()
        return names

    def astray(self, names: Iterable[str], packages: Dict[str, Package]) -> List[str]:
        """Those whose hold is for another version than is there: none, apt's holds name no version."""
        return []

    def holds_others(self, names: List[str]) -> bool:
        """Whether what it needs to hold packages serves others than these: it needs nothing."""
        return False

    def settings_due(self) -> bool:
        """Whether something has to change that only a transaction changes."""
        return False

    def states(self) -> Dict[str, Optional[str]]:
        """Files that a transaction changes beside the packages, with their texts of now."""
        return {}

    def automatic(self) -> List[str]:
        """Names of the packages that came because others need them."""
        names: List[str] = apt.automatic()
        return names

    def available(self, names: Iterable[str]) -> Dict[str, List[str]]:
        """Versions of each package in the host's sources, newest first."""
        versions: Dict[str, List[str]] = apt.available(names)
        return versions

    def reasons(self, done: Result) -> str:
        """Why a call failed."""
        text: str = apt.reasons(done)
        return text

    # Settings of a group

    def settings(self, group: str, declared: Optional[Declared]) -> Dict[str, Optional[str]]:
        """Texts of a group's files by path, None for no file: pins, and what is not for unattended-upgrades.

        declared: None for a group that is leaving.
        """
        names, globs = (declared.names, declared.globs) if declared else ([], [])
        return {
            self._pins(group): self._pins_text(declared),
            "%s/etc/apt/apt.conf.d/52boxwright-%s" % (self.root, group): blacklist_text(names, globs)
            if declared
            else None,
        }

    def _pins(self, group: str) -> str:
        return "%s/etc/apt/preferences.d/boxwright-held-%s.pref" % (self.root, group)

    @staticmethod
    def _pins_text(declared: Optional[Declared]) -> Optional[str]:
        if declared is None or not declared.version:
            return None
        # apt knows no exceptions from a pattern; packages without such a version are not touched by the pin.
        names = [glob for glob in [*declared.names, *declared.globs] if not glob.startswith("!")]
        packages = list(dict.fromkeys(names))
        # The first record that means a version counts for it, so that those to be left alone come first.
        pins = [
            {"packages": packages, "pin": "release " + origin, "priority": -1} for origin in declared.avoid
        ]
        # Over 1000, so that a version can also go down.
        pins.append({"packages": packages, "pin": "version " + declared.version, "priority": 1001})
        text: Optional[str] = pins_text(pins)
        return text

    @contextlib.contextmanager
    def trying(self, group: str, declared: Optional[Declared]) -> "Iterator[None]":
        """apt works as if the group's pins were written already, so that a refused change leaves no trace."""
        path, text = self._pins(group), self._pins_text(declared)
        if read(path) == text:
            yield
            return
        directory, place = os.path.dirname(path), tempfile.mkdtemp(prefix="boxwright-pins-")
        try:
            for entry in os.listdir(directory) if os.path.isdir(directory) else []:
                if entry != os.path.basename(path):
                    shutil.copy(os.path.join(directory, entry), place)
            if text is not None:
                write(os.path.join(place, os.path.basename(path)), text)
            self.preferences = place
            yield
        finally:
            self.preferences = None
            shutil.rmtree(place, ignore_errors=True)

    # Changing

    def wait(self, timeout: float) -> Optional[str]:
        """Wait until nobody holds a package lock; who was waited for. Raises LockTimeout."""
        waited_for: Optional[str] = wait_for_locks(timeout, apt.LOCKS)
        return waited_for

    def interrupted(self) -> Optional[str]:
        """What an interrupted run left that no package shows."""
        return "dpkg's journal" if apt.journal_pending() else None

    def repair(self, names: List[str]) -> Result:
        """End what an interrupted run began."""
        done: Result = run(
            ["dpkg", "--force-confdef", "--force-confold", "--configure", "-a"],
            timeout=self.timeout,
            env=apt.environment(),
        )
        left = sorted(package.name for package in self.installed().values() if package.unfinished)
        # Half-installed ones and those that "require reinstallation" want their package file again.
        if not left:
            return done
        again = self._get(["install", "--fix-broken", "--reinstall", *left])
        # Where apt cannot either, what dpkg said first is the reason.
        return again if again.rc == 0 else Result(again.rc, done.text + "\n" + again.text, "")

    #: The same, for a person.
    repairing = "dpkg --configure -a"

    def refresh(self) -> None:
        """Read the package lists anew."""
        self._get(["update"], {FETCHING: "reading the package lists anew"})

    def plan(self, due: List[Wanted], leaving: List[str], purge: bool, rules: Rules) -> Plan:
        """What apt would do, allowed by the rules. Raises PackagesError; nothing is changed."""
        arguments = resolve(due, self.available(one.name for one in due))
        leaving = leaving + self._orphans(arguments, leaving, rules)
        steps: List[Step] = []
        for _ in range(5):
            done = self._get(["--simulate", *command(arguments, leaving, purge)])
            if done.rc != 0:
                raise StaleError(self._impossible(done, rules))
            steps = apt.mark_downgrades(apt.parse_simulation(done.stdout))
            more = self._astray(steps, arguments, rules)
            if not more:
                break
            arguments += more
        rules = rules._replace(removable=[*rules.removable, *rules.ours, *leaving])
        refused = refusals(steps, rules, self.name, self.unhold)
        if refused:
            raise PackagesError("\n".join([*refused, "Nothing was changed."]))
        return Plan(steps, command(arguments, leaving, purge))

    def download(self, plan: Plan) -> None:
        """Fetch the packages of a plan. Raises StaleError."""
        done = self._get(["--download-only", *plan.command], {FETCHING: "downloading packages"})
        if done.rc != 0:
            raise StaleError("the packages cannot be downloaded, nothing was changed:\n" + apt.reasons(done))

    def carry_out(self, plan: Plan) -> Result:
        """Change everything at once."""
        # What it says of fetching is of files that are here already.
        return self._get(plan.command, {CHANGING: "installing packages"})

    def hold(self, names: List[str], packages: Dict[str, Package]) -> None:
        """Put packages on hold. Raises PackagesError."""
        self._mark("hold", names)

    def release(self, names: List[str], packages: Dict[str, Package]) -> None:
        """Take packages off hold; one that is gone is on hold no more. Raises PackagesError."""
        self._mark("unhold", [name for name in names if name in packages])

    def purge(self, names: List[str]) -> None:
        """Take away the settings of packages that were removed. Raises PackagesError."""
        done = (
            run(["dpkg", "--purge", *names], timeout=self.timeout, env=apt.environment()) if names else None
        )
        if done is not None and done.rc != 0:
            raise PackagesError("dpkg --purge failed: %s" % apt.reasons(done))

    def mark_automatic(self, names: List[str]) -> None:
        """Let packages count as come because others need them. Raises PackagesError."""
        self._mark("auto", names)

    def _mark(self, verb: str, names: List[str]) -> None:
        if not names:
            return
        done = run(["apt-mark", verb, *names], timeout=120)
        if done.rc != 0:
            raise PackagesError("apt-mark %s failed: %s" % (verb, apt.reasons(done)))

    def _get(self, words: List[str], stages: Optional[Dict[str, str]] = None) -> Result:
        """stages: what is told while it fetches, or changes; left out, nothing is."""
        argv = [
            "apt-get",
            "-q",
            "-y",
            *apt.OPTIONS,
            *apt.way(self.proxy),
            "--ignore-hold",
            "--allow-change-held-packages",
        ]
        argv += ["--allow-downgrades", "-o", "Acquire::Retries=2"]
        argv += ["-o", "APT::Install-Recommends=%s" % ("true" if self.recommends else "false")]
        argv += ["-o", "DPkg::Lock::Timeout=%d" % self.lock_timeout]
        if self.preferences:
            argv += ["-o", "Dir::Etc::PreferencesParts=" + self.preferences]

        def told(step: Share) -> None:
            stage = (stages or {}).get(step.kind)
            if stage:
                self.progress.update(stage, step.percent, 100, "%")

        done: Result = watched(argv + words, told, self.timeout, apt.environment(self.proxy))
        return done

    def _orphans(self, arguments: List[str], leaving: List[str], rules: Rules) -> List[str]:
        """Packages of ours that nothing needs any more once `leaving` are gone."""
        if not leaving:
            return []
        automatic = ["--simulate", "-o", "APT::Get::AutomaticRemove=true"]
        done = self._get(automatic + command(arguments, leaving, purge=False))
        gone = [step.name for step in apt.parse_simulation(done.stdout) if step.kind == "remove"]
        return [name for name in gone if name in rules.ours and name not in leaving]

    def _impossible(self, done: Result, rules: Rules) -> str:
        text = done.text
        held = sorted(
            name for name in rules.foreign if re.search(r"(?<!\S)%s(?![\w.+-])" % re.escape(name), text)
        )
        note = " (on hold: %s)" % ", ".join(held) if held else ""
        return "apt finds no way to do this%s. Nothing was changed:\n%s" % (note, apt.reasons(done))

    def _astray(self, steps: List[Step], arguments: List[str], rules: Rules) -> List[str]:
        """Arguments for packages that belong together but would come in another version than there is."""
        version = rules.version
        if version is None:
            return []
        named = {argument.split("=")[0] for argument in arguments}
        astray = [
            step.name
            for step in steps
            if step.new is not None
            and step.name not in named
            and matches(step.name, rules.kept_together)
            and not fits(step.new, version)
        ]
        fitting = {
            name: [v for v in found if fits(v, version)] for name, found in self.available(astray).items()
        }
        return ["%s=%s" % (name, found[0]) for name, found in fitting.items() if found]
