"""A third-party source of apt's: its files as they are and should be, tried before they stay."""

from __future__ import annotations

import contextlib
import glob
import os
import shutil
import tempfile
from typing import Any, Dict, List, Optional, Tuple

from ansible.module_utils import signing_key
from ansible.module_utils.apt import LOCKS, environment, reasons, way
from ansible.module_utils.apt_texts import list_pattern, preferred_text, sha1_policy, source_text, without
from ansible.module_utils.command import Result, run
from ansible.module_utils.file_set import Files, read_bytes, write_all
from ansible.module_utils.package_locks import LockTimeout, wait_for_locks
from ansible.module_utils.signing_key import SourceError

#: Where Debian and Ubuntu have certificates of one's own.
AUTHORITIES = "/usr/local/share/ca-certificates"
SHA1_HINT = (
    "\nThe repository's key is bound by SHA-1, which this release of apt no longer trusts: use a repository "
    "with a newer key, or allow SHA-1 for it"
)


class AptSource:
    """One source on this host: what its files hold and what they should hold, by path."""

    def __init__(self, params: Dict[str, Any], root: str) -> None:
        self.params, self.root, name = params, root, params["name"]
        self.keyring = "%s/etc/apt/keyrings/%s.gpg" % (root, name)
        self.source = "%s/etc/apt/sources.list.d/%s.sources" % (root, name)
        self.pins = "%s/etc/apt/preferences.d/%s.pref" % (root, name)
        self.policy = "%s/etc/crypto-policies/back-ends/apt-sequoia.config" % root
        self.policy_default = "%s/usr/share/apt/default-sequoia.config" % root
        self.backups = "%s/var/lib/boxwright/sources/%s" % (root, name)
        self.policy_backup = self.backups + ".sequoia"

    def desired(self) -> Files:
        """What each file should hold; None for no file. Raises SourceError."""
        if self.params["state"] == "absent":
            return {self.keyring: None, self.source: None, self.pins: None, **self.restored(), **self.sha1()}
        pins = preferred_text(self.params["preferred"], self.params["uris"][0])
        return {
            self.keyring: self.wanted_keyring(),
            self.source: source_text(self.params, self.keyring[len(self.root) :]).encode(),
            self.pins: None if pins is None else pins.encode(),
            **self.sha1(),
            **self.others(),
        }

    def wanted_keyring(self) -> bytes:
        """The keyring that is there, if it is the declared one; else the one at its address."""
        params = self.params
        present, source = read_bytes(self.keyring), read_bytes(self.source) or b""
        if present is not None and ("# Key: %s\n" % params["key_url"]).encode() in source:
            with contextlib.suppress(SourceError):
                kept: bytes = signing_key.checked(present, params["fingerprints"], self.keyring)
                return kept
        url, proxy, wanted = params["key_url"], params["proxy"], params["fingerprints"]
        keyring: bytes = signing_key.fetched(url, proxy, wanted, AUTHORITIES)
        return keyring

    def sha1(self) -> Files:
        """apt's policy with SHA-1 allowed and a backup of it; undone where it is asked for no more."""
        backup = read_bytes(self.policy_backup)
        if not self.params["allow_sha1"] or self.params["state"] == "absent":
            return {} if backup is None else {self.policy: backup or None, self.policy_backup: None}
        text = read_bytes(self.policy) or read_bytes(self.policy_default)
        policy = sha1_policy(text.decode()) if text else None
        if policy is None:  # this apt has no such policy
            return {}
        # An empty backup stands for no file.
        before = backup if backup is not None else read_bytes(self.policy) or b""
        return {self.policy: policy.encode(), self.policy_backup: before}

    def others(self) -> Files:
        """Files of others that define the same address, with that switched off, and backups of them."""
        files: Files = {}
        directory = "%s/etc/apt/sources.list.d" % self.root
        for path in ["%s/etc/apt/sources.list" % self.root, *sorted(glob.glob(directory + "/*"))]:
            data = read_bytes(path) if path.endswith((".list", ".sources")) and path != self.source else None
            if data is None:
                continue
            changed = without(data.decode("utf-8", "replace"), path.endswith(".sources"), self.params["uris"])
            if changed.encode() != data:
                files[path] = changed.encode()
                files[self.backups + "/" + os.path.basename(path)] = data
        return files

    def restored(self) -> Files:
        """The files of others as they were, unless somebody has edited them since; their backups go."""
        files: Files = {}
        uris = self.own_uris()
        for backup in sorted(glob.glob(glob.escape(self.backups) + "/*")):
            name, data = os.path.basename(backup), read_bytes(backup) or b""
            place = "%s/etc/apt/%s%s" % (self.root, "" if name == "sources.list" else "sources.list.d/", name)
            switched_off = without(data.decode("utf-8", "replace"), name.endswith(".sources"), uris).encode()
            files[backup] = None
            if read_bytes(place) == switched_off:
                files[place] = data
        return files

    def own_uris(self) -> List[str]:
        """The addresses of our own file, as it is."""
        lines = (read_bytes(self.source) or b"").decode().splitlines()
        return [word for line in lines if line.startswith("URIs:") for word in line.split()[1:]]

    def lists_are_there(self) -> bool:
        """Whether apt has read the source at least once."""
        return all(glob.glob(list_pattern(self.root, uri)) for uri in self.params["uris"])

    def apply(self, before: Files, after: Files) -> Tuple[bool, Optional[str]]:
        """Write, let apt read it, put everything back if it cannot.

        Whether lists were read, and who was waited for. Raises SourceError.
        """
        present = self.params["state"] == "present"
        changed = [path for path in after if before[path] != after[path] and path != self.pins]
        reread = present and (bool(changed) or not self.lists_are_there())
        try:
            waited_for = wait_for_locks(self.params["lock_timeout_s"], LOCKS) if reread else None
        except LockTimeout as error:
            raise SourceError("the package lists cannot be read now: %s" % error) from None
        shared = any(path.startswith(self.backups + "/") for path in before)
        uris = [] if present or shared else self.own_uris()
        unread = [path for uri in uris for path in lists_of(self.root, uri)]
        try:
            write_all(after)
            for path in unread:
                os.unlink(path)
            if reread:
                self.must(update(self.source, self.params), "the sources are as they were")
            if present and before != after:
                self.must(all_sources_parse(), "the sources are as they were")
        except BaseException:
            write_all(before)
            raise
        return reread, waited_for

    def try_out(self, after: Files) -> None:
        """Fetch the source's lists into a temporary directory. Raises SourceError."""
        place = tempfile.mkdtemp(prefix="boxwright-apt-")
        try:
            os.chmod(place, 0o755)  # apt reads and fetches as the user _apt
            os.makedirs(place + "/lists/partial")
            policy = {place + "/policy": after[self.policy]} if self.policy in after else {}
            source = source_text(self.params, place + "/key.gpg").encode()
            write_all({place + "/key.gpg": after[self.keyring], place + "/try.sources": source, **policy})
            self.must(update(place + "/try.sources", self.params, place), "nothing was changed")
        finally:
            shutil.rmtree(place, ignore_errors=True)

    def must(self, done: Result, left: str) -> None:
        """Raise SourceError with apt's reason if it failed."""
        text = done.text
        # apt-get update ends with 0 after "Failed to fetch" where its Error-Mode is unknown to it.
        if done.rc != 0 or "Failed to fetch" in text or "\nErr:" in "\n" + text:
            hint = SHA1_HINT if "SHA1 is not considered secure" in text else ""
            uris = " ".join(self.params["uris"])
            raise SourceError("apt cannot use %s, %s:\n%s%s" % (uris, left, reasons(done), hint))


