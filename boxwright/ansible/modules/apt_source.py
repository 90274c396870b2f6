"""Make a signed third-party package source true on a Debian or Ubuntu host."""

from __future__ import annotations

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.package_source import Source, SourceError, difference, read_bytes

DOCUMENTATION = r"""
module: apt_source
short_description: A signed third-party apt source, with its key and its pins, in one call
description:
  - Keeps the keyring (C(/etc/apt/keyrings/NAME.gpg)), the source (C(/etc/apt/sources.list.d/NAME.sources),
    deb822 with Signed-By) and the pins (C(/etc/apt/preferences.d/NAME.pref)), then reads the source's lists.
  - Other definitions of the same address are switched off (and on again with state absent).
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
  allow_sha1:
    description: "Whether keys bound by SHA-1 are taken; apt 3 refuses them for all sources since 2026-02-01."
    type: bool
    default: false
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


def main() -> None:
    """Run the module."""
    pin = {
        "packages": {"type": "list", "elements": "str", "required": True},
        "pin": {"type": "str", "required": True},
        "priority": {"type": "int", "required": True},
    }
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
            "pins": {"type": "list", "elements": "dict", "default": [], "options": pin},
            "proxy": {"type": "str"},
            "lock_timeout_s": {"type": "int", "default": 300},
            "timeout_s": {"type": "int", "default": 180},
        },
        required_if=[("state", "present", ("uris", "key_url"))],
        supports_check_mode=True,
    )
    source = Source(module.params, ROOT)
    reread, waited_for = False, None
    try:
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
        diff=difference(before, after),
    )


if __name__ == "__main__":
    main()
