"""The options that the plan writes itself, checked like everybody's."""

from __future__ import annotations

from boxwright.engines.command import OptionProblem
from boxwright.engines.vllm_options import Checker, unsafe


class Writer:
    """The plan's own options, checked like everybody's."""

    def __init__(self, checker: Checker) -> None:
        self._checker = checker
        self.argv: list[str] = []
        self.problems: list[OptionProblem] = []

    def write(self, key: str, option: str, value: str) -> None:
        """An option with its value; what the release does not take becomes a problem of the declared key."""
        known = self._checker.table.option(option, self._checker.release)
        title = self._checker.dialect.title
        if known is None:
            have = self._checker.table.exists_in(option)
            since = f"since {title} {have[0]}" if have else f"in no release of {title}"
            self.refuse(
                key,
                "option-not-yet",
                f"{key} needs the option {option}, which exists {since}; the "
                f"image has {self._checker.release}",
                (f"an image of {title} {have[0]} or newer" if have else "another image", f"leave {key} out"),
            )
            return
        if known.choices and not known.many and value not in known.choices:
            self.refuse(
                key,
                "option-value",
                f"{title} {self._checker.release} knows no {option} {value}",
                ("one of " + ", ".join(known.choices),),
            )
            return
        harm = unsafe(value)
        if harm:
            self.refuse(
                key or "name", "option-value", f"the value {value[:60]!r} {harm}", ("write it plainly",)
            )
            return
        self.argv += [f"--{option}", value]

    def switch(self, option: str) -> None:
        """An option without a value, left out where the release has none."""
        if self._checker.table.option(option, self._checker.release):
            self.argv.append(f"--{option}")

    def refuse(self, key: str, rule: str, message: str, fix: tuple[str, ...]) -> None:
        """Note a problem of a declared key."""
        self.problems.append(OptionProblem(rule, key, message, fix, sure=self._checker.exact))
