"""Make a group of packages true on a host: installed together and held."""

from __future__ import annotations

from ansible.module_utils import shapes, way_out
from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.hold_records import RecordError
from ansible.module_utils.package_group import Group, versions
from ansible.module_utils.package_source import remove_source
from ansible.module_utils.packages import PackagesError
from ansible.module_utils.shapes import TEXT, ListOf, MapOf

DOCUMENTATION = r"""
module: held_packages
short_description: Packages installed in one transaction and held, with a person's own holds respected
description:
  - Everything is simulated before anything changes; packages are downloaded before anything is unpacked.
  - Holds set here are recorded in C(/var/lib/boxwright/holds/NAME.json). A hold that is not recorded there
    belongs to a person (or to another group) and stops the call where the package would have to change.
  - Of what was there before, versions are recorded; absent brings them back as far as the sources have them.
  - An installation that was interrupted is brought to an end first; a package lock of someone else is waited
    for.
options:
  name: {description: "Name of the group of packages.", type: str, required: true}
  state:
    description: "present installs and holds; absent lifts the holds and brings back what was there before."
    type: str
    choices: [present, absent]
    default: present
  packages:
    description: "Packages, each C(name) or C(name=version); the version may be a glob."
    type: list
    elements: str
    default: []
  version:
    description: "Version or glob (C(580.*)) of the packages, and of every other package that C(hold) means."
    type: str
  alongside:
    description: "Packages that come in the same transaction in any version, and are neither held nor kept."
    type: list
    elements: str
    default: []
  pin:
    description: "Of apt: whether it shall prefer that version (C(preferences.d/boxwright-held-NAME.pref))."
    type: bool
    default: false
  hold:
    description: "Globs of further installed packages to hold; C(!glob) takes some out again, in order."
    type: list
    elements: str
    default: []
  avoid:
    description: "With pin, releases (C(o=Debian)) of which none of these packages may come."
    type: list
    elements: str
    default: []
  strays:
    description:
      - Glob of versions; packages that C(hold) means and that have such a version leave in the same
        transaction where no source has them in the declared version.
    type: str
  new_source:
    description:
      - Name of a source that M(package_source) has just made for this; it goes again when nothing can be
        changed.
    type: str
  replaces:
    description: "Globs of installed packages that leave in the same transaction, unless they are wanted."
    type: list
    elements: str
    default: []
  may_remove:
    description: "Globs of packages that may be removed to get there."
    type: list
    elements: str
    default: []
  allow_downgrade: {description: "Whether versions may go down.", type: bool, default: false}
  stream:
    description: "Of dnf: C(module:stream) that the packages come from, if their source has modules."
    type: str
    default: ""
  recommends: {description: "Whether recommended packages come along.", type: bool, default: false}
  unpurged:
    description: "With absent, globs of packages whose settings stay, for purging them takes data along."
    type: list
    elements: str
    default: []
  makes:
    description:
      - Of packages, the files and directories that they make when they are set up or run, which removing them
        leaves. absent takes those away that were not there before the package; directories only where they
        are empty.
    type: dict
    default: {}
  source_pending:
    description: "In check mode, the packages' source is not there yet, and unknown packages are no error."
    type: bool
    default: false
  proxy: {description: "Proxy for downloads; otherwise the environment's.", type: str}
  no_proxy: {type: list, elements: str, default: [], description: "Hosts that are reached without it."}
  lock_timeout_s: {description: "Seconds to wait for another package manager.", type: int, default: 300}
  timeout_s: {description: "How long the transaction may take, in seconds.", type: int, default: 3600}
  progress_file: {description: "Where to tell how far it is; left out, nobody is told.", type: path}
"""

#: Prefix of the paths of our own records and settings; tests point it at a directory of theirs.
ROOT = ""
#: What is in its parameters of mappings and lists.
SHAPES = {"makes": MapOf(ListOf(TEXT))}


def summary(group: Group) -> str:
    """What happened in a few words: "nvidia-driver-cuda 580.105.08-1; 11 upgraded"."""
    words = {"install": "installed", "upgrade": "upgraded", "downgrade": "downgraded", "remove": "removed"}
    kinds = [step.kind for step in group.steps]
    counts = ["%d %s" % (kinds.count(kind), word) for kind, word in words.items() if kind in kinds]
    first = [
        "%s %s" % (name, group.packages[name].version) for name in group.names[:1] if name in group.packages
    ]
    repaired = ["%d half-done ones mended" % len(group.repaired)] if group.repaired else []
    waited = ["after waiting for %s" % group.waited_for] if group.waited_for else []
    return "; ".join([*first, *repaired, ", ".join(counts) or "held", *waited])


def make_true(group: Group) -> bool:
    """Carry the call out; whether anything changed. Raises PackagesError."""
    try:
        return bool(group.present() if group.params["state"] == "present" else group.absent())
    except PackagesError:
        if group.params["new_source"] and not group.check and not group.touched:
            remove_source(group.params["new_source"], ROOT)
        raise


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "name": {"type": "str", "required": True},
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "packages": {"type": "list", "elements": "str", "default": []},
            "alongside": {"type": "list", "elements": "str", "default": []},
            "version": {"type": "str"},
            "pin": {"type": "bool", "default": False},
            "hold": {"type": "list", "elements": "str", "default": []},
            "avoid": {"type": "list", "elements": "str", "default": []},
            "strays": {"type": "str"},
            "new_source": {"type": "str"},
            "replaces": {"type": "list", "elements": "str", "default": []},
            "may_remove": {"type": "list", "elements": "str", "default": []},
            "allow_downgrade": {"type": "bool", "default": False},
            "stream": {"type": "str", "default": ""},
            "recommends": {"type": "bool", "default": False},
            "unpurged": {"type": "list", "elements": "str", "default": []},
            "makes": {"type": "dict", "default": {}},
            "source_pending": {"type": "bool", "default": False},
            "proxy": {"type": "str"},
            "no_proxy": {"type": "list", "elements": "str", "default": []},
            "lock_timeout_s": {"type": "int", "default": 300},
            "timeout_s": {"type": "int", "default": 3600},
            "progress_file": {"type": "path"},
        },
        supports_check_mode=True,
    )
    shapes.refuse(module, SHAPES)
    way_out.follow(module)
    touched = False
    try:
        group = Group(module.params, module.check_mode, ROOT)
        before = versions(group)
        try:
            changed = make_true(group)
        finally:
            touched = group.touched
    except (PackagesError, RecordError) as error:
        module.fail_json(msg="%s: %s" % (module.params["name"], error), touched=touched)
    steps = [step.text() for step in group.steps]
    module.exit_json(
        said=summary(group),
        changed=changed,
        before=before,
        after=versions(group),
        steps=steps,
        held=group.record.holds,
        repaired=group.repaired,
        not_restored=group.not_restored,
        waited_for=group.waited_for,
        diff={"before": "", "after": "".join(step + "\n" for step in steps)},
    )


if __name__ == "__main__":
    main()
