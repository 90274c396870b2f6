"""The words of an apt-get command that changes packages."""

from __future__ import annotations

from typing import Dict, List

from ansible.module_utils.packages import Wanted, choose


def resolve(due: List[Wanted], versions: Dict[str, List[str]]) -> List[str]:
    """apt's arguments (name or name=version, the newest that fits) for the packages. Raises StaleError."""
    chosen = choose(due, versions)
    return ["%s=%s" % (one.name, chosen[one.name]) if one.version else one.name for one in due]


def command(arguments: List[str], leaving: List[str], purge: bool) -> List[str]:
    """The apt-get command without its options; "name-" stands for a removal."""
    if not arguments:
        return ["purge" if purge else "remove", *leaving]
    named = {argument.split("=")[0] for argument in arguments}
    words = ["install", *(["--purge"] if purge else []), *arguments]
    return words + [name + "-" for name in leaving if name not in named]
