#!/usr/bin/python
"""Make a host trust authorities of its owner's, for everything that runs on it."""

from __future__ import annotations

import glob
import os
import shutil
from typing import Any, Dict, List, NamedTuple

from ansible.module_utils import pem, systemctl
from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.command import read, run, write

DOCUMENTATION = r"""
module: trusted_authorities
short_description: Authorities that the host trusts beside the distribution's
description:
  - Keeps the given certificates, and no others of ours, where the distribution takes an administrator's from
    (C(/usr/local/share/ca-certificates) or C(/etc/pki/ca-trust/source/anchors)), and has its bundle made.
  - A Docker that runs learns of them when it starts; that a restart is due is left to docker_daemon_config.
options:
  ca: {description: "Certificates as PEM text, one after the other; empty for none.", type: str, default: ""}
author: [Boxwright maintainers]
"""
EXAMPLES = r"""
- name: The box trusts the company's authority
  trusted_authorities:
    ca: "{{ lookup('ansible.builtin.file', 'company.pem') }}"
"""
RETURN = r"""
fingerprints: {description: "SHA-256 of the certificates.", type: list, returned: success}
"""

#: Prefix of every path; tests point it at a directory of theirs.
ROOT = ""
#: The same as docker_daemon_config's: there while a restart of Docker is due.
DOCKER_DUE = "/run/boxwright-docker-restart-due"
TIMEOUT_S = 120


class Store(NamedTuple):
    """Where a distribution keeps authorities. bundle: what its program makes of them."""

    directory: str
    ending: str
    program: List[str]
    bundle: str

    def paths(self, count: int) -> List[str]:
        """Our files, one certificate each, as update-ca-certificates wants it."""
        return [
            "%s%s/boxwright-%d%s" % (ROOT, self.directory, number, self.ending)
            for number in range(1, count + 1)
        ]


STORES = (
    Store(
        "/usr/local/share/ca-certificates",
        ".crt",
        ["update-ca-certificates"],
        "/etc/ssl/certs/ca-certificates.crt",
    ),
    Store(
        "/etc/pki/ca-trust/source/anchors",
        ".pem",
        ["update-ca-trust", "extract"],
        "/etc/pki/tls/certs/ca-bundle.crt",
    ),
)


class TrustError(Exception):
    """The authorities cannot be trusted; the text says why and what to do."""


def readable(text: str) -> List[str]:
    """The certificates of a text, each of which TLS can use. Raises TrustError."""
    found: List[str] = pem.certificates(text)
    if not pem.whole(text):
        raise TrustError("box_ca holds what is no certificate in PEM form; nothing was changed")
    for number, one in enumerate(found, 1):
        problem = pem.problem(one)
        if problem:
            raise TrustError(
                "certificate %d of box_ca cannot be used (%s); nothing was changed" % (number, problem)
            )
    return found


def store() -> Store:
    """The host's. Raises TrustError where it has none."""
    found = next((one for one in STORES if shutil.which(one.program[0])), None)
    if found is None:
        raise TrustError(
            "there is nothing on the host that keeps authorities: install its package ca-certificates, "
            "then run again"
        )
    return found


def make_true(ca: str, check: bool) -> Dict[str, Any]:
    """Have them trusted; the module's result. Raises TrustError, and the files are as they were."""
    wanted = readable(ca)
    there = store()
    ours = glob.glob("%s%s/boxwright-*%s" % (ROOT, there.directory, there.ending))
    before = {path: read(path) for path in ours}
    after = {path: wanted[place] for place, path in enumerate(there.paths(len(wanted)))}
    trusted = set(pem.certificates(read(ROOT + there.bundle) or ""))
    gone = [text for path, text in before.items() if path not in after]
    changed = before != after or not trusted.issuperset(wanted)
    if changed and not check:
        due_before = os.path.exists(ROOT + DOCKER_DUE)
        # First: a run that ends between the two leaves the restart to the next one.
        if systemctl.show("docker.service").running:
            write(ROOT + DOCKER_DUE, "")
        try:
            put(there, before, after)
        except TrustError:
            if not due_before and os.path.exists(ROOT + DOCKER_DUE):
                os.unlink(ROOT + DOCKER_DUE)
            raise
    return {
        "changed": changed,
        "fingerprints": [pem.fingerprint(one) for one in wanted],
        "said": "%d trusted%s" % (len(wanted), ", %d no more" % len(gone) if gone else ""),
    }


def put(there: Store, before: Dict[str, Any], after: Dict[str, str]) -> None:
    """Exchange the files and have the bundle made; back to what was where that fails. Raises TrustError."""
    try:
        exchange(before, after)
        done = run(there.program, timeout=TIMEOUT_S)
        wrong = done.text[-500:] or "exit status %d" % done.rc if done.rc != 0 else untaken(there, after)
    except OSError as error:
        wrong = "%s: %s" % (error.filename, error.strerror)
    if wrong:
        exchange(after, before)
        run(there.program, timeout=TIMEOUT_S)
        raise TrustError("%s failed, the authorities are as they were: %s" % (there.program[0], wrong))


def untaken(there: Store, after: Dict[str, str]) -> str:
    """What the program passed over, in words; "" for nothing. It may do so and end well."""
    trusted = set(pem.certificates(read(ROOT + there.bundle) or ""))
    numbers = [str(at) for at, text in enumerate(after.values(), 1) if text not in trusted]
    return (
        "%s has no certificate %s of box_ca: is it an authority's (CA:TRUE), and not distrusted on this host?"
        % (there.bundle, " and ".join(numbers))
        if numbers
        else ""
    )


def exchange(one: Dict[str, Any], other: Dict[str, Any]) -> None:
    """Have the other files in place of the ones."""
    for path in one:
        if path not in other and os.path.exists(path):
            os.unlink(path)
    for path, text in other.items():
        write(path, text or "", 0o644)


def main() -> None:
    """Ansible's entry point."""
    module = AnsibleModule(argument_spec={"ca": {"type": "str", "default": ""}}, supports_check_mode=True)
    try:
        module.exit_json(**make_true(module.params["ca"], module.check_mode))
    except (TrustError, systemctl.UnitError) as error:
        module.fail_json(msg=str(error))
    except OSError as error:
        module.fail_json(msg="%s: %s" % (error.filename, error.strerror))


if __name__ == "__main__":
    main()
