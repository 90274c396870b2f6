"""Make persistence, clocks and power limit of a host's NVIDIA cards true, now and at every boot."""

from __future__ import annotations

import json
import os
from typing import Any, Dict, List

from ansible.module_utils import boot_commands, card_clocks, card_limits, driver_load, shapes, smi_commands
from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.command import ensure, read, run, take_away
from ansible.module_utils.shapes import NUMBER, WHOLE, Fields, MapOf, maybe

DOCUMENTATION = r"""
module: gpu_limits
short_description: Persistence, clock range and power limit of the NVIDIA cards
description:
  - Checks the values against the ranges that the cards tell, keeps them in a file that a systemd unit applies
    at every boot, applies them now if anything differs, and reads the cards again afterwards.
  - A setting that is declared no more goes back to the card's default.
  - Lines of rc.local that set what is declared are taken over; other commands at boot are told.
options:
  state:
    description:
      - "absent undoes it; verified only looks, for a moment, also at clocks under load."
      - "trial sets the cards now, and neither file nor unit: a reload of the unit, or a boot, ends it."
    type: str
    choices: [present, absent, verified, trial]
    default: present
  persistence: {description: "Keep the driver loaded while no client runs.", type: bool, default: true}
  min_clock_mhz: {description: "Lowest graphics clock in MHz.", type: int, default: 0}
  max_clock_mhz: {description: "Highest graphics clock in MHz; none leaves the clocks free.", type: int}
  memory_clock_mhz: {description: "Memory clock in MHz; none leaves it free.", type: int}
  power_limit_w: {description: "Power limit in W; none is the card's default.", type: float}
  cards: {description: "Limits of single cards by index or UUID, over the others.", type: dict, default: {}}
  required: {description: "Whether a card that does not support a setting is an error.", type: bool,
             default: false}
  config: {description: "File with the settings.", type: path, required: true}
  receipts: {description: "File with what the cards answered since they were booted.", type: path,
             required: true}
  script: {description: "Path of the program that applies the settings.", type: path, required: true}
  script_text: {description: "Its text.", type: str, default: ""}
  unit: {description: "Name of the systemd unit.", type: str, required: true}
  unit_text: {description: "Its text.", type: str, default: ""}
"""

#: Prefix of every path; tests point it at a directory of theirs.
ROOT = ""


class LimitsError(Exception):
    """The cards cannot be brought to what was declared; the text says why."""


