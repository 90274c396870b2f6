"""What an uninstall has to bring back on a host, as JSON: given to its Python with the places to look into.

Left out are the users that packages make, who stay by Debian's policy, and files that the loader or the
engine around a simulated host makes anew.
"""

import hashlib
import json
import subprocess
import sys
from pathlib import Path

USERS = [
    f"/etc/{name}{end}"
    for name in ("passwd", "group", "shadow", "gshadow", "subuid", "subgid")
    for end in ("", "-")
]
PASSING = {*USERS, "/etc/.pwd.lock", "/etc/ld.so.cache", "/etc/hosts", "/etc/resolv.conf", "/etc/hostname"}


def said(*argv):
    """The lines of a program, sorted."""
    done = subprocess.run(argv, stdout=subprocess.PIPE, text=True, timeout=60, check=False)
    return sorted(done.stdout.splitlines())


def entry(path):
    """What stands at a path: a link's target, a file's mode and content."""
    if path.is_symlink():
        return f"-> {path.readlink()}"
    if not path.is_file():
        return "folder" if path.is_dir() else "other"
    return f"{path.stat().st_mode & 0o7777:04o} {hashlib.sha256(path.read_bytes()).hexdigest()[:16]}"


def main():
    places = [Path(place) for place in sys.argv[1:]]
    paths = [path for place in places for path in (place, *place.rglob("*")) if place.exists()]
    systemctl = ("systemctl", "--no-legend", "--no-pager", "--plain")
    running = said(*systemctl, "list-units", "--type=service", "--state=running")
    state = {
        "packages": said("dpkg-query", "-W", "-f", "${binary:Package} ${Version} ${db:Status-Abbrev}\n"),
        "holds": said("apt-mark", "showhold"),
        "asked for by name": said("apt-mark", "showmanual"),
        "sources": said("apt-get", "indextargets", "--format", "$(SITE) $(RELEASE)"),
        "units": said(*systemctl, "list-unit-files"),
        "services": [line.split()[0] for line in running],
        "failed": said(*systemctl, "--failed"),
        "modules": sorted(path.name for path in Path("/sys/module").iterdir()),
        "files": sorted(f"{path} {entry(path)}" for path in paths if str(path) not in PASSING),
    }
    print(json.dumps(state))


if __name__ == "__main__":
    main()
