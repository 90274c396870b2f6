"""What nvidia-smi prints, in all its releases' ways of saying it.

Rules taken from recordings (utkuozdemir/nvidia_gpu_exporter internal/captures, drivers 550 to 610): an absent
value is spelled in many ways and is None here; a row counts only with the right number of cells and a whole
number as its index; both streams and the exit status together tell a failure, for some come with status 0.
"""

from __future__ import annotations

import re
from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

#: Fields of one card. The first are in every release since 535; a card or release without one of the others
#: says so.
CARD_FIELDS = (
    "index",
    "uuid",
    "name",
    "driver_version",
    "pci.bus_id",
    "memory.total",
    "memory.reserved",
    "memory.used",
    "compute_cap",
    "persistence_mode",
    "power.limit",
    "power.default_limit",
    "power.min_limit",
    "power.max_limit",
    "clocks.current.graphics",
    "clocks.max.graphics",
    "clocks.current.memory",
    "clocks.max.memory",
    "pcie.link.gen.current",
    "pcie.link.gen.max",
    "pcie.link.width.current",
    "pcie.link.width.max",
    "mig.mode.current",
)

_ANSI = re.compile(r"\x1b\[[0-9;]*m")
#: Longer than any number that nvidia-smi prints are no numbers.
_NUMBER = re.compile(r"[-+]?\d{1,15}(?:\.\d{1,15})?(?!\d)")
_BAD_FIELD = re.compile(r'Field "(?P<field>[^"]*)" is not a valid field to query')
_LIBRARY = re.compile(r"NVML library version:\s*(?P<version>[\d.]+)")
_LOST = re.compile(
    r"Unable to determine the device handle for (?:GPU\s*(?P<index>\d+)\s*:\s*)?(?:GPU\s*)?"
    r"(?P<bus>[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f])",
    re.I,
)

#: How a call went. ok, not-installed, no-driver, library-missing, mismatch, no-devices, permission,
#: bad-field, lost (some cards answer and some do not), hung, failed.
_SIGNS = (
    ("mismatch", re.compile(r"Driver/library version mismatch", re.I)),
    ("no-driver", re.compile(r"couldn't communicate with the NVIDIA driver", re.I)),
    ("library-missing", re.compile(r"couldn't find libnvidia-ml", re.I)),
    (
        "permission",
        re.compile(
            r"Insufficient Permissions|does not have permission|"
            r"/dev/nvidia\* files are readable",
            re.I,
        ),
    ),
    ("no-devices", re.compile(r"^\s*No devices were found", re.I | re.M)),
    ("bad-field", _BAD_FIELD),
    ("lost", re.compile(r"Unable to determine the device handle|GPU is lost", re.I)),
)
#: Exit statuses by nvidia-smi(1), for texts that no sign matches.
_STATUSES = {
    4: "permission",
    6: "no-devices",
    9: "no-driver",
    12: "library-missing",
    15: "lost",
    18: "mismatch",
    124: "hung",
    127: "not-installed",
}


class Query(NamedTuple):
    """Cards that answered. rows: field -> value or None. lost: bus addresses of cards that did not answer."""

    rows: List[Dict[str, Optional[str]]]
    lost: List[str]
    notes: List[str]


def outcome(rc: int, stdout: str, stderr: str) -> str:
    """How a call of nvidia-smi went, from its exit status and both streams (see `_SIGNS`)."""
    if rc == 127 and not stdout.strip():
        return "not-installed"
    text = stdout + "\n" + stderr
    for name, sign in _SIGNS:
        if name == "permission" and rc == 0:
            continue  # a cell of a good answer may say [Insufficient Permissions]
        if sign.search(text):
            return name
    return "ok" if rc == 0 else _STATUSES.get(rc, "failed")


def bad_field(stdout: str, stderr: str) -> Optional[str]:
    """The field that made a whole query fail, or None."""
    found = _BAD_FIELD.search(stdout + "\n" + stderr)
    return found.group("field") if found else None


def library_version(text: str) -> Optional[str]:
    """The libraries' version that a mismatch message names (`570.195`: two parts of the version)."""
    found = _LIBRARY.search(text)
    return found.group("version").rstrip(".") if found else None


def value(cell: str) -> Optional[str]:
    """A cell's text, or None for every spelling of "there is none": `[N/A]`, `N/A`, `[Unknown Error]`, …"""
    cell = cell.strip()
    if not cell or cell.upper() in ("N/A", "NA", "NONE", "UNKNOWN", "UNKNOWN ERROR", "ERR!", "NOT SUPPORTED"):
        return None
    if cell.startswith("[") and cell.endswith("]"):
        return None
    return cell