class Limits:
    """One call's work. done: what was (or would be) changed, in words."""

    def __init__(self, params: Dict[str, Any], check: bool) -> None:
        self.params, self.check = params, check
        self.declared = card_limits.Declared(
            params["persistence"],
            params["min_clock_mhz"],
            params["max_clock_mhz"],
            params["memory_clock_mhz"],
            params["power_limit_w"],
            {str(key): dict(one or {}) for key, one in (params["cards"] or {}).items()},
        )
        self.config, self.receipts = ROOT + params["config"], ROOT + params["receipts"]
        self.script = ROOT + params["script"]
        self.unit_path = "%s/etc/systemd/system/%s" % (ROOT, params["unit"])
        self.cards: List[card_limits.Card] = []
        self.done: List[str] = []
        self.unsupported: List[str] = []
        self.told: List[str] = []

    def present(self) -> None:
        """Check, write, apply, read back. Raises LimitsError."""
        try:
            self.cards = card_limits.read_cards()
        except card_limits.NoCards as error:
            if self.check and error.outcome in ("not-installed", "no-driver"):
                # Before the first real run there is nothing to check the values against.
                self.done.append("apply to the cards, once the driver is there")
                return
            raise LimitsError("the cards cannot be asked: %s" % error) from None
        self.refuse_out_of_range()
        new_unit = self.files()
        drifted = card_limits.drift(self.cards, self.declared, self.read_receipts())
        self.done += drifted
        self.unit(new_unit)
        self.see(card_limits.drift(self.read_cards_again(), self.declared, self.read_receipts()))
        self.elsewhere()

    def refuse_out_of_range(self) -> None:
        """Raise LimitsError for what a card would refuse or not keep; nothing is changed then."""
        wrong = card_limits.unknown(self.cards, self.declared)
        wrong += [text for card in self.cards for text in card_limits.out_of_range(card, self.declared)]
        if wrong:
            raise LimitsError("\n".join([*dict.fromkeys(wrong), "Nothing was changed."]))

    def trial(self) -> None:
        """Have the cards at these limits for a while. Raises LimitsError where they do not take them."""
        try:
            self.cards = card_limits.read_cards()
        except card_limits.NoCards as error:
            raise LimitsError("the cards cannot be asked: %s" % error) from None
        self.refuse_out_of_range()
        if self.shown().get("ActiveState") != "active":
            raise LimitsError("%s is not active, so nothing would bring the cards back" % self.params["unit"])
        self.done += card_limits.drift(self.cards, self.declared, self.read_receipts())
        if not self.done or self.check:
            return
        settings = json.dumps(card_limits.config(self.cards, self.declared), indent=1, sort_keys=True) + "\n"
        ensure(self.config, settings, 0o644)
        argv = ["/usr/bin/python3", "-I", self.script, "apply", self.config, self.receipts]
        done = run(argv, timeout=240)
        if done.rc:
            problems = self.read_receipts().get("problems") or [done.text]
            raise LimitsError("the cards did not take the limits:\n%s" % "\n".join(problems))
        self.see(card_limits.drift(self.read_cards_again(), self.declared, self.read_receipts()))

    def verified(self) -> None:
        """Look at the cards, also at clocks while they work. Raises LimitsError for a limit not kept."""
        try:
            self.cards = card_limits.read_cards()
        except card_limits.NoCards as error:
            raise LimitsError("the cards cannot be asked: %s" % error) from None
        self.see(card_limits.drift(self.cards, self.declared, self.read_receipts()))
        clocks = card_clocks.verdict(self.read_receipts())
        if clocks.broken or (clocks.ignored and self.params["required"]):
            raise LimitsError(
                "\n".join([*clocks.broken, *clocks.ignored])
                + "\nSomething on this host sets the cards beside Boxwright, or a card does not keep a lock"
            )
        self.told += clocks.ignored + clocks.told

    def elsewhere(self) -> None:
        """Take over lines of rc.local that set what is declared; tell of every other command at boot."""
        lines: List[int] = []
        for command in boot_commands.found(ROOT):
            place = "%s:%d: %s" % (command["path"], command["line"], command["text"])
            if not self.covers(command):
                via = ", run by " + command["via"] if command["via"] else ""
                self.told.append(
                    "%s sets the cards as well%s, and is left as it is: take it out there" % (place, via)
                )
                continue
            self.done.append("take over " + place)
            lines += range(command["line"], command["last"] + 1)
        if lines and not self.check:
            self.done.append("keep the file as it was in " + boot_commands.take_over(lines, ROOT))

    def covers(self, command: Dict[str, Any]) -> bool:
        """Whether a line may be taken over: what it sets is declared for each of its cards."""
        cards = [
            card
            for card in self.cards
            if smi_commands.is_card(command["card"], card.number, card.uuid, card.bus)
        ]
        goals = [self.declared.goal(card) for card in cards]
        names = {
            "persistence": "persistence",
            "clocks": "clocks_mhz",
            "memory clocks": "memory_clock_mhz",
            "power limit": "power_limit_w",
        }
        name = names.get(command["what"])
        return bool(command["movable"] and goals and name) and all(
            getattr(goal, name or "") for goal in goals
        )

    def files(self) -> bool:
        """Settings, program and unit on disk; whether the unit is new to systemd."""
        settings = json.dumps(card_limits.config(self.cards, self.declared), indent=1, sort_keys=True) + "\n"
        texts = (
            (self.config, settings, 0o644),
            (self.script, self.params["script_text"], 0o755),
            (self.unit_path, self.params["unit_text"], 0o644),
        )
        changed = [path for path, text, mode in texts if ensure(path, text, mode, check=self.check)]
        self.done += ["write " + path for path in changed]
        return self.unit_path in changed

    def unit(self, new: bool) -> None:
        """The unit known, enabled and, where anything differs, run. Raises LimitsError."""
        name, values = self.params["unit"], self.shown()
        if values.get("UnitFileState") != "enabled":
            self.done.append("enable " + name)
        if values.get("ActiveState") != "active":
            self.done.append("start " + name)
        if self.check or not self.done:
            return
        if new:
            self.systemctl("daemon-reload")
        if new or values.get("UnitFileState") != "enabled":
            # "reenable": the links follow what [Install] says now.
            self.systemctl("reenable", name)
        if values.get("ActiveState") == "active":
            self.systemctl("reload", name)
        else:
            self.systemctl("restart", name)

    def shown(self) -> Dict[str, str]:
        """The unit as systemd sees it."""
        done = run(["systemctl", "show", "-p", "UnitFileState,ActiveState", self.params["unit"]])
        return dict(line.partition("=")[::2] for line in done.stdout.splitlines())

    def systemctl(self, *words: str) -> None:
        """Run systemctl. Raises LimitsError with what the cards answered."""
        done = run(["systemctl", *words], timeout=240)
        if done.rc == 0:
            return
        problems = self.read_receipts().get("problems") or [done.text]
        raise LimitsError("systemctl %s failed:\n%s" % (" ".join(words), "\n".join(problems)))

    def read_receipts(self) -> Dict[str, Any]:
        """What was applied since the driver was loaded."""
        receipts: Dict[str, Any] = card_limits.current(
            card_limits.receipts_of(read(self.receipts)), driver_load.identity()
        )
        return receipts

    def read_cards_again(self) -> List[card_limits.Card]:
        """The cards after a change, or as they were read when there was none."""
        if self.done and not self.check:
            self.cards = card_limits.read_cards()
        return self.cards

    def see(self, drifted: List[str]) -> None:
        """Judge the result: an exit status of 0 proves nothing. Raises LimitsError."""
        for uuid, what in sorted(self.read_receipts().get("unsupported", {}).items()):
            names = [card.text() for card in self.cards if card.uuid == uuid]
            self.unsupported.append("%s does not support: %s" % (" ".join(names) or uuid, ", ".join(what)))
        if self.unsupported and self.params["required"]:
            raise LimitsError("\n".join(self.unsupported))
        if drifted and not self.check:
            raise LimitsError("the cards are not as declared:\n" + "\n".join(drifted))

    def absent(self) -> None:
        """Stop the unit (which resets the cards) and remove what was set up."""
        name = self.params["unit"]
        if os.path.exists(self.unit_path):
            self.done.append("reset the cards and remove %s" % name)
            if not self.check:
                self.systemctl("disable", "--now", name)
        for path in (self.unit_path, self.script, self.config, self.receipts):
            if os.path.exists(path):
                self.done.append("remove " + path)
            if not self.check:
                # Also what the unit's own end has emptied.
                take_away(path)
        if self.done and not self.check:
            self.systemctl("daemon-reload")
        lines = boot_commands.taken(ROOT)
        if lines:
            self.done.append("give %d lines back to %s" % (len(lines), boot_commands.RC_LOCAL))
            if not self.check:
                boot_commands.give_back(ROOT)

    def words(self) -> List[str]:
        """Each card's limits in a few words: "card 0: 450 W, 0 to 2100 MHz"."""
        receipts = self.read_receipts().get("cards", {})
        found = []
        for card in self.cards:
            receipt = receipts.get(card.uuid, {})
            clocks, memory = receipt.get("clocks_mhz"), receipt.get("memory_clock_mhz")
            words = [] if card.limit is None else ["%g W" % card.limit]
            words.append("%d to %d MHz" % tuple(clocks) if clocks else "clocks free")
            words += ["memory at %d MHz" % memory] if memory else []
            found.append("card %d: %s" % (card.number, ", ".join(words)))
        return found

    def report(self) -> List[Dict[str, Any]]:
        """The cards as they are, with the clock range of their receipts."""
        receipts = self.read_receipts().get("cards", {})
        return [
            {
                "index": card.number,
                "uuid": card.uuid,
                "name": card.name,
                "persistence": card.persistence,
                "power_limit_w": card.limit,
                "clocks_mhz": receipts.get(card.uuid, {}).get("clocks_mhz"),
                "memory_clock_mhz": receipts.get(card.uuid, {}).get("memory_clock_mhz"),
            }
            for card in self.cards
        ]


