"""A third-party source of dnf's: its files as they are and should be, tried before they stay."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from typing import Any, Dict, List, Optional, Tuple

from ansible.module_utils import dnf, signing_key
from ansible.module_utils.command import Result, run
from ansible.module_utils.file_set import Files, read_bytes, write_all
from ansible.module_utils.openpgp import armor, dearmor, fingerprints
from ansible.module_utils.package_locks import LockTimeout, wait_for_locks
from ansible.module_utils.signing_key import SourceError

#: Where Red Hat's family has certificates of one's own.
AUTHORITIES = "/etc/pki/ca-trust/source/anchors (then update-ca-trust)"
#: Of a source whose packages go before those of the same name elsewhere; dnf's own is 99.
PREFERRED = 90


class DnfSource:
    """One source on this host: what its files hold and what they should hold, by path."""

    def __init__(self, params: Dict[str, Any], root: str) -> None:
        self.params, self.root, name = params, root, params["name"]
        if params.get("allow_sha1"):
            raise SourceError("allow_sha1 is for apt; here `update-crypto-policies` decides for all programs")
        self.keyring = "%s/etc/pki/rpm-gpg/RPM-GPG-KEY-%s.asc" % (root, name)
        self.source = "%s/etc/yum.repos.d/%s.repo" % (root, name)
        #: Keys that we brought into rpm's database, to take them out again.
        self.imported = "%s/var/lib/boxwright/sources/%s.keys" % (root, name)

    def desired(self) -> Files:
        """What each file should hold; None for no file. Raises SourceError."""
        if self.params["state"] == "absent":
            return {self.keyring: None, self.source: None}
        return {
            self.keyring: self.wanted_keyring(),
            self.source: source_text(self.params, self.keyring[len(self.root) :]).encode(),
        }

    def wanted_keyring(self) -> bytes:
        """The key that is there, if it is the declared one; else the one at its address. ASCII, for rpm."""
        params = self.params
        present: Optional[bytes] = read_bytes(self.keyring)
        if present is not None and ("# Key: %s\n" % params["key_url"]).encode() in (
            read_bytes(self.source) or b""
        ):
            with contextlib.suppress(SourceError):
                signing_key.checked(present, params["fingerprints"], self.keyring)
                return present
        url, wanted = params["key_url"], params["fingerprints"]
        keyring: bytes = armor(signing_key.fetched(url, params["proxy"], wanted, AUTHORITIES))
        return keyring

    def apply(self, before: Files, after: Files) -> Tuple[bool, Optional[str]]:
        """Write, let dnf read it, put everything back if it cannot.

        Whether lists were read, and who was waited for. Raises SourceError.
        """
        if self.params["state"] == "absent":
            write_all(after)
            self.forget_keys()
            return False, None
        if before == after:
            return False, None
        try:
            waited_for = wait_for_locks(self.params["lock_timeout_s"], dnf.LOCKS, dnf.holder)
        except LockTimeout as error:
            raise SourceError("the package lists cannot be read now: %s" % error) from None
        try:
            write_all(after)
            self.must(self.makecache(), "the sources are as they were")
            self.import_keys(after[self.keyring] or b"")
        except BaseException:
            write_all(before)
            raise
        return True, waited_for

    def try_out(self, after: Files) -> None:
        """Fetch the source's lists into a temporary directory. Raises SourceError."""
        place = tempfile.mkdtemp(prefix="boxwright-dnf-")
        try:
            text = source_text(self.params, place + "/key.asc").encode()
            write_all({place + "/key.asc": after[self.keyring], place + "/repos/try.repo": text})
            options = ["--setopt=reposdir=%s/repos" % place, "--setopt=cachedir=%s/cache" % place]
            if self.params.get("bundle"):
                options.append("--setopt=sslcacert=" + self.params["bundle"])
            self.must(self.makecache(options), "nothing was changed")
        finally:
            shutil.rmtree(place, ignore_errors=True)

    def makecache(self, options: Optional[List[str]] = None) -> Result:
        """Let dnf read this one source."""
        proxy, name = self.params["proxy"], self.params["name"]
        argv = ["dnf", "-y", "-q", "--disablerepo=*", "--enablerepo=" + name, *(options or [])]
        env = {"http_proxy": proxy, "https_proxy": proxy} if proxy else {}
        return run([*argv, "makecache", "--refresh"], timeout=self.params["timeout_s"], env=env)

    def must(self, done: Result, left: str) -> None:
        """Raise SourceError with dnf's reason if it failed."""
        if done.rc != 0:
            uris = " ".join(self.params["uris"])
            raise SourceError("dnf cannot use %s, %s:\n%s" % (uris, left, dnf.reasons(done)))

    def import_keys(self, keyring: bytes) -> None:
        """Have the keys in rpm's database, and remember which were not there. Raises SourceError."""
        known = run(["rpm", "-q", "gpg-pubkey", "--qf", "%{VERSION}\\n"]).stdout.split()
        missing = [one[-8:].lower() for one in fingerprints(dearmor(keyring))]
        missing = [one for one in missing if one not in known]
        if not missing or "packages" not in self.params["signed"]:
            return
        earlier = (read_bytes(self.imported) or b"").decode().split()
        write_all({self.imported: ("\n".join([*earlier, *missing]) + "\n").encode()})
        done = run(["rpm", "--import", self.keyring])
        if done.rc != 0:
            raise SourceError("rpm does not take the signing key: %s" % dnf.reasons(done))

    def forget_keys(self) -> None:
        """Take the keys out of rpm's database that were not there before us."""
        for key in (read_bytes(self.imported) or b"").decode().split():
            run(["rpm", "-e", "--allmatches", "gpg-pubkey-%s" % key])
        write_all({self.imported: None} if read_bytes(self.imported) is not None else {})


def source_text(params: Dict[str, Any], keyring: str) -> str:
    """The repository file. The key's address stands in it, so that a changed address is seen."""
    lines = [
        "# Kept by Boxwright; edits are overwritten.",
        "# Key: %s" % params["key_url"],
        "[%s]" % params["name"],
        "name=%s" % params["name"],
        "baseurl=" + " ".join(params["uris"]),
        "enabled=1",
        "gpgcheck=%d" % ("packages" in params["signed"]),
        "repo_gpgcheck=%d" % ("metadata" in params["signed"]),
        "gpgkey=file://" + keyring,
        "skip_if_unavailable=0",
    ]
    if params["preferred"]:
        lines.append("priority=%d" % PREFERRED)
    return "\n".join(lines) + "\n"
