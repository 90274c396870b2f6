"""The values of a program that is read and not run: classes, functions, modules, what is not known."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


class Unreadable(Exception):
    """An expression or statement that cannot be worked out without running the program."""


class Return(Exception):
    """A function has its value."""

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value


class Raised(Exception):
    """A statement of the package raises an error."""


class Loop(Exception):
    """break, or continue."""

    def __init__(self, goes_on: bool) -> None:
        super().__init__()
        self.goes_on = goes_on


@dataclass(frozen=True)
class Special:
    """A function of Python that the interpreter answers itself, by its name."""

    name: str


@dataclass(frozen=True)
class Unknown:
    """A value that cannot be worked out. reason: why, with the place in the source."""

    reason: str


@dataclass(frozen=True)
class External:
    """Something of another package or of the standard library, by its full name; it is never called."""

    path: str

    @property
    def name(self) -> str:
        """Its own name."""
        return self.path.rpartition(".")[2]

    def __call__(self) -> None:
        """Only there because the typing module takes nothing else for a type. Raises Unreadable."""
        raise Unreadable(f"{self.path} is not part of the package")


@dataclass(eq=False)
class Module:
    """A module of the package. names: what its statements bound so far."""

    name: str
    names: dict[str, Any] = field(default_factory=dict)
    is_package: bool = False


@dataclass(frozen=True)
class Import:
    """A name that an import bound: looked up when it is first used. name: None for the module itself."""

    module: str
    name: str | None


@dataclass(eq=False)
class Frame:
    """The names that a statement sees: its own, those of the functions around it, the module's."""

    module: Module
    names: dict[str, Any]
    outer: Frame | None = None
    owner: type | None = None


@dataclass(eq=False)
class Function:
    """A function or lambda of the package, with the names that it was made among."""

    name: str
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    frame: Frame
    defaults: Mapping[str, Any]
    kind: str = "function"
    bound: Any = None


@dataclass(eq=False)
class Instance:
    """An object of a class of the package, known by the arguments that it was made with.

    text: what its own __repr__ gives, where it has one.
    """

    cls: type
    values: dict[str, Any]
    text: str | None = None

    def __repr__(self) -> str:
        """As a parser's dump writes a default."""
        return self.text or f"{self.cls.__name__}()"


#: In place of a default that a field does not have.
MISSING = External("dataclasses.MISSING")


@dataclass(frozen=True)
class FieldInfo:
    """What pydantic's Field or dataclasses.field says of a default."""

    default: Any = MISSING
    default_factory: Any = None
    init: bool = True


@dataclass(frozen=True)
class Field:
    """A field of a record class."""

    name: str
    type: Any
    default: Any
    default_factory: Any
    init: bool = True


@dataclass(eq=False)
class Source:
    """What is known of a class of the package beside its bases: its names, annotations, decorators."""

    node: ast.ClassDef
    frame: Frame
    names: dict[str, Any]
    annotations: dict[str, ast.expr]
    decorators: tuple[str, ...]
    #: Annotations that a statement gave it afterwards, worked out already.
    replaced: dict[str, Any] | None = None


def source_of(value: Any) -> Source | None:
    """The source of a class of the package, None for anything else."""
    found = value.__dict__.get("_source") if isinstance(value, type) else None
    return found if isinstance(found, Source) else None


def attribute(cls: type, name: str) -> tuple[type, Any] | None:
    """A name in a class or its bases, with the class that has it."""
    for one in cls.__mro__:
        source = source_of(one)
        if source and name in source.names:
            return one, source.names[name]
    return None


def annotated(cls: type) -> list[tuple[type, str]]:
    """The annotated names of a class and its bases in the order of a record's fields."""
    found: dict[str, type] = {}
    for one in reversed(cls.__mro__):
        source = source_of(one)
        if source:
            names = source.replaced if source.replaced is not None else source.annotations
            for name in names:
                found[name] = one
    return [(owner, name) for name, owner in found.items()]


def is_record(cls: Any) -> bool:
    """Whether a class is a dataclass, or a struct of msgspec."""
    if not isinstance(cls, type):
        return False
    for one in cls.__mro__:
        source = source_of(one)
        if one is Struct or (source and {"dataclass", "config"} & set(source.decorators)):
            return True
    return False


class Struct:
    """Stands for msgspec.Struct among the bases of a class."""