#: What is in its parameters of mappings and lists.
SHAPES = {
    "cards": maybe(
        MapOf(
            maybe(
                Fields(
                    {},
                    {
                        "min_clock_mhz": maybe(WHOLE),
                        "max_clock_mhz": maybe(WHOLE),
                        "memory_clock_mhz": maybe(WHOLE),
                        "power_limit_w": maybe(NUMBER),
                    },
                    others=False,
                )
            )
        )
    )
}


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "state": {
                "type": "str",
                "choices": ["present", "absent", "verified", "trial"],
                "default": "present",
            },
            "persistence": {"type": "bool", "default": True},
            "min_clock_mhz": {"type": "int", "default": 0},
            "max_clock_mhz": {"type": "int"},
            "memory_clock_mhz": {"type": "int"},
            "power_limit_w": {"type": "float"},
            "cards": {"type": "dict", "default": {}},
            "required": {"type": "bool", "default": False},
            "config": {"type": "path", "required": True},
            "receipts": {"type": "path", "required": True},
            "script": {"type": "path", "required": True},
            "script_text": {"type": "str", "default": ""},
            "unit": {"type": "str", "required": True},
            "unit_text": {"type": "str", "default": ""},
        },
        supports_check_mode=True,
    )
    shapes.refuse(module, SHAPES)
    limits = Limits(module.params, module.check_mode)
    try:
        getattr(limits, module.params["state"])()
    except LimitsError as error:
        module.fail_json(msg=str(error), done=limits.done)
    module.exit_json(
        changed=bool(limits.done),
        said="; ".join(limits.words()),
        done=limits.done,
        cards=limits.report(),
        unsupported=limits.unsupported,
        told=limits.told,
        diff={"before": "", "after": "".join(line + "\n" for line in limits.done)},
    )


if __name__ == "__main__":
    main()
