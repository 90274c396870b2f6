"""DKMS for simulated modules: the same tree, states and messages, with a build that takes no compiler.

States (words of `dkms status`): added, built, installed. A source is /usr/src/NAME-VERSION with dkms.conf,
and lab-module.json that says which modules it makes and their license.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from typing import List, Optional

from .. import faults, files, paths
from . import objects

ARCHITECTURE = "x86_64"


class DkmsError(Exception):
    """A step that failed: the text to print on stderr, and the exit status of dkms."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


@dataclass(frozen=True)
class Source:
    """One module source, such as nvidia/580.105.08."""

    name: str
    version: str

    def __str__(self) -> str:
        return self.name + "/" + self.version

    @property
    def tree(self) -> str:
        """Its directory in the DKMS tree."""
        return os.path.join(paths.DKMS_TREE, self.name, self.version)

    @property
    def code(self) -> str:
        """Its directory in /usr/src."""
        return os.path.join(paths.SOURCES, self.name + "-" + self.version)

    def build(self, release: str) -> str:
        """The directory of its build for a kernel."""
        return os.path.join(self.tree, release, ARCHITECTURE)

    def installed(self, release: str) -> bool:
        """Whether this version is the one in /lib/modules of a kernel."""
        path = objects.find("nvidia", release)
        return path is not None and objects.load(path)["version"] == self.version


def sources() -> List[Source]:
    """Every source that was added."""
    found = []
    for name in _entries(paths.DKMS_TREE):
        found += [Source(name, version) for version in _entries(os.path.join(paths.DKMS_TREE, name))]
    return found


def kernels() -> List[str]:
    """Every kernel whose headers are installed."""
    return [release for release in _entries(paths.at("/lib/modules")) if has_headers(release)]


def has_headers(release: str) -> bool:
    """Whether a module can be built for a kernel."""
    return os.path.isdir(os.path.join(paths.modules_directory(release), "build"))


def status() -> List[str]:
    """The lines of `dkms status`."""
    lines = []
    for source in sources():
        releases = [release for release in _entries(source.tree) if os.path.isdir(source.build(release))]
        lines += [
            "%s, %s, %s: %s"
            % (source, release, ARCHITECTURE, "installed" if source.installed(release) else "built")
            for release in releases
        ] or ["%s: added" % source]
    return lines


def add(source: Source) -> None:
    """Enter a source into the tree."""
    if not os.path.exists(os.path.join(source.code, "dkms.conf")):
        raise DkmsError(
            2, "Error! Could not find module source directory.\nDirectory: %s does not exist." % source.code
        )
    if os.path.isdir(source.tree):
        raise DkmsError(
            3,
            "Error! DKMS tree already contains: %s\nYou cannot add the same module/version combo "
            "more than once." % source,
        )
    os.makedirs(source.tree)
    os.symlink(source.code, os.path.join(source.tree, "source"))


def build(source: Source, release: str) -> None:
    """Make the modules for a kernel."""
    if not os.path.isdir(source.tree):
        add(source)
    if os.path.isdir(source.build(release)):
        return
    if not has_headers(release):
        raise DkmsError(
            21,
            "Error! Your kernel headers for kernel {0} cannot be found at /lib/modules/{0}/build or "
            "/lib/modules/{0}/source.\nPlease install the linux-headers-{0} package or use the "
            "--kernelsourcedir option to tell DKMS where it's located.".format(release),
        )
    if faults.concerns("dkms-build", source.version):
        log = os.path.join(source.tree, "build", "make.log")
        files.write(
            log,
            "DKMS make.log for %s for kernel %s (%s)\nmake: *** [Makefile:115: modules] Error 2\n"
            % (str(source).replace("/", "-"), release, ARCHITECTURE),
        )
        raise DkmsError(
            10,
            "Error! Bad return status for module build on kernel: %s (%s)\nConsult %s for more "
            "information." % (release, ARCHITECTURE, log),
        )
    content = files.read_json(os.path.join(source.code, "lab-module.json"))
    for name in content["modules"]:
        files.write(
            os.path.join(source.build(release), "module", name + ".ko"),
            objects.render(name, source.version, content["license"], release),
        )
    files.write(
        os.path.join(source.build(release), "log", "make.log"),
        "DKMS make.log for %s for kernel %s (%s)\n" % (str(source).replace("/", "-"), release, ARCHITECTURE),
    )


def install(source: Source, release: str) -> None:
    """Put the modules where the kernel looks for them, and index them."""
    build(source, release)
    for name in os.listdir(os.path.join(source.build(release), "module")):
        text = files.read(os.path.join(source.build(release), "module", name))
        files.write(os.path.join(objects.directory(release), name), text or "")
    objects.index(release)


def remove(source: Source, release: Optional[str] = None) -> None:
    """Take back a source for one kernel, or altogether; directories that are empty then go with it."""
    if not os.path.isdir(source.tree):
        raise DkmsError(
            3,
            "Error! There are no instances of module: %s\n%s located in the DKMS tree."
            % (source.name, source.version),
        )
    for each in [release] if release else list(_entries(source.tree)):
        if source.installed(each):
            for name in os.listdir(os.path.join(source.build(each), "module")):
                os.unlink(os.path.join(objects.directory(each), name))
            objects.index(each)
            for folder in (objects.directory(each), os.path.dirname(objects.directory(each))):
                if not os.listdir(folder):
                    os.rmdir(folder)
        shutil.rmtree(source.build(each), ignore_errors=False)
        os.rmdir(os.path.dirname(source.build(each)))
    if not release:
        shutil.rmtree(source.tree)
        if not _entries(os.path.dirname(source.tree)):
            shutil.rmtree(os.path.dirname(source.tree))


def _entries(directory: str) -> List[str]:
    """The directories of a directory, without DKMS's own and without links."""
    if not os.path.isdir(directory):
        return []
    return sorted(
        entry
        for entry in os.listdir(directory)
        if entry not in ("source", "build")
        and os.path.isdir(os.path.join(directory, entry))
        and not os.path.islink(os.path.join(directory, entry))
    )
