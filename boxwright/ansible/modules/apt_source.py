"""Make a signed third-party package source true on a Debian or Ubuntu host."""

from __future__ import annotations

import contextlib
import glob
import os
import shutil
import tempfile
from typing import Any, Dict, List, Optional, Tuple

from ansible.module_utils.apt import LockTimeout, environment, reasons, wait_for_locks
from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.command import Result, read, run, write
from ansible.module_utils.openpgp import KeyringError, dearmor, fingerprints, normal
from ansible.module_utils.web import Reader, WebError

DOCUMENTATION = r"""
module: apt_source
short_description: A signed third-party apt source, with its key and its pins, in one call
description:
  - Keeps the keyring (C(/etc/apt/keyrings/NAME.gpg)), the source (C(/etc/apt/sources.list.d/NAME.sources),
    deb822 with Signed-By) and the pins (C(/etc/apt/preferences.d/NAME.pref)), then reads the source's lists.
  - When apt cannot use the new source, everything is put back as it was and apt's reason is the error.
  - In check mode the key and the lists are fetched into a temporary directory, so that a wrong address shows.
options:
  name: {description: "Stem of the files' names.", type: str, required: true}
  state: {description: "Whether it is there.", type: str, choices: [present, absent], default: present}
  uris: {description: "Addresses of the repository.", type: list, elements: str, default: []}
  suites: {description: "Suites; C(/) for a flat repository.", type: list, elements: str, default: ["/"]}
  components: {description: "Components; none for a flat repository.", type: list, elements: str, default: []}
  architectures: {description: "Architectures; none for the host's.", type: list, elements: str, default: []}
  key_url: {description: "Where the public key is, binary or armored.", type: str}
  fingerprints:
    description: "Every primary key of the keyring must be one of these; none accepts what key_url gives."
    type: list
    elements: str
    default: []
  pins:
    description: "Pins as in apt_preferences."
    type: list
    elements: dict
    default: []
    suboptions:
      packages: {description: "Names or globs.", type: list, elements: str, required: true}
      pin: {description: "What is pinned, such as C(version 580.*).", type: str, required: true}
      priority: {description: "Over 1000 also downgrades, below 0 forbids.", type: int, required: true}
  proxy: {description: "Proxy for the key and the lists; otherwise the environment's.", type: str}
  lock_timeout_s: {description: "How long to wait for another apt, in seconds.", type: int, default: 300}
  timeout_s: {description: "How long fetching the lists may take, in seconds.", type: int, default: 180}
"""

#: Prefix of every path; tests point it at a directory of theirs.
ROOT = ""
#: Largest keyring that is taken, in bytes; the vendors' are a few KiB.
KEY_LIMIT = 4 << 20
HINTS = {
    "dns": " (the host's /etc/resolv.conf, or a proxy that has to be set)",
    "tls": " (a private CA belongs into /usr/local/share/ca-certificates; a wrong clock has the same effect)",
    "not-found": " (wrong address, or a distribution that the vendor does not serve)",
}
HEADER = "# Kept by Boxwright; edits are overwritten.\n"


class SourceError(Exception):
    """The source cannot be made true; the text says why. Nothing was left changed."""


def paths(name: str) -> Dict[str, str]:
    """Where the parts of the source lie."""
    return {
        "keyring": "%s/etc/apt/keyrings/%s.gpg" % (ROOT, name),
        "source": "%s/etc/apt/sources.list.d/%s.sources" % (ROOT, name),
        "pins": "%s/etc/apt/preferences.d/%s.pref" % (ROOT, name),
    }


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
    records = [
        "Package: %s\nPin: %s\nPin-Priority: %d\n" % (" ".join(pin["packages"]), pin["pin"], pin["priority"])
        for pin in pins
    ]
    return HEADER + "\n" + "\n".join(records)


def list_pattern(uri: str) -> str:
    """Glob for the package lists that apt keeps of `uri` (apt's URItoFileName)."""
    name = uri.split("://", 1)[-1].split("@")[-1].rstrip("/").replace("_", "%5f").replace("/", "_")
    return "%s/var/lib/apt/lists/%s_*Release" % (ROOT, glob.escape(name))


def lists_are_there(uris: List[str]) -> bool:
    """Whether apt has read the source at least once."""
    return all(glob.glob(list_pattern(uri)) for uri in uris)


