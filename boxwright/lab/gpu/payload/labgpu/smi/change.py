"""Changes: persistence mode, clock locks, power limit. Messages and exit statuses as recorded."""

from __future__ import annotations

import os
from typing import Callable, Dict, List, Optional, Tuple

from .. import faults, files, paths, rig, state
from .driver import Failure

EARLY = "Terminating early due to previous errors."
REMINDER = (
    "Warning: persistence mode is disabled on device %s. See the Known Issues section of the nvidia-smi(1) "
    "man page for more information. Run with [--help | -h] switch to get more information on how to enable "
    "persistence mode."
)
#: The ends of the messages about values that are no clocks.
EXAMPLES = {
    "gpuClkMin": "'--lock-gpu-clocks=1500,1500', '--lock-gpu-clocks=1500', "
    "or '--lock-gpu-clocks=tdp,unlimited'",
    "memClkMin": "--lock-memory-clocks=5100,5100 or --lock-memory-clocks=5100",
}
WARNING = "Treating as warning and moving on."


def apply(cards: List[rig.Card], option: str, value: Optional[str], error_on_warning: bool) -> int:
    """Carry one change out on each card. Raises Failure at the first error."""
    changes: Dict[str, Callable[[rig.Card, str], Tuple[str, bool]]] = {
        "persistence": _persistence,
        "lock": _lock,
        "unlock": _unlock,
        "memory-lock": _memory_lock,
        "memory-unlock": _memory_unlock,
        "power": _power,
    }
    warned = False
    for card in cards:
        text, warning = changes[option](card, value or "")
        if text:
            print(text)
        warned = warned or warning
        if warning and error_on_warning:
            raise Failure(3, EARLY)
        if warning:
            print(WARNING)
        elif option != "persistence" and not _settings(card).get("persistence"):
            print(REMINDER % card.smi_bus_id)
    print("All done.")
    return 0


def _settings(card: rig.Card) -> Dict[str, object]:
    return dict(state.read()["cards"].get(card.uuid, {}))


def _permitted(card: rig.Card, refusal: str) -> None:
    if paths.ON_HOST and (os.geteuid() != 0 or not os.access(os.path.dirname(paths.STATE), os.W_OK)):
        raise Failure(4, refusal % card.smi_bus_id + "\n" + EARLY)


def _keep(card: rig.Card, name: str, value: object) -> None:
    """Remember a setting. A card that nobody holds open forgets it as soon as nvidia-smi ends."""
    with state.change() as now:
        settings = now["cards"].setdefault(card.uuid, {})
        held = settings.get("persistence") or now["load"].get(card.uuid, {}).get("memory")
        if name == "persistence" or held:
            settings[name] = value
        if name == "persistence" and not value:
            now["cards"][card.uuid] = {}


def _persistence(card: rig.Card, value: str) -> Tuple[str, bool]:
    if value.lower() not in ("0", "1", "disabled", "enabled"):
        raise Failure(
            2, 'Invalid persistence mode: %s. Valid values are "0/DISABLED" and "1/ENABLED".' % value
        )
    wanted = value.lower() in ("1", "enabled")
    word = "Enabled" if wanted else "Disabled"
    _permitted(card, "Unable to set persistence mode for GPU %s: Insufficient Permissions")
    if bool(_settings(card).get("persistence")) == wanted:
        return "Persistence mode is already %s for GPU %s." % (word, card.smi_bus_id), False
    _keep(card, "persistence", wanted)
    daemon = files.read(paths.PERSISTENCED_PID)
    via = " via daemon" if daemon and os.path.isdir("/proc/" + daemon.strip()) else ""
    return "%s persistence mode%s for GPU %s." % (word, via, card.smi_bus_id), False


