"""The dkms command, as far as packages and roles use it."""

from __future__ import annotations

import argparse
import sys
from typing import List, Optional

from .. import paths
from ..kernel import dkms

VERSION = "3.3.0"


def main(arguments: Optional[List[str]] = None) -> int:
    """`dkms ACTION [-m NAME -v VERSION | NAME/VERSION] [-k KERNEL] [--all]`."""
    parser = argparse.ArgumentParser(prog="dkms", allow_abbrev=False)
    parser.add_argument("--version", "-V", action="version", version="dkms-" + VERSION)
    parser.add_argument("action", choices=["add", "build", "install", "remove", "status", "autoinstall"])
    parser.add_argument("module", nargs="?")
    parser.add_argument("-m", dest="name")
    parser.add_argument("-v", dest="version")
    parser.add_argument("-k", dest="kernel")
    parser.add_argument("-a", "--arch")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--force", action="store_true")
    parser.add_argument("-q", "--quiet", action="store_true")
    options = parser.parse_args(arguments)
    name, _, version = (options.module or "").partition("/")
    name, version = options.name or name, options.version or version
    try:
        return _act(options, name, version)
    except dkms.DkmsError as error:
        print(error, file=sys.stderr)
        return error.status


def _act(options: argparse.Namespace, name: str, version: str) -> int:
    kernel = options.kernel or paths.kernel()
    if options.action == "status":
        for line in dkms.status():
            module = line.split(",", 1)[0].split(":", 1)[0]
            wanted = (
                not name
                or module == (name + "/" + version if version else name)
                or (not version and module.startswith(name + "/"))
            )
            if wanted and (not options.kernel or options.kernel in line):
                print(line)
        return 0
    if options.action == "autoinstall":
        for each in dkms.sources():
            dkms.install(each, kernel)
            print("Autoinstall of module %s for kernel %s (%s)" % (each, kernel, dkms.ARCHITECTURE))
        return 0
    if not (name and version):
        raise dkms.DkmsError(
            1,
            "Error! Arguments <module> and <module-version> are not specified.\n"
            "Usage: %s <module>/<module-version> or" % options.action,
        )
    source = dkms.Source(name, version)
    if options.action == "add":
        dkms.add(source)
    elif options.action == "build":
        dkms.build(source, kernel)
    elif options.action == "install":
        dkms.install(source, kernel)
    else:
        dkms.remove(source, None if options.all or not options.kernel else kernel)
    return 0


def package(arguments: Optional[List[str]] = None) -> int:
    """What postinst scripts run (/usr/lib/dkms/common.postinst NAME VERSION): build for every kernel.

    Kernels without headers are skipped with a message and no failure, as Debian's script does.
    """
    name, version = (sys.argv[1:] if arguments is None else arguments)[:2]
    source = dkms.Source(name, version)
    print("Loading new %s-%s DKMS files..." % (name, version))
    if source not in dkms.sources():
        dkms.add(source)
    kernel = paths.kernel()
    if not dkms.has_headers(kernel):
        print(
            "Module build for kernel %s was skipped since the\nkernel headers for this kernel do not seem "
            "to be installed." % kernel
        )
    for release in dkms.kernels():
        print("Building for %s" % release)
        try:
            dkms.install(source, release)
        except dkms.DkmsError as error:
            print(error, file=sys.stderr)
            return error.status
        print("Done.")
    return 0