def number(cell: Optional[str]) -> Optional[float]:
    """The number that a cell begins with (`350.00 W`, `32607 MiB`, `45`), or None."""
    text = value(cell) if cell is not None else None
    found = _NUMBER.match(text) if text is not None else None
    return float(found.group(0)) if found else None


def whole(cell: Optional[str]) -> Optional[int]:
    """The same as a whole number."""
    found = number(cell)
    return int(found) if found is not None else None


def enabled(cell: Optional[str]) -> Optional[bool]:
    """`Enabled` or `Disabled`, else None."""
    text = (value(cell) or "").lower() if cell is not None else ""
    return {"enabled": True, "active": True, "disabled": False, "not active": False}.get(text)


def bus_address(text: str) -> str:
    """A PCI address as the kernel writes it: `00000000:01:00.0` and `0000:01:00.0` are `0000:01:00.0`."""
    domain, _, rest = text.strip().lower().partition(":")
    if not rest or not re.fullmatch(r"[0-9a-f]+", domain):
        return text.strip().lower()
    return "%04x:%s" % (int(domain, 16), rest)


def query(stdout: str, stderr: str, fields: Sequence[str]) -> Query:
    """The cards of `--query-gpu=fields --format=csv,noheader` (also with a header, also without units).

    Lines that are no row of a card (warnings, headers, rows of another length) go to notes. A name with
    commas is put together again, since every other field has none.
    """
    rows: List[Dict[str, Optional[str]]] = []
    notes: List[str] = []
    lost: List[str] = []
    at = list(fields).index("index") if "index" in fields else -1
    for line in (stdout + "\n" + stderr).splitlines():
        line = _ANSI.sub("", line).strip("\ufeff \t\r")
        if not line:
            continue
        gone = _LOST.search(line)
        if gone:
            lost.append(bus_address(gone.group("bus")))
            continue
        cells = _join_name([cell.strip() for cell in line.split(",")], fields)
        if len(cells) != len(fields) or (at >= 0 and not re.fullmatch(r"[0-9]{1,4}", cells[at])):
            notes.append(line)
            continue
        rows.append({field: value(cell) for field, cell in zip(fields, cells)})  # noqa: B905
    return Query(rows, lost, notes)


def _join_name(cells: List[str], fields: Sequence[str]) -> List[str]:
    extra = len(cells) - len(fields)
    if extra <= 0 or "name" not in fields:
        return cells
    at = list(fields).index("name")
    return [*cells[:at], ", ".join(cells[at : at + extra + 1]), *cells[at + extra + 1 :]]


def topology(text: str) -> Dict[int, Tuple[str, ...]]:
    """`topo -m`: card index -> its link words to every card in column order (`X` for itself)."""
    lines = [_ANSI.sub("", line) for line in text.splitlines()]
    columns: List[int] = []
    found: Dict[int, Tuple[str, ...]] = {}
    for line in lines:
        cells = [cell.strip() for cell in line.split("\t")]
        if not columns:
            names = [re.fullmatch(r"GPU(\d{1,4})", cell) for cell in cells]
            columns = [int(name.group(1)) for name in names if name] if sum(map(bool, names)) else []
            continue
        row = re.fullmatch(r"GPU(\d{1,4})", cells[0])
        if row and len(cells) > len(columns):
            found[int(row.group(1))] = tuple(cells[1 : 1 + len(columns)])
    return found


def cuda_version(text: str) -> Optional[str]:
    """The CUDA version of `--version` or of the header of a plain call, in the words of all releases."""
    found = re.search(r"CUDA (?:UMD )?version\s*:\s*(\d+\.\d+)", text, re.I)
    return found.group(1) if found else None


def version(text: str) -> Tuple[int, ...]:
    """A driver version by its parts, for comparing: `570.195.03` -> (570, 195, 3). Empty when it is none."""
    found = re.match(r"(?:\d+:)?(\d{1,9}(?:\.\d{1,9})*)", text.strip())
    return tuple(int(part) for part in found.group(1).split(".")) if found else ()


def same_version(one: str, other: str) -> bool:
    """Whether two spellings are one version: messages give `570.195` for `570.195.03`."""
    left, right = version(one), version(other)
    shared = min(len(left), len(right))
    return shared > 0 and left[:shared] == right[:shared]