def _range(value: str, least: str, most: str) -> Tuple[int, int]:
    parts = value.split(",")
    if not 1 <= len(parts) <= 2 or not all(part.strip().isdigit() for part in parts):
        raise Failure(
            2,
            "Specified clocks \"%s\" are not valid. Please format input as '%s,%s' or '%sVal' e.g. %s\n%s"
            % (value, least, most, least[:-3], EXAMPLES[least], EARLY),
        )
    return int(parts[0]), int(parts[-1])


def _lock(card: rig.Card, value: str) -> Tuple[str, bool]:
    symbolic = {"tdp": int(card.clock_graphics_max * 0.8), "unlimited": card.clock_graphics_max}
    words = [word.strip() for word in value.split(",")]
    if all(word in symbolic for word in words):
        low, high = symbolic[words[0]], symbolic[words[-1]]
    else:
        low, high = _range(value, "gpuClkMin", "gpuClkMax")
        words = [str(low), str(high)]
    named = '"(gpuClkMin %s, gpuClkMax %s)"' % (words[0], words[-1])
    if faults.active("clocks-unsupported"):
        return "Setting locked GPU clocks is not supported for GPU %s." % card.smi_bus_id, True
    _permitted(card, "The current user does not have permission to change clocks for GPU %s.")
    if low > high or high > card.clock_graphics_max or high < card.graphics_clocks()[-1]:
        raise Failure(
            2,
            "Specified clock combination %s is not supported for GPU %s. Run 'nvidia-smi -q -d "
            "SUPPORTED_CLOCKS' to see list of supported clock combinations\n%s"
            % (named, card.smi_bus_id, EARLY),
        )
    choices = card.graphics_clocks()
    # The driver takes the next clock that exists at or below the one asked for, and does not say so.
    snapped = [
        max((clock for clock in choices if clock <= bound), default=choices[-1]) for bound in (low, high)
    ]
    _keep(card, "clocks", [0 if low == 0 else snapped[0], snapped[1]])
    return "GPU clocks set to %s for GPU %s" % (named, card.smi_bus_id), False


def _unlock(card: rig.Card, _value: str) -> Tuple[str, bool]:
    if faults.active("clocks-unsupported"):
        return "Setting locked gpu clocks is not supported for GPU %s." % card.smi_bus_id, True
    _permitted(card, "The current user does not have permission to change clocks for GPU %s.")
    _keep(card, "clocks", None)
    return "", False


def _memory_lock(card: rig.Card, value: str) -> Tuple[str, bool]:
    low, high = _range(value, "memClkMin", "memClkMax")
    _permitted(card, "The current user does not have permission to change clocks for GPU %s.")
    # Accepted and not honored, as recorded on Blackwell consumer cards.
    _keep(card, "memory_clocks", [low, high])
    return 'Memory clocks set to "(memClkMin %d, memClkMax %d)" for GPU %s' % (
        low,
        high,
        card.smi_bus_id,
    ), False


def _memory_unlock(card: rig.Card, _value: str) -> Tuple[str, bool]:
    _permitted(card, "The current user does not have permission to change clocks for GPU %s.")
    _keep(card, "memory_clocks", None)
    return "", False


def _power(card: rig.Card, value: str) -> Tuple[str, bool]:
    try:
        watts = float(value)
    except ValueError:
        raise Failure(2, "Option -pl contains an invalid power limit: %s" % value) from None
    if faults.active("power-unsupported"):
        return "Changing power management limit is not supported for GPU: %s." % card.smi_bus_id, True
    _permitted(card, "Failed to set power management limit for GPU %s: Insufficient Permissions")
    if not card.power_min <= watts <= card.power_max:
        raise Failure(
            2,
            "Provided power limit %.2f W is not a valid power limit which should be between %.2f W and "
            "%.2f W for GPU %s\n%s" % (watts, card.power_min, card.power_max, card.smi_bus_id, EARLY),
        )
    before = float(str(_settings(card).get("power_limit") or card.power_default))
    _keep(card, "power_limit", watts)
    return "Power limit for GPU %s was set to %.2f W from %.2f W." % (card.smi_bus_id, watts, before), False