def read_bytes(path: str) -> Optional[bytes]:
    """A file's bytes, or None where there is none."""
    try:
        with open(path, "rb") as stream:
            return stream.read()
    except (FileNotFoundError, NotADirectoryError):
        return None


def checked_keyring(data: bytes, wanted: List[str], where: str) -> bytes:
    """The binary keyring, every primary key of it among the wanted ones. Raises SourceError."""
    try:
        keyring: bytes = dearmor(data)
        found = fingerprints(keyring)
    except KeyringError as error:
        raise SourceError("%s is no usable signing key: %s" % (where, error)) from None
    allowed = {normal(one) for one in wanted}
    strange = [one for one in found if allowed and one not in allowed]
    if strange:
        raise SourceError(
            "the key at %s is not the expected one: it has fingerprint %s, expected %s. "
            "If the vendor changed its key, take the new fingerprint from the vendor's documentation"
            % (where, ", ".join(strange), " or ".join(sorted(allowed)))
        )
    return keyring


def wanted_keyring(params: Dict[str, Any], path: str, source: Optional[str]) -> bytes:
    """The keyring that is there, if it is the declared one; otherwise the one fetched from its address."""
    present = read_bytes(path)
    if present is not None and source is not None and ("# Key: %s\n" % params["key_url"]) in source:
        try:
            return checked_keyring(present, params["fingerprints"], path)
        except SourceError:
            pass  # Damaged, or another fingerprint is declared now: the address has the last word.
    try:
        answer = Reader(timeout=30, deadline=60, proxy=params["proxy"] or "").get(
            params["key_url"], limit=KEY_LIMIT
        )
    except WebError as error:
        raise SourceError(
            "the signing key %s cannot be fetched: %s%s"
            % (params["key_url"], error, HINTS.get(error.kind, ""))
        ) from None
    return checked_keyring(answer.body, params["fingerprints"], params["key_url"])


def update(source: str, params: Dict[str, Any], lists: Optional[str] = None) -> Result:
    """Let apt read this one source (and no other); `lists`: a directory to keep its lists in, for a trial."""
    argv = [
        "apt-get",
        "-q",
        "update",
        "-o",
        "Dir::Etc::sourcelist=" + source,
        "-o",
        "Dir::Etc::sourceparts=/dev/null",
        "-o",
        "APT::Get::List-Cleanup=0",
        "-o",
        "APT::Update::Error-Mode=any",
        "-o",
        "Acquire::Retries=2",
        "-o",
        "APT::Color=0",
    ]
    if lists:
        argv += [
            "-o",
            "Dir::State::lists=" + lists,
            "-o",
            "Dir::Cache::pkgcache=",
            "-o",
            "Dir::Cache::srcpkgcache=",
        ]
    return run(argv, timeout=params["timeout_s"], env=environment(params["proxy"]))


def failed(done: Result) -> bool:
    """apt-get update ends with 0 after "Failed to fetch" where its Error-Mode is unknown to it."""
    text = done.text
    return done.rc != 0 or "Failed to fetch" in text or "\nErr:" in "\n" + text


def difference(
    name: str, before: Dict[str, Optional[bytes]], after: Dict[str, Optional[bytes]]
) -> List[Dict[str, str]]:
    """Ansible's diff of the parts that change; the keyring as its fingerprints."""

    def shown(part: str, data: Optional[bytes]) -> str:
        if data is None:
            return ""
        if part != "keyring":
            return data.decode("utf-8", "replace")
        try:
            return "\n".join(fingerprints(dearmor(data))) + "\n"
        except KeyringError as error:
            return "unusable: %s\n" % error

    return [
        {
            "before_header": paths(name)[part],
            "after_header": paths(name)[part],
            "before": shown(part, before[part]),
            "after": shown(part, after[part]),
        }
        for part in before
        if before[part] != after[part]
    ]


def put(path: str, data: Optional[bytes]) -> None:
    """Make the file hold these bytes, or be gone."""
    if data is None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        return
    directory = os.path.dirname(path)
    os.makedirs(directory, mode=0o755, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=directory, prefix=".boxwright-")
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())
    # apt reads keyrings as the user _apt.
    os.chmod(temporary, 0o644)
    os.replace(temporary, path)