def lists_of(root: str, uri: str) -> List[str]:
    """The lists that apt has read of a flat source: they would show its packages until the next update."""
    return glob.glob(list_pattern(root, uri)[: -len("Release")])


def update(source: str, params: Dict[str, Any], trial: Optional[str] = None) -> Result:
    """Let apt read this one source; trial: a directory that takes the lists instead."""
    argv = ["apt-get", "-q", "update", "-o", "APT::Color=0", "-o", "Acquire::Retries=2"]
    argv += way(params["proxy"])
    argv += ["-o", "Dir::Etc::sourcelist=" + source, "-o", "Dir::Etc::sourceparts=/dev/null"]
    argv += ["-o", "APT::Get::List-Cleanup=0", "-o", "APT::Update::Error-Mode=any"]
    env = environment(params["proxy"])
    if params.get("bundle"):
        argv += ["-o", "Acquire::https::CaInfo=" + params["bundle"]]
    if trial:
        argv += ["-o", "Dir::State::lists=" + trial + "/lists"]
        argv += ["-o", "Dir::Cache::pkgcache=", "-o", "Dir::Cache::srcpkgcache="]
        if os.path.exists(trial + "/policy"):
            env["SEQUOIA_CRYPTO_POLICY"] = trial + "/policy"
    return run(argv, timeout=params["timeout_s"], env=env)


def all_sources_parse() -> Result:
    """Whether apt accepts all sources together: two keys for one address stop every apt call."""
    return run(["apt-get", "indextargets", "--format", "$(SITE)"], timeout=60)
