"""What a kernel does with its cards while the host starts."""

from __future__ import annotations

import glob
import os
import re
import shutil
import subprocess
from typing import List

from .. import paths, rig
from . import firmware, modules, objects, pci, views

#: Programs of kmod that must ask the simulated kernel; the machine's own would look past it.
KMOD_PROGRAMS = ("modprobe", "rmmod", "modinfo", "lsmod", "depmod")
PROGRAMS = "/usr/lib/lab-gpu/bin"


def boot() -> List[str]:
    """Show the cards, then load drivers as udev and systemd-modules-load do. Returns what went wrong."""
    views.cover(paths.SYS_MODULE, views.machine_driver)
    this_rig = rig.load()
    addresses = {card.bus_id.rsplit(".", 1)[0] for card in this_rig.cards}
    views.cover(paths.PCI_DEVICES, views.machine_device(addresses))
    views.cover(paths.PROC_DRIVER, lambda path: os.path.basename(path).startswith("nvidia"))
    views.cover(paths.at("/sys/firmware"), lambda path: os.path.basename(path) == "efi")
    firmware.show()
    index_modules(paths.kernel())
    replace_kmod()
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
    """Whether modprobe.d keeps a module from being loaded for a device: blacklist, or install … false."""
    pattern = re.compile(
        r"^\s*(blacklist\s+{0}\s*$|install\s+{0}\s+(/usr)?/bin/(false|true)\b|options\s+{0}\s+.*"
        r"\bmodeset=0\b)".format(re.escape(name)),
        re.MULTILINE,
    )
    return any(pattern.search(text) for text in _configuration("modprobe.d"))


def modules_to_load() -> List[str]:
    """Modules that modules-load.d names: systemd-modules-load cannot ask the simulated kernel."""
    lines = [line.strip() for text in _configuration("modules-load.d") for line in text.splitlines()]
    return [line for line in lines if line.startswith("nvidia")]


def replace_kmod() -> None:
    """Put the simulated programs in the place of kmod's, which an upgrade of kmod may have put back."""
    if not paths.ON_HOST:
        return
    for name in KMOD_PROGRAMS:
        program = os.path.join(PROGRAMS, name)
        for link in (os.path.join("/usr/sbin", name), os.path.join("/usr/bin", name)):
            if os.path.lexists(link) and os.path.realpath(link) != program:
                os.symlink(program, link + ".lab-gpu")
                os.replace(link + ".lab-gpu", link)


def index_modules(release: str) -> None:
    """Index the modules of a kernel, with the binary files that libkmod asks for."""
    directory = paths.modules_directory(release)
    os.makedirs(directory, exist_ok=True)
    if paths.ON_HOST and not os.path.exists(os.path.join(directory, "modules.dep.bin")):
        base = "/run/lab-gpu/depmod"
        empty = os.path.join(base, "lib/modules", release)
        os.makedirs(empty, exist_ok=True)
        for name in ("modules.order", "modules.builtin"):
            with open(os.path.join(empty, name), "w", encoding="utf-8"):
                pass
        subprocess.run(["depmod", "-b", base, release], executable="/usr/bin/kmod", check=True, timeout=60)
        for name in os.listdir(empty):
            shutil.copyfile(os.path.join(empty, name), os.path.join(directory, name))
    objects.index(release)


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
