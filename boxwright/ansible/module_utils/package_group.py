"""A group of packages on a host: what is declared against what is there, made true and held."""

from __future__ import annotations

import os
from typing import Any, Dict, List, Optional

from ansible.module_utils import apt
from ansible.module_utils.apt_pins import Pins
from ansible.module_utils.apt_sources import pins_text
from ansible.module_utils.apt_transaction import (
    Apt,
    PackagesError,
    Plan,
    Rules,
    StaleError,
    Wanted,
    parse_wanted,
)
from ansible.module_utils.command import ensure, run
from ansible.module_utils.hold_records import Record, blacklist_path, blacklist_text, other_groups


class Group:
    """One call's work. params: those of held_packages; root: prefix of our own records and settings."""

    def __init__(self, params: Dict[str, Any], check: bool, root: str) -> None:
        self.params, self.check = params, check
        self.wanted = parse_wanted(params["packages"], params["version"])
        self.alongside = parse_wanted(params["alongside"], None)
        self.names = [one.name for one in self.wanted]
        self.record = Record(root, params["name"])
        self.others = other_groups(root, params["name"])
        self.blacklist = blacklist_path(root, params["name"])
        self.pins = Pins(root, params["name"])
        self.pins_text = self.wanted_pins()
        self.packages = apt.installed()
        self.held = apt.holds()
        self.apt = Apt(params["timeout_s"], params["lock_timeout_s"], params["proxy"], params["recommends"])
        self.waited_for: Optional[str] = None
        self.repaired: List[str] = []
        self.steps: List[apt.Step] = []
        #: Whether the host's packages are no longer as they were found.
        self.touched = False
        #: Why packages that were there before us could not be brought back, or "".
        self.not_restored = ""

    # Comparing

    def wanted_pins(self) -> Optional[str]:
        """apt's preferences for the declared version, or None."""
        version = self.params["version"]
        if not self.params["pin"] or not version or self.params["state"] == "absent":
            return None
        # apt knows no exceptions from a pattern; packages without such a version are not touched by the pin.
        names = [glob for glob in [*self.names, *self.params["hold"]] if not glob.startswith("!")]
        packages = list(dict.fromkeys(names))
        # The first record that means a version counts for it, so that those to be left alone come first.
        pins = [
            {"packages": packages, "pin": "release " + origin, "priority": -1}
            for origin in self.params["avoid"]
        ]
        # Over 1000, so that a version can also go down.
        pins.append({"packages": packages, "pin": "version " + version, "priority": 1001})
        text: Optional[str] = pins_text(pins)
        return text

    def to_hold(self) -> List[str]:
        """Installed packages that should be on hold: the declared ones and those that `hold` means."""
        meant = {name for name in self.packages if apt.matches(name, self.params["hold"])}
        return sorted((meant | set(self.names)) & set(self.packages))

    def astray(self) -> Dict[str, bool]:
        """Installed packages that `hold` means in another version, and whether the declared one is there."""
        version = self.params["version"]
        names = [
            name
            for name in self.to_hold()
            if name not in self.names and not apt.matches(self.packages[name].version, [version or "*"])
        ]
        have = apt.available(names)
        return {name: any(apt.matches(one, [version]) for one in have.get(name, [])) for name in names}

    def replaced(self) -> List[str]:
        """Installed packages that are to leave for the declared ones."""
        return [name for name in self.packages if apt.matches(name, self.params["replaces"])]

    def strays(self) -> List[str]:
        """Those of another branch that the declared one has none of: they would keep it from coming."""
        glob = self.params["strays"]
        if not glob or (self.check and self.params["source_pending"]):
            return []
        of_branch = {name for name, package in self.packages.items() if apt.matches(package.version, [glob])}
        return [name for name, have in self.astray().items() if not have and name in of_branch]

    def companions(self) -> List[Wanted]:
        """Installed packages that `hold` means and that exist in the declared version but have another."""
        replaced = self.replaced()
        return [
            Wanted(name, self.params["version"])
            for name, have in self.astray().items()
            if have and name not in replaced
        ]

    def due(self) -> List[Wanted]:
        """Packages that are not as declared."""
        declared = [*self.wanted, *self.alongside]
        return [one for one in declared if not one.met_by(self.packages.get(one.name))] + self.companions()

    def leaving(self) -> List[str]:
        """Installed packages that go: replaced ones, strays, and ours that are declared no more."""
        dropped = {name for name in self.record.declared if name in self.record.installed}
        gone = {*dropped, *self.replaced(), *self.strays()}
        return sorted((gone & set(self.packages)) - set(self.names))

    def unfinished(self) -> List[str]:
        """Packages that an interrupted dpkg left half done."""
        return sorted(name for name, package in self.packages.items() if package.unfinished)

    def foreign_holds(self) -> Dict[str, str]:
        """Packages on hold that are not this group's to change: package to whose hold it is."""
        return {
            name: "for " + self.others[name] if name in self.others else "by a person, not by Boxwright"
            for name in self.held
            if name not in self.record.holds
        }

    def rules(self) -> Rules:
        """What a transaction of this group may do."""
        return Rules(
            version=self.params["version"],
            kept_together=self.params["hold"],
            foreign=self.foreign_holds(),
            removable=self.params["may_remove"],
            ours=self.record.installed,
            downgrade=self.params["allow_downgrade"] or self.params["state"] == "absent",
        )

    # Making it true

    def present(self) -> bool:
        """Install, hold, record; whether anything changed (or would)."""
        if self.due() or self.leaving() or self.unfinished():
            self.ready_dpkg()
            due = self.due()
            if self.check and self.params["source_pending"]:
                known = apt.available(one.name for one in due)
                unknown = [one for one in due if one.name not in known]
                self.steps = [apt.Step("install", one.name, None, one.version) for one in unknown]
                due = [one for one in due if one.name in known]
            if due or self.leaving():
                with self.pins.tried(self.pins_text) as self.apt.preferences:
                    self.change(due, self.leaving())
        return self.hold() or bool(self.steps) or bool(self.repaired)

    def absent(self) -> bool:
        """Lift our holds, remove what we had installed, forget; whether anything changed (or would)."""
        if self.unfinished():
            self.ready_dpkg()
        leaving = [name for name in self.record.installed if name in self.packages]
        before = {**self.record.removed, **self.record.changed}
        back = [
            Wanted(name, version)
            for name, version in sorted(before.items())
            if name not in self.packages or self.packages[name].version != version
        ]
        lifted = [name for name in self.record.holds if name in self.held and name not in self.others]
        known = self.record.exists or os.path.exists(self.blacklist)
        if leaving or back:
            self.ready_dpkg()
            self.go_back(back, leaving)
        if not self.check:
            self.mark("unhold", [name for name in lifted if name in self.packages])
            self.mark("auto", [name for name in self.record.automatic if name in self.packages])
            self.pins.write(None)
            for path in (self.blacklist, self.record.path):
                if os.path.exists(path):
                    os.unlink(path)
        return bool(self.steps or lifted or known or self.repaired)

    def go_back(self, back: List[Wanted], leaving: List[str]) -> None:
        """Remove `leaving` and bring `back` what was there before, in one transaction where that can be.

        What no source has any more is told and given up: our packages leave all the same.
        """
        have = apt.available(one.name for one in back)
        lost = [one for one in back if one.version not in have.get(one.name, [])]
        told = ["%s %s is in none of the host's package sources" % (one.name, one.version) for one in lost]
        # What cannot go back and cannot stay without what leaves may leave with it.
        removable = [*self.params["may_remove"], *(one.name for one in back)]
        self.params = {**self.params, "may_remove": removable}
        with self.pins.tried(None) as self.apt.preferences:
            try:
                self.change([one for one in back if one not in lost], leaving)
            except StaleError as error:
                told.append(str(error))
                if leaving:
                    self.change([], leaving)
        self.not_restored = "\n".join(told)

    def ready_dpkg(self) -> None:
        """Wait for the locks, then end what an interrupted dpkg began. Raises PackagesError."""
        try:
            self.waited_for = apt.wait_for_locks(self.params["lock_timeout_s"]) or self.waited_for
        except apt.LockTimeout as error:
            raise PackagesError("packages cannot be changed now: %s. Nothing was changed." % error) from None
        if self.waited_for:
            self.packages = apt.installed()
        broken = self.unfinished()
        if not broken and not apt.journal_pending():
            return
        self.repaired = broken or ["dpkg's journal"]
        if self.check:
            return
        self.touched = True
        done = run(
            ["dpkg", "--force-confdef", "--force-confold", "--configure", "-a"],
            timeout=self.params["timeout_s"],
            env=apt.environment(),
        )
        self.packages = apt.installed()
        broken = self.unfinished()
        if broken:
            # Half-installed ones and those that "require reinstallation" want their package file again.
            done = self.apt.get(["install", "--fix-broken", "--reinstall", *broken])
            self.packages = apt.installed()
            broken = self.unfinished()
        if broken:
            raise PackagesError(
                "an earlier, interrupted package installation cannot be brought to an end "
                "(dpkg --configure -a): %s\n%s" % (", ".join(broken), apt.reasons(done))
            )

    def change(self, due: List[Wanted], leaving: List[str]) -> None:
        """Plan; in earnest, download and then change everything at once. Raises PackagesError."""
        purge = self.params["state"] == "absent" and self.params["purge"]
        try:
            plan = self.planned(due, leaving, purge)
        except StaleError:
            if self.check or not due:
                raise
            self.apt.get(["update"])
            plan = self.planned(due, leaving, purge)
        self.steps = self.steps + plan.steps
        if not self.check and plan.steps:
            self.carry_out(plan)

    def planned(self, due: List[Wanted], leaving: List[str], purge: bool) -> Plan:
        """What apt would do, with everything downloaded that it takes. Raises PackagesError."""
        plan = self.apt.plan(due, leaving, purge, self.rules())
        if due and plan.steps and not self.check:
            self.apt.download(plan)
        return plan

    def carry_out(self, plan: Plan) -> None:
        """Record and change. Raises PackagesError."""
        self.touched = True
        self.pins.write(self.pins_text)
        if self.params["state"] == "present":
            self.note(plan.steps)
        done = self.apt.get(plan.command)
        self.packages = apt.installed()
        if done.rc != 0:
            self.mark("hold", [name for name in self.record.holds if name in self.packages])
            raise PackagesError("apt failed half-way; a rerun picks it up from there:\n" + apt.reasons(done))

    def note(self, steps: List[apt.Step]) -> None:
        """Record what the change adds and takes, before it does."""
        self.record.note(steps, apt.automatic())
        self.record.declared = sorted(set(self.record.declared) | set(self.names))
        self.record.save()

    def hold(self) -> bool:
        """Hold, record and keep from unattended-upgrades; whether anything of it was not so."""
        wanted, before = self.to_hold(), self.record.text()
        held = apt.holds() if self.steps and not self.check else self.held
        persons = [name for name in self.held if name not in self.record.holds and name not in self.others]
        missing = [name for name in wanted if name not in held]
        # What this group held and no longer means is let go, unless another group means it.
        lifted = [
            name
            for name in self.record.holds
            if name in held and name not in wanted and name not in self.others and name in self.packages
        ]
        self.record.holds = [name for name in wanted if name not in persons]
        self.record.declared = sorted(self.names)
        if not self.check:
            self.record.installed = sorted(name for name in self.record.installed if name in self.packages)
        text = blacklist_text(sorted(self.names), self.params["hold"])
        changed: bool = ensure(self.blacklist, text, check=self.check)
        if self.pins.text != self.pins_text:
            changed = True
            if not self.check:
                self.pins.write(self.pins_text)
        changed |= bool(missing or lifted or before != self.record.text() or not self.record.exists)
        if not self.check and changed:
            self.record.save()
            self.mark("hold", missing)
            self.mark("unhold", lifted)
        return changed

    def mark(self, verb: str, names: List[str]) -> None:
        """apt-mark hold or unhold. Raises PackagesError."""
        if not names:
            return
        done = run(["apt-mark", verb, *names], timeout=120)
        if done.rc != 0:
            raise PackagesError("apt-mark %s failed: %s" % (verb, apt.reasons(done)))


def versions(group: Group) -> Dict[str, str]:
    """Installed version of each package that the group declares or keeps."""
    names = {*group.names, *group.record.holds, *group.record.installed}
    return {name: group.packages[name].version for name in sorted(names) if name in group.packages}
