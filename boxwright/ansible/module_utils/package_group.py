"""A group of packages on a host, made what is declared, and held."""

from __future__ import annotations

import os
from typing import Any, Dict, List, Optional

from ansible.module_utils.command import read, take_away, write
from ansible.module_utils.package_locks import LockTimeout
from ansible.module_utils.package_state import Compared
from ansible.module_utils.packages import (
    Package,
    PackagesError,
    Plan,
    StaleError,
    Step,
    Wanted,
    matches,
)


class Group(Compared):  # type: ignore[misc]  # the checker finds no module_utils by this name
    """One call's work, carried out."""

    params: Dict[str, Any]
    packages: Dict[str, Package]
    steps: List[Step]
    repaired: List[str]
    waited_for: Optional[str]

    def present(self) -> bool:
        """Install, hold, record; whether anything changed (or would)."""
        if self.due() or self.leaving() or self.unfinished() or self.manager.settings_due():
            self.ready()
            due = self.due()
            if self.check and self.params["source_pending"]:
                known = self.manager.available(one.name for one in due)
                unknown = [one for one in due if one.name not in known]
                self.steps = [Step("install", one.name, None, one.version) for one in unknown]
                due = [one for one in due if one.name in known]
            if due or self.leaving() or self.manager.settings_due():
                with self.manager.trying(self.params["name"], self.declared()):
                    self.change(due, self.leaving())
        return self.hold() or bool(self.steps) or bool(self.repaired)

    def absent(self) -> bool:
        """Lift our holds, remove what we had installed, forget; whether anything changed (or would)."""
        if self.unfinished():
            self.ready()
        leaving = [name for name in self.record.installed if name in self.packages]
        if self.manager.holds_others(self.record.holds):
            # What holds packages stays while anybody's are held.
            leaving = [name for name in leaving if name not in self.manager.needs]
        before = {**self.record.removed, **self.record.changed}
        back = [
            Wanted(name, version)
            for name, version in sorted(before.items())
            if name not in self.packages or self.packages[name].version != version
        ]
        lifted = [name for name in self.record.holds if name in self.held and name not in self.others]
        settings = self.manager.settings(self.params["name"], None)
        known = self.record.exists or any(os.path.exists(path) for path in settings)
        if leaving or back:
            self.ready()
            self.go_back(back, leaving)
        if not self.check:
            for name, paths in self.record.made.items():
                if name not in self.packages:
                    take_made([self.root + path for path in paths])
            self.manager.release(lifted, self.packages)
            self.manager.mark_automatic([name for name in self.record.automatic if name in self.packages])
            self.configure(settings)
            self.configure({self.root + path: text for path, text in self.record.states.items()})
            take_away(self.record.path)
        return bool(self.steps or lifted or known or self.repaired)

    def go_back(self, back: List[Wanted], leaving: List[str]) -> None:
        """Remove `leaving` and bring `back` what was there before, in one transaction where that can be.

        What no source has any more is told and given up: our packages leave all the same.
        """
        have = self.manager.available(one.name for one in back)
        lost = [one for one in back if one.version not in have.get(one.name, [])]
        told = ["%s %s is in none of the host's package sources" % (one.name, one.version) for one in lost]
        # What cannot go back and cannot stay without what leaves may leave with it.
        removable = [*self.params["may_remove"], *(one.name for one in back)]
        self.params = {**self.params, "may_remove": removable}
        with self.manager.trying(self.params["name"], None):
            try:
                self.change([one for one in back if one not in lost], leaving)
            except StaleError as error:
                told.append(str(error))
                if leaving:
                    self.change([], leaving)
        self.not_restored = "\n".join(told)

    def configure(self, settings: Dict[str, Optional[str]]) -> bool:
        """Make the manager's files hold their texts, or be gone; whether any was not so."""
        due = {path: text for path, text in settings.items() if read(path) != text}
        for path, text in due.items() if not self.check else ():
            if text is None:
                os.unlink(path)
            else:
                write(path, text)
        return bool(due)

    def ready(self) -> None:
        """Wait for the locks, then end what an interrupted run began. Raises PackagesError."""
        manager = self.manager
        self.progress.update("waiting until nobody else changes packages")
        try:
            self.waited_for = manager.wait(self.params["lock_timeout_s"]) or self.waited_for
        except LockTimeout as error:
            raise PackagesError("packages cannot be changed now: %s. Nothing was changed." % error) from None
        if self.waited_for:
            self.packages = manager.installed()
        broken, left = self.unfinished(), manager.interrupted()
        if not broken and not left:
            return
        self.repaired = broken or [left or ""]
        if self.check:
            return
        self.touched = True
        done = manager.repair(broken)
        self.packages = manager.installed()
        stuck = self.stuck()
        if stuck:
            raise PackagesError(
                "an earlier, interrupted package installation cannot be brought to an end (%s): %s\n%s"
                % (manager.repairing, ", ".join(stuck), manager.reasons(done))
            )
        still = self.unfinished()
        self.repaired = [name for name in self.repaired if name not in still]

    def change(self, due: List[Wanted], leaving: List[str]) -> None:
        """Plan; in earnest, download and then change everything at once. Raises PackagesError."""
        kept = self.params["unpurged"]
        purge = self.params["state"] == "absent" and not any(matches(name, kept) for name in leaving)
        try:
            plan = self.planned(due, leaving, purge)
        except StaleError:
            if self.check or not due:
                raise
            self.progress.update("reading the package lists anew")
            self.manager.refresh()
            plan = self.planned(due, leaving, purge)
        self.steps = self.steps + plan.steps
        if not self.check and plan.steps:
            self.carry_out(plan)
        if not self.check and self.params["state"] == "absent" and not purge:
            removed = [step.name for step in plan.steps if step.kind == "remove"]
            self.manager.purge([name for name in removed if not matches(name, kept)])

    def planned(self, due: List[Wanted], leaving: List[str], purge: bool) -> Plan:
        """What would be done, with everything downloaded that it takes. Raises PackagesError."""
        self.progress.update("working out which packages change")
        plan = self.manager.plan(due, leaving, purge, self.rules())
        gone = [step.name for step in plan.steps if step.kind == "remove" and step.name in self.names]
        if gone and self.params["state"] == "present":
            raise PackagesError(
                "%s would remove %s, which %s declared. Nothing was changed."
                % (self.manager.name, ", ".join(gone), "is" if len(gone) == 1 else "are")
            )
        if due and plan.steps and not self.check:
            self.progress.update("downloading packages")
            self.manager.download(plan)
        return plan

    def carry_out(self, plan: Plan) -> None:
        """Record and change. Raises PackagesError."""
        self.touched = True
        if self.params["state"] == "present":
            self.configure(self.manager.settings(self.params["name"], self.declared()))
            self.note(plan.steps)
        self.progress.update("installing packages")
        done = self.manager.carry_out(plan)
        self.packages = self.manager.installed()
        if done.rc != 0:
            self.manager.hold([name for name in self.record.holds if name in self.packages], self.packages)
            raise PackagesError(
                "%s failed half-way; a rerun picks it up there, or goes back if the declaration does:\n%s"
                % (self.manager.name, self.manager.reasons(done))
            )

    def note(self, steps: List[Step]) -> None:
        """Record what the change adds and takes, before it does."""
        for path, text in self.manager.states().items():
            self.record.states.setdefault(path, text)
        # What came along newer (the C library, say) is not taken back later: it has its own life.
        meant = [*self.names, *self.params["hold"], *self.params["replaces"], *self.params["may_remove"]]
        told = [step for step in steps if step.kind in ("install", "remove") or matches(step.name, meant)]
        self.record.note(told, self.manager.automatic())
        for step in steps:
            paths = self.params["makes"].get(step.name, []) if step.kind == "install" else []
            missing = [path for path in paths if not os.path.lexists(self.root + path)]
            if missing:
                self.record.made.setdefault(step.name, missing)
        self.record.declared = sorted(set(self.record.declared) | set(self.names))
        self.record.save()

    def hold(self) -> bool:
        """Hold, record and keep from automatic upgrades; whether anything of it was not so."""
        wanted, before = self.to_hold(), self.record.text()
        held = self.manager.held(self.packages) if self.steps and not self.check else self.held
        persons = [name for name in held if name not in self.record.holds and name not in self.others]
        missing = [name for name in wanted if name not in held]
        missing += self.manager.astray([name for name in wanted if name not in persons], self.packages)
        # What this group held and no longer means is let go, unless another group means it.
        lifted = [
            name
            for name in self.record.holds
            if name in held and name not in wanted and name not in self.others and name in self.packages
        ]
        gone = [name for name in self.record.holds if name not in self.packages and name not in self.others]
        self.record.holds = [name for name in wanted if name not in persons]
        self.record.declared = sorted(self.names)
        if not self.check:
            self.record.installed = sorted(name for name in self.record.installed if name in self.packages)
        changed = self.configure(self.manager.settings(self.params["name"], self.declared()))
        changed |= bool(missing or lifted or before != self.record.text() or not self.record.exists)
        if not self.check and changed:
            self.record.save()
            self.manager.hold(missing, self.packages)
            self.manager.release(lifted + gone, self.packages)
        return changed


def take_made(paths: List[str]) -> None:
    """Remove files that are there, and directories that are empty then."""
    for path in sorted(paths, key=len, reverse=True):
        if os.path.isdir(path) and not os.path.islink(path):
            if not os.listdir(path):
                os.rmdir(path)
        elif os.path.lexists(path):
            os.unlink(path)


def versions(group: Group) -> Dict[str, str]:
    """Installed version of each package that the group declares or keeps."""
    names = {*group.names, *group.record.holds, *group.record.installed}
    return {name: group.packages[name].version for name in sorted(names) if name in group.packages}
