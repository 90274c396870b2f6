"""Make a signed third-party package source true on a host."""

from __future__ import annotations

import contextlib

from ansible.module_utils import way_out
from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.file_set import difference, read_bytes
from ansible.module_utils.package_source import source_of
from ansible.module_utils.signing_key import SourceError, shown

DOCUMENTATION = r"""
module: package_source
short_description: A signed third-party package source, with its key, in one call
description:
  - With apt keeps the keyring (C(/etc/apt/keyrings/NAME.gpg)), the source
    (C(/etc/apt/sources.list.d/NAME.sources), deb822 with Signed-By) and the pins
    (C(/etc/apt/preferences.d/NAME.pref)), then reads the source's lists.
  - With dnf keeps the key (C(/etc/pki/rpm-gpg), and in rpm's database) and C(/etc/yum.repos.d/NAME.repo).
  - Other definitions of the same address are switched off (and on again with state absent).
  - When the package manager cannot use the new source, everything is put back as it was and its reason is the
    error.
  - In check mode the key and the lists are fetched into a temporary directory, so that a wrong address shows.
options:
  name: {description: "Stem of the files' names.", type: str, required: true}
  state: {description: "Whether it is there.", type: str, choices: [present, absent], default: present}
  uris: {description: "Addresses of the repository.", type: list, elements: str, default: []}
  suites: {description: "Of apt; C(/) for a flat repository.", type: list, elements: str, default: ["/"]}
  components:
    description: "Of apt; none for a flat repository."
    type: list
    elements: str
    default: []
  architectures: {description: "Of apt; none for the host's.", type: list, elements: str, default: []}
  key_url: {description: "Where the public key is, binary or armored.", type: str}
  fingerprints:
    description: "Every primary key of the keyring must be one of these; none accepts what key_url gives."
    type: list
    elements: str
    default: []
  allow_sha1:
    description: "Of apt: whether keys bound by SHA-1 are taken; apt 3 refuses them since 2026-02-01."
    type: bool
    default: false
  signed:
    description: "Of dnf: what the key signs, and dnf therefore checks. apt's sources are signed as a whole."
    type: list
    elements: str
    choices: [packages, metadata]
    default: [packages]
  preferred:
    description: "Globs of packages that are taken from here, whatever other sources have of them."
    type: list
    elements: str
    default: []
  proxy: {description: "Proxy for the key and the lists; otherwise the environment's.", type: str}
  no_proxy: {type: list, elements: str, default: [], description: "Hosts that are reached without it."}
  ca:
    description: "Authorities that the host is about to trust, as PEM text; check mode fetches with them."
    type: str
    default: ""
  lock_timeout_s: {description: "Seconds to wait for another package manager.", type: int, default: 300}
  timeout_s: {description: "How long fetching the lists may take, in seconds.", type: int, default: 180}
"""

#: Prefix of every path; tests point it at a directory of theirs.
ROOT = ""


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
            "allow_sha1": {"type": "bool", "default": False},
            "signed": {
                "type": "list",
                "elements": "str",
                "default": ["packages"],
                "choices": ["packages", "metadata"],
            },
            "preferred": {"type": "list", "elements": "str", "default": []},
            "proxy": {"type": "str"},
            "no_proxy": {"type": "list", "elements": "str", "default": []},
            "ca": {"type": "str", "default": ""},
            "lock_timeout_s": {"type": "int", "default": 300},
            "timeout_s": {"type": "int", "default": 180},
        },
        required_if=[("state", "present", ("uris", "key_url"))],
        supports_check_mode=True,
    )
    way_out.follow(module)
    reread, waited_for = False, None
    try:
        with contextlib.ExitStack() as stack:
            if module.check_mode and module.params["ca"]:
                module.params["bundle"] = stack.enter_context(way_out.trusting(module.params["ca"]))
            source = source_of(module.params, ROOT)
            after = source.desired()
            before = {path: read_bytes(path) for path in after}
            if not module.check_mode:
                reread, waited_for = source.apply(before, after)
            elif module.params["state"] == "present" and before[source.source] != after[source.source]:
                source.try_out(after)
    except SourceError as error:
        module.fail_json(msg="%s: %s" % (module.params["name"], error))
    module.exit_json(
        changed=before != after,
        created=before[source.source] is None and after[source.source] is not None,
        lists_read=reread,
        waited_for=waited_for,
        diff=difference(before, after, shown),
    )


if __name__ == "__main__":
    main()
