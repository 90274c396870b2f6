"""One change of a host's packages: resolved, simulated and judged before anything happens."""

from __future__ import annotations

import re
from typing import Dict, List, NamedTuple, Optional

from ansible.module_utils import apt
from ansible.module_utils.command import Result, run


class PackagesError(Exception):
    """The packages cannot be made true; the text says why and what was left."""


class StaleError(PackagesError):
    """The same, where old or missing package lists may be the reason."""


class Wanted(NamedTuple):
    """A declared package. version: exact, a glob, or None for whatever is there or comes."""

    name: str
    version: Optional[str]

    def met_by(self, package: Optional[apt.Package]) -> bool:
        """Whether the installed package is what was declared."""
        return (
            package is not None
            and package.healthy
            and (self.version is None or apt.matches(package.version, [self.version]))
        )


def parse_wanted(packages: List[str], version: Optional[str]) -> List[Wanted]:
    """Declared packages from "name" or "name=version"; `version` is for those without one of their own."""
    wanted = []
    for text in packages:
        name, _, own = text.partition("=")
        wanted.append(Wanted(name.strip(), own.strip() or version or None))
    return wanted


def resolve(due: List[Wanted], versions: Dict[str, List[str]]) -> List[str]:
    """apt's arguments (name or name=version, the newest that fits) for the packages.

    versions: what the host's sources have, newest first. Raises PackagesError that lists what is there.
    """
    arguments, missing = [], []
    for one in due:
        have = versions.get(one.name, [])
        fitting = [v for v in have if one.version is None or apt.matches(v, [one.version])]
        if not have:
            missing.append("%s is in none of the host's package sources" % one.name)
        elif not fitting:
            missing.append(
                "%s has no version %s; there is %s" % (one.name, one.version, ", ".join(have[:12]))
            )
        else:
            arguments.append("%s=%s" % (one.name, fitting[0]) if one.version else one.name)
    if missing:
        raise StaleError("\n".join([*missing, "Nothing was changed."]))
    return arguments


class Rules(NamedTuple):
    """What a transaction may do. Globs as in `apt.matches`.

    version: that of every package `kept_together` means, where the sources have it. foreign: packages that
    must not change, with the reason. removable: globs and names that may go. ours: packages that were not
    there before us; they go when nothing needs them any more. downgrade: whether versions may go down.
    """

    version: Optional[str]
    kept_together: List[str]
    foreign: Dict[str, str]
    removable: List[str]
    ours: List[str]
    downgrade: bool


def refusals(steps: List[apt.Step], rules: Rules) -> List[str]:
    """Why the steps must not be taken: changes of held packages, downgrades, stray removals."""
    found = []
    touched = [
        "%s (held %s)" % (step.text(), rules.foreign[step.name])
        for step in steps
        if step.name in rules.foreign
    ]
    if touched:
        found.append(
            "these packages would have to change but are on hold: %s. Lift the hold (apt-mark unhold NAME) "
            "if it is no longer meant" % "; ".join(touched)
        )
    down = [step.text() for step in steps if step.kind == "downgrade"]
    if down and not rules.downgrade:
        found.append("versions would go down: %s" % "; ".join(down))
    lost = [
        step.name for step in steps if step.kind == "remove" and not apt.matches(step.name, rules.removable)
    ]
    if lost:
        found.append("apt would remove packages that nobody asked to remove: %s" % ", ".join(lost))
    return found