def desired(params: Dict[str, Any], files: Dict[str, str]) -> Dict[str, Optional[bytes]]:
    """What each part should hold."""
    if params["state"] == "absent":
        return dict.fromkeys(files)
    keyring = wanted_keyring(params, files["keyring"], read(files["source"]))
    pins = pins_text(params["pins"])
    return {
        "keyring": keyring,
        "source": source_text(params, files["keyring"][len(ROOT) :]).encode(),
        "pins": None if pins is None else pins.encode(),
    }


def try_out(params: Dict[str, Any], after: Dict[str, Optional[bytes]]) -> None:
    """Fetch the lists of the source into a temporary directory. Raises SourceError."""
    place = tempfile.mkdtemp(prefix="boxwright-apt-")
    try:
        os.chmod(place, 0o755)  # for the user _apt
        os.makedirs(place + "/lists/partial")
        put(place + "/key.gpg", after["keyring"])
        write(place + "/try.sources", source_text(params, place + "/key.gpg"))
        done = update(place + "/try.sources", params, place + "/lists")
    finally:
        shutil.rmtree(place, ignore_errors=True)
    if failed(done):
        raise SourceError("apt cannot use %s:\n%s" % (" ".join(params["uris"]), reasons(done)))


def all_sources_parse() -> Result:
    """Whether apt accepts all sources together: two keys for one address stop every apt call."""
    return run(["apt-get", "indextargets", "--format", "$(SITE)"], timeout=60)


def apply(
    params: Dict[str, Any],
    files: Dict[str, str],
    before: Dict[str, Optional[bytes]],
    after: Dict[str, Optional[bytes]],
) -> Tuple[bool, Optional[str]]:
    """Write, let apt read it, put everything back if it cannot.

    Whether lists were read, and who was waited for. Raises SourceError.
    """
    reread = after["source"] is not None and (
        before["source"] != after["source"]
        or before["keyring"] != after["keyring"]
        or not lists_are_there(params["uris"])
    )
    try:
        waited_for = wait_for_locks(params["lock_timeout_s"]) if reread else None
    except LockTimeout as error:
        raise SourceError("the package lists cannot be read now: %s" % error) from None
    try:
        for part, path in files.items():
            if before[part] != after[part]:
                put(path, after[part])
        if reread:
            done = update(files["source"], params)
            if not failed(done):
                done = all_sources_parse()
            if failed(done):
                raise SourceError(
                    "apt cannot use %s, the sources are as they were:\n%s"
                    % (" ".join(params["uris"]), reasons(done))
                )
    except BaseException:
        for part, path in files.items():
            put(path, before[part])
        raise
    return reread, waited_for


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "name": {"type": "str", "required": True},
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "uris": {"type": "list", "elements": "str", "default": []},
            "suites": {"type": "list", "elements": "str", "default": ["/"]},
            "components": {"type": "list", "elements": "str", "default": []},
            "architectures": {"type": "list", "elements": "str", "default": []},
            "key_url": {"type": "str", "no_log": False},
            "fingerprints": {"type": "list", "elements": "str", "default": []},
            "pins": {
                "type": "list",
                "elements": "dict",
                "default": [],
                "options": {
                    "packages": {"type": "list", "elements": "str", "required": True},
                    "pin": {"type": "str", "required": True},
                    "priority": {"type": "int", "required": True},
                },
            },
            "proxy": {"type": "str"},
            "lock_timeout_s": {"type": "int", "default": 300},
            "timeout_s": {"type": "int", "default": 180},
        },
        required_if=[("state", "present", ("uris", "key_url"))],
        supports_check_mode=True,
    )
    params, files = module.params, paths(module.params["name"])
    before = {part: read_bytes(path) for part, path in files.items()}
    try:
        after = desired(params, files)
        reread, waited_for = False, None
        if not module.check_mode:
            reread, waited_for = apply(params, files, before, after)
        elif before["source"] != after["source"] and params["state"] == "present":
            try_out(params, after)
    except SourceError as error:
        module.fail_json(msg=str(error))
    module.exit_json(
        changed=before != after,
        lists_read=reread,
        waited_for=waited_for,
        diff=difference(params["name"], before, after),
    )


if __name__ == "__main__":
    main()
