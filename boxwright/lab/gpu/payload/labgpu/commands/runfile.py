"""The driver's .run installer, and the nvidia-uninstall that it leaves: files that no package owns.

As https://github.com/NVIDIA/nvidia-installer does it: what was installed is listed in /var/lib/nvidia/log.
"""

from __future__ import annotations

import argparse
import os
import sys
import zipfile
from typing import List, Optional

from .. import files, paths
from ..kernel import objects

LIST = paths.at("/var/lib/nvidia/log")
MODULES = ("nvidia", "nvidia-modeset", "nvidia-drm", "nvidia-uvm", "nvidia-peermem")


def main(release: str, arguments: Optional[List[str]] = None) -> int:
    """Install what the archive holds, or with --uninstall (or called nvidia-uninstall) remove it."""
    parser = argparse.ArgumentParser(prog="nvidia-installer", allow_abbrev=False)
    parser.add_argument("-s", "--silent", action="store_true")
    parser.add_argument("--uninstall", action="store_true")
    options = parser.parse_args(arguments)
    if options.uninstall or os.path.basename(sys.argv[0]) == "nvidia-uninstall":
        return _uninstall()
    return _install(release, os.path.realpath(sys.argv[0]))


def _install(release: str, archive: str) -> int:
    made = []
    with zipfile.ZipFile(archive) as bundle:
        for name in bundle.namelist():
            if name.startswith("root/"):
                path = paths.at(name[len("root") :])
                files.write_bytes(path, bundle.read(name))
                os.chmod(path, 0o755 if "/bin/" in path else 0o644)
                made.append(path)
    with open(archive, "rb") as stream:
        files.write_bytes(paths.at("/usr/bin/nvidia-installer"), stream.read())
    os.chmod(paths.at("/usr/bin/nvidia-installer"), 0o755)
    links = {paths.at("/usr/bin/nvidia-uninstall"): "nvidia-installer"}
    for path in made:
        if path.endswith(".so." + release):
            links[path[: -len(release)] + "1"] = os.path.basename(path)
    for link, target in links.items():
        if os.path.lexists(link):
            os.unlink(link)
        os.symlink(target, link)
    for module in MODULES:
        path = os.path.join(objects.directory(paths.kernel()), module + ".ko")
        files.write(path, objects.render(module, release, objects.OPEN_LICENSE, paths.kernel()))
        made.append(path)
    objects.index(paths.kernel())
    made += [paths.at("/usr/bin/nvidia-installer"), *links]
    files.write(LIST, "".join(path + "\n" for path in made))
    return 0


def _uninstall() -> int:
    text = files.read(LIST)
    if text is None:
        print("ERROR: There is no NVIDIA driver currently installed.", file=sys.stderr)
        return 1
    for path in text.splitlines():
        if os.path.lexists(path):
            os.unlink(path)
    os.unlink(LIST)
    os.rmdir(os.path.dirname(LIST))
    objects.index(paths.kernel())
    return 0
