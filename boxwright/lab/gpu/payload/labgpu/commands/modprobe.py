"""modprobe and rmmod for simulated modules; every other module is kmod's business."""

from __future__ import annotations

import os
import sys
from typing import List, Optional

from .. import paths
from ..kernel import boot, modules, objects


def kmod(program: str, arguments: List[str]) -> int:
    """Hand a call to the real program, which kmod chooses by the name that it is called by."""
    os.execv("/usr/bin/kmod", [program, *arguments])


def concerns(name: str) -> bool:
    """Whether a module is one that the lab simulates."""
    return objects.canonical(name) in [objects.canonical(known) for known in objects.NEEDS] + ["nouveau"]


def modprobe(arguments: Optional[List[str]] = None) -> int:
    """`modprobe [-r] NAME…` with modprobe's messages and exit statuses."""
    arguments = sys.argv[1:] if arguments is None else arguments
    flags = [argument for argument in arguments if argument.startswith("-")]
    names = [argument for argument in arguments if not argument.startswith("-") and "=" not in argument]
    several = bool({"-a", "--all", "-r", "--remove"} & set(flags))
    if not names or not concerns(names[0]):
        return kmod("modprobe", arguments)
    quiet = bool({"-q", "--quiet"} & set(flags))
    status = 0
    for name in names if several else names[:1]:
        if {"-n", "--dry-run", "--show"} & set(flags):
            message = None if objects.find(name, paths.kernel()) else _not_found(name)
        elif {"-r", "--remove"} & set(flags):
            message = _remove(name)
        elif {"-b", "--use-blacklist"} & set(flags) and boot.blacklisted(name):
            message = None
        else:
            message = _insert(name)
        if message:
            status = 1
            if not quiet:
                print("modprobe: " + message, file=sys.stderr)
    return status


def rmmod(arguments: Optional[List[str]] = None) -> int:
    """`rmmod NAME…` with rmmod's messages and exit statuses."""
    arguments = sys.argv[1:] if arguments is None else arguments
    names = [argument for argument in arguments if not argument.startswith("-")]
    if not names or not concerns(names[0]):
        return kmod("rmmod", arguments)
    if not _root():
        print(
            "rmmod: ERROR: ../libkmod/libkmod-module.c:799 kmod_module_remove_module() could not remove "
            "'%s': Operation not permitted" % names[0],
            file=sys.stderr,
        )
        return 1
    status = 0
    for name in names:
        try:
            modules.unload(name)
        except KeyError:
            print(
                "rmmod: ERROR: Module %s is not currently loaded" % objects.canonical(name), file=sys.stderr
            )
            status = 1
        except modules.KernelError as error:
            print("rmmod: ERROR: Module %s is %s" % (objects.canonical(name), error), file=sys.stderr)
            status = 1
    return status


def _root() -> bool:
    return os.geteuid() == 0 or not paths.ON_HOST


def _not_found(name: str) -> str:
    return "FATAL: Module %s not found in directory /lib/modules/%s" % (name, paths.kernel())


def _insert(name: str) -> Optional[str]:
    if modules.present(name):
        return None
    if not _root():
        return "ERROR: could not insert '%s': Operation not permitted" % objects.canonical(name)
    if name == "nouveau":
        if modules.loaded():
            return "ERROR: could not insert 'nouveau': No such device"
        modules.load_nouveau()
        return None
    try:
        modules.load(name)
    except FileNotFoundError:
        return _not_found(name)
    except modules.KernelError as error:
        return "ERROR: could not insert '%s': %s" % (objects.canonical(name), error)
    return None


def _remove(name: str) -> Optional[str]:
    if objects.canonical(name) not in modules.loaded():
        known = objects.canonical(name) == "nouveau" or objects.find(name, paths.kernel())
        return None if known else "FATAL: Module %s not found." % name
    if not _root():
        return "ERROR: could not remove '%s': Operation not permitted" % objects.canonical(name)
    try:
        modules.unload(name)
    except modules.KernelError:
        return "FATAL: Module %s is in use." % objects.canonical(name)
    for needed in objects.NEEDS.get(objects.canonical(name).replace("_", "-"), []):
        # modprobe also takes away what was only loaded for the module, as far as nothing else holds it.
        if objects.canonical(needed) in modules.loaded() and not modules.users(objects.canonical(needed)):
            _remove(needed)
    return None
