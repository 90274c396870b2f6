"""The verb chat: talking with a served model from the terminal, or asking it once from a script."""

from __future__ import annotations

import ipaddress
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field

from boxwright.cli import keys, lab
from boxwright.cli.console import say, say_aside, say_on, show_json, wrapped
from boxwright.cli.deployments import hosts_that_deploy, writing
from boxwright.cli.endpoint import Answer, Endpoint
from boxwright.cli.interrupts import interrupts
from boxwright.cli.side_by_side import side_by_side
from boxwright.cli.ssh_forward import forwarded
from boxwright.cli.ssh_route import ssh_words
from boxwright.cli.ssh_trouble import by_host, tell_missed
from boxwright.cli.targets import some, targets
from boxwright.cli.validating import refuse_problems
from boxwright.cli.words import whole
from boxwright.errors import EXIT_BAD_INPUT, EXIT_FAILED, UserError
from boxwright.spec.box import Deployment
from boxwright.spec.validate import judged_box

MOST_TOKENS = 1_000_000
#: Longest question that is read from standard input, in characters.
LONGEST = 4_000_000
HELP = (
    "/reset begins anew; /system TEXT tells the model how to be, and begins anew; /system shows it; "
    "Ctrl-C stops an answer; Ctrl-D ends"
)


@dataclass(frozen=True)
class Party:
    """Whom to talk with: a box's deployment, and the key that it asks for."""

    name: str
    deployment: Deployment
    ssh: Sequence[str]
    key: str

    @contextmanager
    def talk(self, system: str, most: int | None) -> Iterator[Talk]:
        """A conversation that has not begun. Raises UserError where there is no way to the model."""
        bound = ipaddress.ip_address(self.deployment.bind)
        anywhere = "::1" if bound.version == 6 else "127.0.0.1"
        address = anywhere if bound.is_unspecified else self.deployment.bind
        with forwarded(self.name, self.ssh, address, self.deployment.port) as path:
            endpoint = Endpoint(self.name, path, self.key)
            yield Talk(endpoint, endpoint.model(), system=readable(system), most=most)


def chat(
    hosts: Sequence[str],
    inventories: Sequence[str],
    *,
    every: bool = False,
    deployment: str | None = None,
    prompt: str = "",
    system: str = "",
    most: str = "",
    as_json: bool = False,
) -> None:
    """Talk until Ctrl-D; with a prompt, or standard input that is no terminal, ask each box once and end."""
    limit = whole("--max-tokens", most, MOST_TOKENS) if most else None
    inventory, names, paths = targets(hosts, inventories, every=every)
    names = hosts_that_deploy(inventory, names, deployment, "so there is nothing to talk with", every=every)
    names = writing(inventory, names, deployment, "chat talks with what writes text", every=every)
    refuse_problems(inventory, names)
    boxes = {name: judged_box(name, inventory.variables(name)) for name in names}
    wanted = {name: keys.chosen(box, deployment) for name, box in boxes.items()}
    alone = len(names) == 1 and not every
    question = readable(prompt or ("" if sys.stdin.isatty() else piped())).strip()
    _refuse_question(question, names, as_json=as_json)
    lab.ensure_simulated(inventory, names, as_json=as_json or bool(question))
    known, missed = keys.fetched(
        inventory, {name: keys.key_path(box, deployment) for name, box in boxes.items()}, paths
    )
    parties = {
        name: Party(name, wanted[name], ssh_words(name, inventory.variables(name)), key)
        for name, key in known.items()
    }
    if not question:
        for error in missed.values():
            raise error
        with parties[names[0]].talk(system, limit) as talk:
            converse(talk)
        return

    def ask(name: str) -> tuple[str, Answer]:
        with parties[name].talk(system, limit) as talk:
            answer = talk.ask(question, quiet=as_json or not alone)
            if answer.stopped:
                raise KeyboardInterrupt
            return talk.model, answer

    found, failed = side_by_side(list(parties), ask)
    missed |= failed
    if as_json:
        told = {
            name: {"host": name, "deployment": wanted[name].name, "model": model, **answer.to_json()}
            for name, (model, answer) in found.items()
        }
        show_json(by_host(told, missed, alone=alone))
    else:
        if not alone:
            for name, (_, answer) in found.items():
                say(f"{name}:")
                shown(answer)
        tell_missed(missed, alone=alone, what="could not be asked")
    if missed:
        raise SystemExit(EXIT_FAILED)


def _refuse_question(question: str, names: Sequence[str], *, as_json: bool) -> None:
    """Raise UserError where there is nothing to ask, or several boxes to talk with by hand."""
    ways = ("--prompt TEXT", "the question on standard input")
    if not question and (as_json or not sys.stdin.isatty()):
        raise UserError("there is nothing to ask", status=EXIT_BAD_INPUT, ways_out=ways)
    if not question and len(names) > 1:
        raise UserError(
            f"a conversation is with one box, and these are {len(names)}",
            why="several can be asked one thing, each of them once",
            status=EXIT_BAD_INPUT,
            ways_out=(*ways, "--host one of: " + ", ".join(some(names))),
        )


