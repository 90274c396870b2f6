"""What a kernel does with its cards while the host starts."""

from __future__ import annotations

import glob
import os
import re
from typing import List

from .. import paths, rig
from . import modules, objects, pci, views

#: Programs of kmod that must ask the simulated kernel; the machine's own would look past it.
KMOD_PROGRAMS = ("modprobe", "rmmod", "modinfo", "lsmod", "depmod")
PROGRAMS = "/usr/lib/lab-gpu/bin"


def boot() -> List[str]:
    """Show the cards, then load drivers as udev and systemd-modules-load do. Returns what went wrong, as messages."""
    views.cover(paths.SYS_MODULE, views.machine_driver)
    views.cover(paths.PCI_DEVICES, views.machine_card)
    views.cover(paths.PROC_DRIVER, lambda path: os.path.basename(path).startswith("nvidia"))
    os.makedirs(paths.modules_directory(paths.kernel()), exist_ok=True)
    objects.index(paths.kernel())
    replace_kmod()
    this_rig = rig.load()
    for card in this_rig.cards:
        pci.add(card, 1)
    if this_rig.nouveau and this_rig.cards and not blacklisted("nouveau"):
        modules.load_nouveau()
    wanted = [] if blacklisted("nvidia") else ["nvidia-drm"]
    problems = []
    for name in [name for name in wanted if objects.find(name, paths.kernel())] + modules_to_load():
        try:
            modules.load(name)
        except FileNotFoundError:
            problems.append("Failed to find module '%s'" % name)
        except modules.KernelError as error:
            problems.append("Failed to insert module '%s': %s" % (name, error))
    return problems


def blacklisted(name: str) -> bool:
    """Whether modprobe.d keeps a module from being loaded for a device: a blacklist, or an install line with false."""
    pattern = re.compile(r"^\s*(blacklist\s+{0}\s*$|install\s+{0}\s+(/usr)?/bin/(false|true)\b|options\s+{0}\s+.*"
                         r"\bmodeset=0\b)".format(re.escape(name)), re.MULTILINE)
    return any(pattern.search(text) for text in _configuration("modprobe.d"))


def modules_to_load() -> List[str]:
    """Modules of the driver that modules-load.d names: systemd-modules-load cannot ask the simulated kernel."""
    lines = [line.strip() for text in _configuration("modules-load.d") for line in text.splitlines()]
    return [line for line in lines if line.startswith("nvidia")]


def replace_kmod() -> None:
    """Put the simulated module programs in the place of kmod's, which an upgrade of kmod may have put back."""
    if not paths.ON_HOST:
        return
    for name in KMOD_PROGRAMS:
        link, program = os.path.join("/usr/sbin", name), os.path.join(PROGRAMS, name)
        if os.path.exists(program) and os.path.realpath(link) != program:
            os.symlink(program, link + ".lab-gpu")
            os.replace(link + ".lab-gpu", link)


def _configuration(kind: str) -> List[str]:
    """The texts of a .d directory, each name once: /etc before /run before /usr/lib."""
    found = {}
    for directory in ("/usr/lib", "/usr/local/lib", "/run", "/etc"):
        for path in glob.glob(os.path.join(paths.at(directory), kind, "*.conf")):
            found[os.path.basename(path)] = path
    texts = []
    for name in sorted(found):
        with open(found[name], encoding="utf-8") as stream:
            texts.append(stream.read())
    return texts
