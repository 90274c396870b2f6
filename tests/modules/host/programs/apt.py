"""dpkg and apt over {installed, repository, held, depends, conflicts, unfinished, automatic}."""

import re

NAMES = ["dpkg", "dpkg-query", "apt-get", "apt-mark", "apt-cache"]


def order(version):
    return [int(part) for part in re.findall("[0-9]+", version)]


def newest(world, package):
    return sorted(world["repository"][package], key=order)[-1]


def run(name, words, world):
    if name == "apt-get":
        return apt_get(words, world)
    if name == "dpkg-query":
        states = {name: "iF " if name in world["unfinished"] else "ii " for name in world["installed"]}
        lines = [f"{name}\t{v}\t{states[name]}\tamd64\n" for name, v in sorted(world["installed"].items())]
        return 0, "".join(lines), ""
    if name == "apt-cache":
        found = [(name, v) for name in words[1:] for v in reversed(world["repository"].get(name, []))]
        return 0, "".join(f" {name} | {v} | http://there ./ Packages\n" for name, v in found), ""
    if name == "apt-mark":
        return apt_mark(words, world)
    if words[0] == "--print-architecture":
        return 0, "amd64\n", ""
    if words[0] == "--compare-versions":
        return (0 if order(words[1]) < order(words[3]) else 1), "", ""
    if world.get("unrepairable"):
        return 1, "", f"dpkg: error processing package {world['unrepairable']} (--configure):\n"
    world["unfinished"] = []
    return 0, "", ""


def apt_mark(words, world):
    held, changed = set(world["held"]), set(words[1:])
    if words[0] == "showhold":
        return 0, "".join(f"{name}\n" for name in sorted(held)), ""
    if words[0] == "showauto":
        return 0, "".join(f"{name}\n" for name in world["automatic"]), ""
    if words[0] == "auto":
        world["automatic"] = sorted({*world["automatic"], *words[1:]})
        return 0, "", ""
    world["held"] = sorted(held | changed if words[0] == "hold" else held - changed)
    return 0, "", ""


def apt_get(words, world):
    verb = next(word for word in words if word in ("update", "install", "remove", "purge"))
    if verb == "update":
        world["repository"].update(world.pop("after_update", {}))
        world.pop("download_fails_once", None)
        return 0, "", ""
    if "--fix-broken" in words and world.get("impossible_to_mend"):
        return 100, "", world["impossible_to_mend"]
    steps = planned(words, verb, world)
    if "--simulate" in words:
        if world.get("impossible"):
            return 100, "", world["impossible"]
        return 0, "".join(line(*step) for step in steps), ""
    if "--download-only" in words:
        if world.get("download_fails") or world.get("download_fails_once"):
            return 100, "", "E: Failed to fetch http://there/x.deb  404  Not Found\n"
        return 0, "", ""
    for _, package, _, new in steps:
        if new is None:
            world["installed"].pop(package, None)
            world["held"] = [name for name in world["held"] if name != package]
        else:
            world["installed"][package] = new
            named = any(word.partition("=")[0] == package for word in words)
            world["automatic"] = [name for name in world["automatic"] if not (named and name == package)]
        if world.get("dies"):
            world["unfinished"] = [package]
            return 100, "", "E: Sub-process /usr/bin/dpkg returned an error code (1)\n"
    return 0, "", ""


def line(kind, package, old, new):
    return (
        f"{kind} {package}" + (f" [{old}]" if old else "") + (f" ({new} there [amd64])" if new else "") + "\n"
    )


def planned(words, verb, world):
    installed, wanted, leaving = world["installed"], {}, set()
    for word in [word for word in words[words.index(verb) + 1 :] if word != "--purge"]:
        package, _, version = word.partition("=")
        if verb != "install" or package.endswith("-"):
            leaving.add(package.rstrip("-"))
        else:
            wanted[package] = version or installed.get(package) or newest(world, package)
    queue = list(wanted)
    while queue:
        for need in world["depends"].get(queue.pop(), []):
            package, _, version = need.partition("=")
            met = package in wanted or (package in installed and version in ("", installed[package]))
            if not met:
                wanted[package] = version or newest(world, package)
                queue.append(package)
    leaving |= {other for package in wanted for other in world["conflicts"].get(package, [])}
    leaving &= set(installed)
    if "APT::Get::AutomaticRemove=true" in words:
        stay = [name for name in installed if name not in leaving]
        needed = {need.partition("=")[0] for name in stay for need in world["depends"].get(name, [])}
        leaving |= {name for name in world["automatic"] if name in installed and name not in needed}
    steps = [("Remv", name, installed[name], None) for name in sorted(leaving)]
    changed = {name: v for name, v in sorted(wanted.items()) if installed.get(name) != v}
    return steps + [("Inst", name, installed.get(name), v) for name, v in changed.items()]
