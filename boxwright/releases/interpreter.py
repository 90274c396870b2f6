"""Reads a Python package by working its statements out, without running any of it.

Plain values, the package's own functions and its record classes are followed; whatever would need the world
(the system, a card, another package) is Unknown, and so is all that depends on it.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from boxwright.releases import attributes, calls, expressions, statements
from boxwright.releases.natives import BUILTINS, EXTERNALS
from boxwright.releases.recorder import Recorder
from boxwright.releases.specials import SPECIALS
from boxwright.releases.values import External, Frame, Function, Import, Module, Raised, Unknown, Unreadable

#: Statements and expressions of one reading, and calls within calls: a package that needs more is refused.
MOST_STEPS, MOST_DEPTH = 4_000_000, 60
#: Python's own limit of calls within calls while a package is read: MOST_DEPTH of the package's take many.
_STACK = 12_000
#: What a reading may trip over in a package that was never meant for it.
TROUBLE = (
    Unreadable,
    TypeError,
    KeyError,
    ValueError,
    AttributeError,
    IndexError,
    StopIteration,
    OverflowError,
)


class Interpreter:
    """The reading of one package. files: the text of a file in the package, None where there is none.

    overrides: full name -> what it is on the machine that the engine is read for.
    """

    def __init__(
        self, package: str, files: Callable[[str], str | None], overrides: Mapping[str, Any] | None = None
    ) -> None:
        self.package = package
        self.problems: list[str] = []
        self._files = files
        self.overrides = overrides or {}
        self._modules: dict[str, Module] = {}
        self._steps, self._depth = 0, 0

    # Modules and names

    def module(self, name: str) -> Module:
        """A module of the package, read when it is first asked for. Raises Unreadable: there is none."""
        if name in self._modules:
            return self._modules[name]
        base = name.replace(".", "/")
        text, is_package = self._files(f"{base}/__init__.py"), True
        if text is None:
            text, is_package = self._files(f"{base}.py"), False
        if text is None:
            raise Unreadable(f"the package has no module {name}")
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError) as error:
            raise Unreadable(f"module {name} is not Python that can be parsed: {error}") from error
        made = Module(name, {"__name__": name}, is_package)
        self._modules[name] = made
        try:
            self.run(tree.body, Frame(made, made.names))
        except Raised as error:
            raise Unreadable(str(error)) from error
        return made

    def find(self, path: str) -> Any:
        """A name of the package by its full path, `vllm.config.ModelConfig`."""
        module, _, name = path.rpartition(".")
        return self.attribute(self.module(module), name)

    def name(self, name: str, frame: Frame) -> Any:
        """What a name is bound to where a statement stands."""
        place: Frame | None = frame
        while place is not None:
            if name in place.names:
                return self.resolved(place.names[name])
            place = place.outer
        if name in frame.module.names:
            return self.resolved(frame.module.names[name])
        if name in SPECIALS:
            return SPECIALS[name]
        if name in BUILTINS:
            return BUILTINS[name]
        raise Unreadable(f"{name} is not defined in {frame.module.name}")

    def resolved(self, value: Any) -> Any:
        """What an import stands for."""
        return self.imported(value.module, value.name) if isinstance(value, Import) else value

    def imported(self, module: str, name: str | None) -> Any:
        """What `from module import name` binds."""
        path = f"{module}.{name}" if name else module
        if path in self.overrides:
            return self.overrides[path]
        if module == self.package or module.startswith(self.package + "."):
            if name is None:
                return self.module(module)
            try:
                return self.attribute(self.module(module), name)
            except Unreadable:
                return self.module(path)
        return self.external(path)

    def external(self, path: str) -> Any:
        """Something from outside of the package."""
        if path in SPECIALS:
            return SPECIALS[path]
        return EXTERNALS.get(path, External(path))

    # Statements

    def run(self, body: list[ast.stmt], frame: Frame) -> None:
        """Statement after statement. One that cannot be worked out leaves its names Unknown."""
        for statement in body:
            self.step()
            try:
                statements.follow(self, statement, frame)
            except TROUBLE as error:
                self.trouble(statement, frame, error)

    def step(self) -> None:
        """Count one. Raises Unreadable when there were too many."""
        self._steps += 1
        if self._steps > MOST_STEPS:
            raise RecursionError(f"{self.package} takes more than {MOST_STEPS} steps to read")

    def trouble(self, statement: ast.stmt, frame: Frame, error: Exception) -> None:
        """A statement that cannot be worked out: a problem where it may have added an option."""
        reason = f"{frame.module.name}:{statement.lineno}: {error or type(error).__name__}"
        for name in ast.walk(statement):
            if isinstance(name, ast.Name) and isinstance(frame.names.get(name.id), Recorder):
                self.problems.append(reason)
                break
        if any(isinstance(part, ast.Return) for part in _own(statement)):
            raise Raised(reason)
        # What a branch that is left out would have set is as unknown as the condition.
        for part in ast.walk(statement):
            if isinstance(part, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
                for target in part.targets if isinstance(part, ast.Assign) else [part.target]:
                    self.unknown(target, frame, reason)

    def unknown(self, target: ast.expr, frame: Frame, reason: str) -> None:
        """Bind a target to Unknown."""
        if isinstance(target, ast.Name):
            frame.names[target.id] = Unknown(reason)
        elif isinstance(target, (ast.Tuple, ast.List)):
            for one in target.elts:
                self.unknown(one, frame, reason)
        elif isinstance(target, (ast.Attribute, ast.Subscript)):
            try:
                self.bind(target, Unknown(reason), frame)
            except TROUBLE:
                return

    def function(
        self, name: str, node: ast.FunctionDef | ast.Lambda, frame: Frame, kind: str = "function"
    ) -> Function:
        """A function with the defaults that it was defined with."""
        arguments = node.args
        names = [one.arg for one in (*arguments.posonlyargs, *arguments.args)]
        pairs = [*zip(reversed(names), reversed(arguments.defaults), strict=False)]
        only = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        pairs += [(one.arg, value) for one, value in only if value is not None]
        defaults = {one: self.attempt(value, frame) for one, value in pairs}
        return Function(name, node, frame, defaults, kind)

    def bind(self, target: ast.expr, value: Any, frame: Frame) -> None:
        """Assign."""
        if isinstance(target, ast.Name):
            frame.names[target.id] = value
        elif isinstance(target, ast.Subscript):
            container = self.evaluate(target.value, frame)
            if not isinstance(container, (dict, list)):
                raise Unreadable(f"an item of {ast.unparse(target.value)} is set")
            container[self.evaluate(target.slice, frame)] = value
        elif isinstance(target, ast.Attribute):
            self.set_attribute(self.evaluate(target.value, frame), target.attr, value)
        elif isinstance(target, (ast.Tuple, ast.List)):
            for one, part in zip(target.elts, expressions.items(value), strict=True):
                self.bind(one, part, frame)
        else:
            raise Unreadable(f"{ast.unparse(target)} is assigned")

    def set_attribute(self, value: Any, name: str, given: Any) -> None:
        """Assign an attribute of a class or an object of the package."""
        attributes.put(value, name, given)

    # Expressions

    def truth(self, node: ast.expr, frame: Frame) -> bool:
        """Whether a condition holds. Raises Unreadable where that is not known."""
        return expressions.truth(self.evaluate(node, frame))

    def evaluate(self, node: ast.expr, frame: Frame) -> Any:
        """The value of an expression. Raises Unreadable."""
        self.step()
        return expressions.evaluate(self, node, frame)

    def attempt(self, node: ast.expr, frame: Frame) -> Any:
        """The value of an expression, Unknown where it cannot be worked out."""
        try:
            return self.evaluate(node, frame)
        except TROUBLE as error:
            return Unknown(f"{frame.module.name}:{node.lineno}: {error or type(error).__name__}")

    def annotation(self, node: ast.expr | None, frame: Frame) -> Any:
        """The type that an annotation names; a quoted one too."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node = ast.parse(node.value, mode="eval").body
        if node is None:
            raise Unreadable("no annotation")
        return self.evaluate(node, frame)

    def attribute(self, value: Any, name: str) -> Any:
        """value.name. Raises Unreadable."""
        return attributes.get(self, value, name)

    # Calls

    def call(self, function: Any, given: list[Any], named: Mapping[str, Any], frame: Frame) -> Any:
        """The result of a call. Raises Unreadable."""
        return calls.call(self, function, given, named, frame)

    @contextmanager
    def deeper(self, name: str) -> Iterator[None]:
        """One call further in. Raises Unreadable where there is no end to them."""
        self._depth += 1
        try:
            if self._depth > MOST_DEPTH:
                raise Unreadable(f"{name}: calls within calls without an end")
            yield
        finally:
            self._depth -= 1


def _own(statement: ast.stmt) -> Iterator[ast.AST]:
    """A statement's parts, without those of functions and classes that it defines."""
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return
    yield statement
    for part in ast.iter_child_nodes(statement):
        if isinstance(part, ast.stmt):
            yield from _own(part)
        else:
            yield part


@contextmanager
def enough_stack() -> Iterator[None]:
    """Room for the calls of a reading; afterwards the limit is as it was."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, _STACK))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)
