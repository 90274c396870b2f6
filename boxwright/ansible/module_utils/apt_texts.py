"""The texts of apt's files: deb822 sources, pins, other definitions of one address, automatic upgrades."""

from __future__ import annotations

import glob
import re
from typing import Any, Dict, List, Optional
from urllib.parse import urlsplit

from ansible.module_utils.packages import matches

HEADER = "# Kept by Boxwright; edits are overwritten.\n"
_DISABLED = "# Disabled by Boxwright: "

#: Until when SHA-1 self-signatures of keys are taken where a source needs them.
SHA1_UNTIL = "2030-02-01"
_SHA1 = re.compile(r"^sha1\.second_preimage_resistance\s*=.*$", re.MULTILINE)


def source_text(params: Dict[str, Any], keyring: str) -> str:
    """The deb822 file. The key's address stands in it, so that a changed address is seen."""
    lines = [
        HEADER + "# Key: %s" % params["key_url"],
        "Types: deb",
        "URIs: " + " ".join(params["uris"]),
        "Suites: " + " ".join(params["suites"]),
    ]
    if params["components"]:
        lines.append("Components: " + " ".join(params["components"]))
    if params["architectures"]:
        lines.append("Architectures: " + " ".join(params["architectures"]))
    return "\n".join([*lines, "Signed-By: " + keyring]) + "\n"


def pins_text(pins: List[Dict[str, Any]]) -> Optional[str]:
    """The preferences file, or None where nothing is pinned."""
    if not pins:
        return None
    record = "Package: %s\nPin: %s\nPin-Priority: %d\n"
    return HEADER + "".join("\n" + record % (" ".join(p["packages"]), p["pin"], p["priority"]) for p in pins)


def preferred_text(packages: List[str], uri: str) -> Optional[str]:
    """The preferences file that takes `packages` (globs) from the host of `uri` before any other."""
    if not packages:
        return None
    origin = 'origin "%s"' % (urlsplit(uri).hostname or "")
    return pins_text([{"packages": packages, "pin": origin, "priority": 990}])


def sha1_policy(text: str) -> Optional[str]:
    """apt's Sequoia policy `text` with SHA-1 bound keys allowed; None where it says nothing of SHA-1."""
    line = "sha1.second_preimage_resistance = %s    # set by Boxwright" % SHA1_UNTIL
    return _SHA1.sub(line, text) if _SHA1.search(text) else None


def list_pattern(root: str, uri: str) -> str:
    """Glob for the lists that apt has read of `uri` (as apt's URItoFileName)."""
    name = _normal(uri).split("://", 1)[-1].split("@")[-1].replace("_", "%5f").replace("/", "_")
    return "%s/var/lib/apt/lists/%s_*Release" % (root, glob.escape(name))


def _normal(uri: str) -> str:
    return uri.rstrip("/")


def without(text: str, deb822: bool, uris: List[str]) -> str:
    """A sources file with the definitions of `uris` switched off; the same text where it has none.

    apt refuses to work at all where two definitions of one address name different keys.
    """
    unwanted = {_normal(uri) for uri in uris}
    if deb822:
        return "\n\n".join(_stanza_without(part, unwanted) for part in text.split("\n\n"))
    return "\n".join(
        _DISABLED + line if _one_line_uri(line) in unwanted else line for line in text.split("\n")
    )


def _one_line_uri(line: str) -> Optional[str]:
    found = re.match(r"\s*deb(?:-src)?\s+(?:\[[^\]]*\]\s+)?(\S+)", line)
    return _normal(found.group(1)) if found else None


def _stanza_without(stanza: str, unwanted: "set[str]") -> str:
    field = re.search(r"^URIs:(?P<value>.*(?:\n[ \t]+.*)*)", stanza, re.MULTILINE | re.IGNORECASE)
    if field is None or re.search(r"^Enabled:\s*no\b", stanza, re.MULTILINE | re.IGNORECASE):
        return stanza
    uris = field.group("value").split()
    kept = [uri for uri in uris if _normal(uri) not in unwanted]
    if kept == uris:
        return stanza
    if kept:
        return stanza[: field.start()] + "URIs: " + " ".join(kept) + stanza[field.end() :]
    off = _DISABLED.strip() + "\nEnabled: no"
    # apt heeds the last of two.
    enabled = re.search(r"^Enabled:.*(?:\n[ \t]+.*)*", stanza, re.MULTILINE | re.IGNORECASE)
    if enabled:
        return stanza[: enabled.start()] + off + stanza[enabled.end() :]
    return stanza[: field.start()] + off + "\n" + stanza[field.start() :]


def blacklist_text(names: List[str], globs: List[str]) -> str:
    """apt's configuration; unattended-upgrades takes Python regular expressions matched from the start."""
    patterns = ["^%s$" % _escaped(name) for name in names if not matches(name, globs)]
    patterns += [
        "^%s$" % _escaped(glob).replace("\\*", ".*").replace("\\?", ".")
        for glob in globs
        if not glob.startswith("!")
    ]
    quoted = "".join('    "%s";\n' % pattern.replace("\\", "\\\\") for pattern in dict.fromkeys(patterns))
    return (
        "// Kept by Boxwright; edits are overwritten.\n"
        "// These packages change when the inventory says so, not at night.\n"
        "Unattended-Upgrade::Package-Blacklist {\n%s};\n" % quoted
    )


def _escaped(name: str) -> str:
    return re.escape(name).replace("\\-", "-")
