"""Whether NVIDIA cards answer, and in words why they do not."""

from __future__ import annotations

from typing import Dict, List, NamedTuple, Optional, Sequence

from ansible.module_utils import nvidia_smi
from ansible.module_utils.command import Result, read, run

#: Seconds for one question. A card that is wedged keeps nvidia-smi waiting for ever.
TIMEOUT_S = 60
KERNEL_LOG = "journalctl -k -b -g NVRM"
#: Outcomes (see nvidia_smi.outcome) with what to do about them.
WHY = {
    "not-installed": "nvidia-smi is not installed",
    "no-driver": "the driver does not answer (lsmod and %s tell whether its module is loaded)" % KERNEL_LOG,
    "library-missing": "the driver's library libnvidia-ml is missing",
    "no-devices": (
        "the driver is loaded but finds no card that it can initialize. A card that is listed by lspci and "
        'not here needs "Above 4G Decoding" and "Resizable BAR" in the firmware setup (the kernel log then '
        "says RmInitAdapter failed), or is bound to another driver"
    ),
    "lost": (
        "a card has fallen off the bus: look for Xid 79 in the kernel log (%s), at its power and its slot; "
        "a reboot shows whether it comes back" % KERNEL_LOG
    ),
    "hung": (
        "nvidia-smi gave no answer within %d s: a card or its driver hangs. Look for Xid lines in the kernel "
        "log (%s); a wedged card often needs the host to be switched off and on" % (TIMEOUT_S, KERNEL_LOG)
    ),
    "permission": "nvidia-smi may not read the devices /dev/nvidia*",
}


class Answer(NamedTuple):
    """What the cards answered. rows: field -> value; lost: bus addresses of cards that are silent.

    outcome: a word of nvidia_smi.outcome; why: for a person, "" when all is well.
    """

    outcome: str
    rows: List[Dict[str, Optional[str]]]
    lost: List[str]
    why: str


def ask(fields: Sequence[str], root: str = "") -> Answer:
    """Ask every card for `fields`, in bounded time. root: where /sys is looked for."""
    done = run(["nvidia-smi", "--query-gpu=" + ",".join(fields), "--format=csv,noheader"], timeout=TIMEOUT_S)
    outcome = nvidia_smi.outcome(done.rc, done.stdout, done.stderr)
    found = nvidia_smi.query(done.stdout, done.stderr, fields)
    return Answer(outcome, found.rows, found.lost, "" if outcome == "ok" else why(outcome, done, root))


def why(outcome: str, done: Result, root: str = "") -> str:
    """Why the cards do not answer, and what to do."""
    if outcome == "mismatch":
        return versions(done.text, root)
    if outcome in WHY:
        return WHY[outcome]
    said = " ".join(done.text.split()) or "nothing"
    return "nvidia-smi ended with status %d and said: %s (%s may tell more)" % (done.rc, said, KERNEL_LOG)


def versions(text: str, root: str = "") -> str:
    """Of a mismatch: which version is loaded, and which the libraries are. text: nvidia-smi's own."""
    return "module %s is loaded, the libraries are %s" % (
        (read("%s/sys/module/nvidia/version" % root) or "of unknown version").strip(),
        nvidia_smi.library_version(text) or "of another version",
    )
