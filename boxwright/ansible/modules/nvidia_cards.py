"""Ask the NVIDIA cards of a host whether they answer, and with which driver."""

from __future__ import annotations

from ansible.module_utils import card_answer
from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = r"""
module: nvidia_cards
short_description: Whether the NVIDIA cards answer, and with which driver
description:
  - Asks nvidia-smi, for at most a minute, and changes nothing.
options: {}
"""
RETURN = r"""
outcome: {type: str, description: "ok, or why not in one word (mismatch, no-devices, lost, hung, …)."}
why: {type: str, description: "The same for a person, with what to do; empty when all is well."}
cards: {type: list, description: "The cards that answered: index, uuid, driver_version."}
lost: {type: list, description: "Bus addresses of cards that did not."}
"""

#: Prefix of every path; tests point it at a directory of theirs.
ROOT = ""


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec={}, supports_check_mode=True)
    answer = card_answer.ask(["index", "uuid", "driver_version"], ROOT)
    module.exit_json(
        changed=False, outcome=answer.outcome, why=answer.why, cards=answer.rows, lost=answer.lost
    )


if __name__ == "__main__":
    main()