class Apt:
    """apt-get with nobody to answer it. Holds do not count for it: `refusals` guards those of others.

    timeout: seconds for one call; lock_timeout: seconds that apt itself waits for locks. preferences: a
    directory that stands for /etc/apt/preferences.d.
    """

    def __init__(self, timeout: float, lock_timeout: int, proxy: Optional[str], recommends: bool) -> None:
        self.timeout, self.lock_timeout = timeout, lock_timeout
        self.proxy, self.recommends = proxy, recommends
        self.preferences: Optional[str] = None

    def get(self, words: List[str]) -> Result:
        """Run `apt-get words`."""
        argv = ["apt-get", "-q", "-y", *apt.OPTIONS, "--ignore-hold", "--allow-change-held-packages"]
        argv += ["--allow-downgrades", "-o", "Acquire::Retries=2"]
        argv += ["-o", "APT::Install-Recommends=%s" % ("true" if self.recommends else "false")]
        argv += ["-o", "DPkg::Lock::Timeout=%d" % self.lock_timeout]
        if self.preferences:
            argv += ["-o", "Dir::Etc::PreferencesParts=" + self.preferences]
        return run(argv + words, timeout=self.timeout, env=apt.environment(self.proxy))

    def plan(self, due: List[Wanted], leaving: List[str], purge: bool, rules: Rules) -> "Plan":
        """What apt would do, allowed by the rules. Raises PackagesError; nothing is changed."""
        arguments = resolve(due, apt.available(one.name for one in due))
        leaving = leaving + self._orphans(arguments, leaving, rules)
        steps: List[apt.Step] = []
        for _ in range(5):
            done = self.get(["--simulate", *command(arguments, leaving, purge)])
            if done.rc != 0:
                raise StaleError(self._impossible(done, rules))
            steps = apt.mark_downgrades(apt.parse_simulation(done.stdout))
            more = self._astray(steps, arguments, rules)
            if not more:
                break
            arguments += more
        refused = refusals(steps, rules._replace(removable=[*rules.removable, *rules.ours, *leaving]))
        if refused:
            raise PackagesError("\n".join([*refused, "Nothing was changed."]))
        return Plan(steps, command(arguments, leaving, purge))

    def download(self, plan: "Plan") -> None:
        """Fetch the packages of a plan. Raises StaleError."""
        done = self.get(["--download-only", *plan.command])
        if done.rc != 0:
            raise StaleError("the packages cannot be downloaded, nothing was changed:\n" + apt.reasons(done))

    def _orphans(self, arguments: List[str], leaving: List[str], rules: Rules) -> List[str]:
        """Packages of ours that nothing needs any more once `leaving` are gone."""
        if not leaving:
            return []
        automatic = ["--simulate", "-o", "APT::Get::AutomaticRemove=true"]
        done = self.get(automatic + command(arguments, leaving, purge=False))
        gone = [step.name for step in apt.parse_simulation(done.stdout) if step.kind == "remove"]
        return [name for name in gone if name in rules.ours and name not in leaving]

    def _impossible(self, done: Result, rules: Rules) -> str:
        text = done.text
        held = sorted(
            name for name in rules.foreign if re.search(r"(?<!\S)%s(?![\w.+-])" % re.escape(name), text)
        )
        note = " (on hold: %s)" % ", ".join(held) if held else ""
        return "apt finds no way to do this%s. Nothing was changed:\n%s" % (note, apt.reasons(done))

    def _astray(self, steps: List[apt.Step], arguments: List[str], rules: Rules) -> List[str]:
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
            and apt.matches(step.name, rules.kept_together)
            and not apt.matches(step.new, [version])
        ]
        fitting = {
            name: [v for v in found if apt.matches(v, [version])]
            for name, found in apt.available(astray).items()
        }
        return ["%s=%s" % (name, found[0]) for name, found in fitting.items() if found]


class Plan(NamedTuple):
    """A simulated change. command: the words for apt-get."""

    steps: List[apt.Step]
    command: List[str]


def command(arguments: List[str], leaving: List[str], purge: bool) -> List[str]:
    """The apt-get command without its options; "name-" stands for a removal."""
    if not arguments:
        return ["purge" if purge else "remove", *leaving]
    named = {argument.split("=")[0] for argument in arguments}
    words = ["install", *(["--purge"] if purge else []), *arguments]
    return words + [name + "-" for name in leaving if name not in named]
