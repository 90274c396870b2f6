"""modinfo, lsmod, depmod and mokutil for simulated modules."""

from __future__ import annotations

import os
import sys
from typing import List, Optional, Tuple

from .. import faults, paths
from ..kernel import modules, objects
from .modprobe import concerns, kmod


def modinfo(arguments: Optional[List[str]] = None) -> int:
    """`modinfo [-F FIELD] [-k RELEASE] NAME` for a module of the driver."""
    arguments = sys.argv[1:] if arguments is None else arguments
    field, release, names = None, paths.kernel(), []
    rest = iter(arguments)
    for argument in rest:
        if argument in ("-F", "--field"):
            field = next(rest, "")
        elif argument.startswith("--field="):
            field = argument.split("=", 1)[1]
        elif argument in ("-k", "--set-version"):
            release = next(rest, "")
        else:
            names.append(argument)
    if len(names) != 1 or names[0].startswith("-") or not (concerns(names[0]) or names[0].startswith("/")):
        return kmod("modinfo", arguments)
    path = names[0] if names[0].startswith("/") else objects.find(names[0], release)
    if path is None or not os.path.exists(path):
        print("modinfo: ERROR: Module %s not found." % names[0], file=sys.stderr)
        return 1
    for name, value in _fields(path):
        if field is None:
            print("%-16s%s" % (name + ":", value))
        elif name == field:
            print(value)
    return 0


def _fields(path: str) -> List[Tuple[str, str]]:
    module = objects.load(path)
    name = str(module["name"])
    fields = [("filename", path)]
    if name == "nvidia":
        fields.append(("alias", "char-major-195-*"))
    fields += [("version", module["version"]), ("supported", "external"), ("license", module["license"])]
    if name == "nvidia":
        fields += [
            ("firmware", "nvidia/%s/gsp_%s.bin" % (module["version"], chip)) for chip in ("tu10x", "ga10x")
        ]
        fields += [("alias", "pci:v000010DEd*sv*sd*bc03sc%si00*" % subclass) for subclass in ("02", "00")]
    depends = ",".join(objects.NEEDS[name])
    fields += [
        ("depends", depends),
        ("name", objects.canonical(name)),
        ("vermagic", "%s SMP preempt mod_unload modversions " % module["kernel"]),
    ]
    return fields


def lsmod(_arguments: Optional[List[str]] = None) -> int:
    """`lsmod`: the simulated modules, and those of the machine where it has any."""
    print("%-24s%8s  %s" % ("Module", "Size", "Used by"))
    for name in [known for known in (*modules.UNLOAD_ORDER, "nouveau") if known in modules.loaded()]:
        holders = [user for user in modules.users(name) if user]
        count = len(holders) or len(modules.users(name))
        print(
            "%-24s%8d  %s"
            % (
                name,
                15745024 if name == "nvidia" else 126976,
                "%d %s" % (count, ",".join(holders)) if holders else count,
            )
        )
    try:
        with open("/proc/modules", encoding="utf-8") as stream:
            lines = stream.read().splitlines()
    except FileNotFoundError:
        return 0  # a kernel without loadable modules
    for line in lines:
        real, size, number, by = line.split()[:4]
        if not real.startswith(("nvidia", "nouveau")):
            print("%-24s%8s  %s %s" % (real, size, number, by.strip("-,")))
    return 0


def depmod(arguments: Optional[List[str]] = None) -> int:
    """`depmod [-a] [RELEASE]`: index the modules of a kernel."""
    arguments = sys.argv[1:] if arguments is None else arguments
    releases = [argument for argument in arguments if not argument.startswith("-")]
    objects.index(releases[0] if releases else paths.kernel())
    return 0


def mokutil(arguments: Optional[List[str]] = None) -> int:
    """`mokutil --sb-state`."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments != ["--sb-state"]:
        print("mokutil: the lab knows --sb-state only", file=sys.stderr)
        return 1
    if faults.active("no-efi"):
        print("EFI variables are not supported on this system", file=sys.stderr)
        return 1
    print("SecureBoot enabled" if faults.active("secure-boot") else "SecureBoot disabled")
    return 0
