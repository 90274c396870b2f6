#!/usr/bin/python
"""Ansible module: root's Docker is logged in to the declared registries, and trusts their authorities."""

from __future__ import annotations

import os
import re
from typing import Any, Dict, List, Optional

from ansible.module_utils import pem, registry_logins, shared_file
from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.command import read, write
from ansible.module_utils.daemon_json import ConfigError, Receipt, ShapeError, dump, parse
from ansible.module_utils.docker_api import Docker, DockerError
from ansible.module_utils.pull_problem import login_problem
from ansible.module_utils.registry_access import ARGUMENT
from ansible.module_utils.registry_logins import Login, LoginError
from ansible.module_utils.shared_file import SharedFileError

DOCUMENTATION = r"""
module: docker_registries
short_description: Root's Docker is logged in to the declared registries, and trusts their authorities
description:
  - Keeps logins in root's own Docker configuration, beside those that are there, and authorities in a file of
    their own below /etc/docker/certs.d. What is declared no more is taken out again.
  - Docker itself tries a new login at the registry before it is kept; one that is refused changes nothing.
options:
  registries:
    description: "The registries."
    type: list
    elements: dict
    default: []
    options:
      host: {type: str, required: true, description: "As in the names of its images, with its port."}
      username: {type: str, default: "", description: "Name of the login; empty, none."}
      password: {type: str, default: "", description: "Its password or token."}
      ca: {type: str, default: "", description: "Certificate of its authority, as PEM text."}
      insecure: {type: bool, default: false, description: "Not of concern here: a setting of the daemon's."}
  receipt: {type: path, required: true, description: "Where to keep which logins are ours; for root alone."}
"""
RETURN = r"""
logins: {type: list, description: "Registries that root is logged in to by us."}
authorities: {type: list, description: "Registries with an authority of ours."}
"""


class Registries:
    """One call's work: what is there, what is wanted."""

    def __init__(self, params: Dict[str, Any]) -> None:
        wrong = [text for one in params["registries"] for text in registry_logins.mistakes(one)]
        if wrong:
            raise LoginError("container_runtime_registries: %s; nothing was changed" % "; ".join(wrong))
        self.receipt_path = params["receipt"]
        self.path, self.text = shared_file.look(registry_logins.config_path())
        self.before = parse(self.text, self.path)
        kept = Receipt.load(read(self.receipt_path), self.receipt_path)
        # The whole file is ours where there was none before.
        self.receipt = kept._replace(made=[*kept.made, ()]) if self.text is None and not kept.made else kept
        self.logins = [
            Login(registry_logins.key_of(one["host"]), one["username"], one["password"])
            for one in params["registries"]
            if one["username"]
        ]
        try:
            self.after, self.new_receipt = registry_logins.with_logins(self.before, self.logins, self.receipt)
        except ShapeError as error:
            raise error.located(self.path, self.text, secret=True) from error
        self.wanted: Dict[str, Optional[str]] = dict.fromkeys(registry_logins.our_certificates())
        for one in params["registries"]:
            if one["ca"].strip():
                _check_authority(one["host"], one["ca"])
                # As it is read back, which turns the ends of lines of other systems into ours.
                self.wanted[one["host"]] = re.sub("\r\n?", "\n", one["ca"].strip()) + "\n"
        self.certificates = {
            name: text for name, text in self.wanted.items() if read(_certificate(name)) != text
        }

    @property
    def new(self) -> List[Login]:
        """Logins that are not there as declared, or whose registry is to be trusted otherwise."""
        return [
            login
            for login in self.logins
            if registry_logins.entry(self.before, login.key).get("auth") != login.basic
            or login.key in self.certificates
        ]

    @property
    def changed(self) -> bool:
        """Whether anything is not as declared."""
        return bool(
            self.certificates or self.after != self.before or self.receipt_text != read(self.receipt_path)
        )

    @property
    def receipt_text(self) -> Optional[str]:
        """What the receipt's file is to hold; None for no file."""
        return self.new_receipt.text() if self.new_receipt.entries else None

    def apply(self) -> None:
        """Trust, try the new logins, keep them; a login that is refused takes all of it back."""
        old = {name: read(_certificate(name)) for name in self.certificates}
        for name, text in self.certificates.items():
            _trust(name, text)
        for login in self.new:
            try:
                Docker().login(login)
            except DockerError as error:
                for name, text in old.items():
                    _trust(name, text)
                raise LoginError(login_problem(str(error), login.key, login.username)) from error
        if self.receipt_text is not None:
            write(self.receipt_path, self.receipt_text, 0o600)
        if self.text is not None and not self.after and () in self.receipt.made:
            os.unlink(self.path)
            if not os.listdir(os.path.dirname(self.path)):
                os.rmdir(os.path.dirname(self.path))
        elif self.after != self.before:
            os.makedirs(os.path.dirname(self.path), mode=0o700, exist_ok=True)
            write(self.path, dump(self.after, self.text or "{\n\t"), 0o600)
        if self.receipt_text is None and os.path.exists(self.receipt_path):
            os.unlink(self.receipt_path)


def _certificate(registry: str) -> str:
    return os.path.join(registry_logins.CERTIFICATES, registry, registry_logins.OUR_CERTIFICATE)


def _trust(registry: str, text: Optional[str]) -> None:
    """Have an authority's certificate, or none; a directory that this leaves empty goes too."""
    path = _certificate(registry)
    if text is not None:
        write(path, text)
        return
    if os.path.exists(path):
        os.unlink(path)
    folder = os.path.dirname(path)
    if os.path.isdir(folder) and not os.listdir(folder):
        os.rmdir(folder)


def _check_authority(registry: str, text: str) -> None:
    found = pem.certificates(text)
    wrong = [why for why in map(pem.problem, found) if why]
    if not found or wrong or not pem.whole(text):
        why = wrong[0] if wrong else "it is cut off or altered" if "-----BEGIN" in text else "it holds none"
        raise LoginError(
            "container_runtime_registries: ca of %s is no certificate in PEM form (%s)" % (registry, why)
        )


def main() -> None:
    """Look, trust, log in, keep."""
    module = AnsibleModule(
        argument_spec={
            "registries": ARGUMENT,
            "receipt": {"type": "path", "required": True},
        },
        supports_check_mode=True,
    )
    try:
        work = Registries(module.params)
        if work.changed and not module.check_mode:
            work.apply()
    except (ConfigError, LoginError, SharedFileError) as error:
        module.fail_json(msg=str(error))
    except OSError as error:
        module.fail_json(msg="%s: %s" % (error.filename, shared_file.reason(error)))
    module.exit_json(
        changed=work.changed,
        logins=registry_logins.registries(work.new_receipt),
        authorities=sorted(name for name, text in work.wanted.items() if text is not None),
    )


if __name__ == "__main__":
    main()