def piped() -> str:
    """The question on standard input. Raises UserError for one that would have to be cut."""
    raw = getattr(sys.stdin, "buffer", None)
    text = raw.read(4 * LONGEST + 1).decode("utf-8", "replace") if raw else sys.stdin.read(LONGEST + 1)
    if len(text) > LONGEST:
        raise UserError(
            f"the question on standard input is longer than {LONGEST:,} characters", status=EXIT_BAD_INPUT
        )
    return str(text)


def readable(text: str) -> str:
    """The text with what is no UTF-8 as a mark: no engine takes half a character."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


@dataclass
class Talk:
    """A conversation: what was said, and to whom."""

    endpoint: Endpoint
    model: str
    system: str = ""
    most: int | None = None
    said: list[dict[str, str]] = field(default_factory=list)

    def ask(self, question: str, *, quiet: bool = False) -> Answer:
        """Ask, show the answer as it comes, and its figures; Ctrl-C stops it and keeps what came.

        Raises UserError. On a terminal the reasoning is dim above the answer; elsewhere it is on standard
        error, for a program wants the answer alone.
        """
        asked = {"role": "user", "content": question}
        before = [{"role": "system", "content": self.system}] if self.system else []
        answer, shown = Answer(), Shown(quiet)
        with closing(
            self.endpoint.ask(self.model, [*before, *self.said, asked], answer, self.most)
        ) as pieces:
            try:
                for piece in pieces:
                    interrupts.check()
                    shown.piece(piece.text, reasoning=piece.reasoning)
            except KeyboardInterrupt:
                answer.stopped = True
        self.said += [asked, {"role": "assistant", "content": answer.text}]
        shown.end(answer)
        return answer


class Shown:
    """An answer on its way to the screen."""

    def __init__(self, quiet: bool) -> None:
        self._quiet, self._reasoning, self._begun = quiet, False, False
        self._apart = not sys.stdout.isatty()

    def piece(self, text: str, *, reasoning: bool) -> None:
        """Show the next piece."""
        if self._quiet:
            return
        if self._begun and reasoning != self._reasoning:
            say_on("\n\n", aside=self._apart and self._reasoning)
            text = text.lstrip("\n")
        if not self._begun:
            text = text.lstrip("\n")
        self._begun, self._reasoning = self._begun or bool(text), reasoning
        say_on(text, dim=reasoning, aside=reasoning and self._apart)

    def end(self, answer: Answer) -> None:
        """Close the last line, and tell the figures."""
        if self._quiet:
            return
        if self._begun:
            say_on("\n", aside=self._apart and self._reasoning)
        say_on(figures(answer) + "\n", dim=True, aside=True)


def shown(answer: Answer) -> None:
    """Show a whole answer, as one that comes piece by piece is shown."""
    screen = Shown(quiet=False)
    for text, reasoning in ((answer.reasoning, True), (answer.text, False)):
        if text:
            screen.piece(text, reasoning=reasoning)
    screen.end(answer)


def figures(answer: Answer) -> str:
    """Tokens and speed of an answer, in one line."""
    parts = []
    if answer.tokens is not None:
        parts.append(f"{answer.tokens:,} tokens")
    if (rate := answer.tokens_per_s) is not None:
        parts.append(f"{rate:.1f} tokens/s")
    if answer.first_s is not None:
        parts.append(f"the first after {answer.first_s:.2f} s")
    if answer.prompt_tokens is not None:
        cached = f", {answer.cached_tokens:,} of them cached" if answer.cached_tokens else ""
        parts.append(f"asked with {answer.prompt_tokens:,}{cached}")
    if answer.stopped:
        parts.append("stopped")
    elif answer.finish == "length":
        parts.append("cut off at its longest")
    return f"[{'; '.join(parts) or 'no answer'}]"


def converse(talk: Talk, ask: Callable[[str], str] = input) -> None:
    """Questions from the terminal until Ctrl-D. What the endpoint refuses ends no conversation."""
    say(f"{talk.endpoint.name} serves {talk.model}")
    say(wrapped(HELP))
    with _line_editing():
        while True:
            try:
                line = readable(ask("\n> ")).strip()
            except UnicodeDecodeError:
                say_aside("(that was no UTF-8; once more)")
                continue
            except EOFError:
                say()
                return
            except KeyboardInterrupt:
                say("\n(Ctrl-D ends)")
                continue
            if line.startswith("/"):
                command(talk, line)
            elif line:
                try:
                    talk.ask(line)
                except UserError as error:
                    say_aside(str(error))


def command(talk: Talk, line: str) -> None:
    """Do what a line with a slash says."""
    word, _, rest = line.partition(" ")
    if word == "/reset":
        talk.said.clear()
        say("(anew)")
    elif word == "/system" and rest.strip():
        talk.system = rest.strip()
        talk.said.clear()
        say("(anew, with that)")
    elif word == "/system":
        say(talk.system or "(none)")
    else:
        say(wrapped(HELP))


@contextmanager
def _line_editing() -> Iterator[None]:
    """Arrow keys and a memory of lines, where Python has them; the lines are kept nowhere."""
    try:
        import readline
    except ImportError:
        yield
        return
    readline.set_auto_history(True)
    try:
        yield
    finally:
        readline.clear_history()
