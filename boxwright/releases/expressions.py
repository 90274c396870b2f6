"""Expressions of a package that is read and not run."""

from __future__ import annotations

import ast
import enum
import itertools
import operator
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from boxwright.releases.natives import MOST_ITEMS
from boxwright.releases.recorder import Recorder
from boxwright.releases.values import (
    External,
    Field,
    FieldInfo,
    Frame,
    Function,
    Instance,
    Special,
    Unknown,
    Unreadable,
)

if TYPE_CHECKING:
    from boxwright.releases.interpreter import Interpreter

_BINARY: Mapping[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: operator.pow, ast.BitAnd: operator.and_,
    ast.LShift: operator.lshift,
}  # fmt: skip
_COMPARE: Mapping[type, Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le,
    ast.Gt: operator.gt, ast.GtE: operator.ge,
    ast.Is: operator.is_, ast.IsNot: operator.is_not,
    ast.In: lambda one, many: one in many, ast.NotIn: lambda one, many: one not in many,
}  # fmt: skip


@dataclass(frozen=True)
class Bound:
    """A method of the recording parser."""

    recorder: Recorder
    name: str

    def call(self, given: list[Any], named: Mapping[str, Any]) -> Any:
        """Call it."""
        return self.recorder.call(self.name, given, named)


def evaluate(reader: Interpreter, node: ast.expr, frame: Frame) -> Any:
    """The value. Raises Unreadable."""
    found = _HANDLERS.get(type(node))
    if found is None:
        raise Unreadable(f"{type(node).__name__} is not followed")
    return found(reader, node, frame)


def truth(value: Any) -> bool:
    """Whether a value counts as true. Raises Unreadable where it is not known."""
    if isinstance(value, (Unknown, External)):
        raise Unreadable(value.reason if isinstance(value, Unknown) else f"{value.path} is not known")
    return True if isinstance(value, (Instance, Function)) else bool(value)


def items(value: Any) -> list[Any]:
    """What an iteration yields. Raises Unreadable for what is not plain."""
    if isinstance(value, (list, tuple, set, frozenset, dict, str, range, Iterator)):
        found = list(itertools.islice(value, MOST_ITEMS + 1))
        if len(found) > MOST_ITEMS:
            raise Unreadable("an iteration of very many steps")
        return found
    if isinstance(value, type) and issubclass(value, enum.Enum):
        return list(value)
    if type(value).__name__ in ("dict_items", "dict_keys", "dict_values"):
        return list(value)
    raise Unreadable(f"{shown(value)} cannot be gone through")


def shown(value: Any) -> str:
    """A value as a message names it."""
    if isinstance(value, Unknown):
        return value.reason
    if isinstance(value, External):
        return value.path
    return str(getattr(value, "__name__", None) or getattr(value, "name", None) or type(value).__name__)


def loaded(target: ast.expr) -> ast.expr:
    """The same place, as it is read."""
    return ast.parse(ast.unparse(target), mode="eval").body


def last_name(node: ast.expr) -> str:
    """The last part of a decorator's name."""
    if isinstance(node, ast.Call):
        return last_name(node.func)
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def operate(op: ast.operator, left: Any, right: Any) -> Any:
    """One arithmetical operation, among plain values."""
    known(left, right)
    if isinstance(op, ast.BitOr):
        if type(left) in (set, frozenset, dict, int) and type(left) is type(right):
            return operator.or_(left, right)
        return typing.Union[left, right]  # noqa: UP007 - both are values here
    if _large(op, left, right):
        raise Unreadable("a very large value")
    found = _BINARY.get(type(op))
    if found is None:
        raise Unreadable(f"the operator {type(op).__name__} is not followed")
    return found(left, right)


def _large(op: ast.operator, left: Any, right: Any) -> bool:
    """Whether an operation would take the machine's memory or time."""
    if isinstance(op, (ast.Pow, ast.LShift)):
        return not (_number(left, 1 << 32) and _number(right, 64))
    if not isinstance(op, ast.Mult):
        return False
    many, times = (left, right) if isinstance(right, int) else (right, left)
    return hasattr(many, "__len__") and len(many) * max(0, times) > MOST_ITEMS


def _number(value: Any, most: int) -> bool:
    return isinstance(value, (int, float)) and abs(value) <= most


def known(*values: Any) -> None:
    """Raise Unreadable where one of the values is not known."""
    for value in values:
        if isinstance(value, Unknown):
            raise Unreadable(value.reason)


def plain_attribute(value: Any, name: str) -> Any:
    """An attribute of a plain value: of types, enumerations and fields only."""
    known(value)
    if isinstance(value, (Field, FieldInfo)) or (isinstance(value, enum.Enum) and name in ("name", "value")):
        return getattr(value, name)
    if isinstance(value, Function) and name in ("__name__", "__doc__"):
        return value.name if name == "__name__" else ""
    if isinstance(value, type) and issubclass(value, enum.Enum):
        if name in value.__members__:
            return value[name]
        if name == "__members__":
            return dict(value.__members__)
    if name in ("__name__", "__module__", "__doc__", "__mro__", "__args__", "__origin__"):
        return getattr(value, name)
    if type(value).__name__ == "SimpleNamespace":
        return getattr(value, name)
    raise Unreadable(f"{shown(value)}.{name} is not followed")


def _constant(_: Interpreter, node: ast.Constant, __: Frame) -> Any:
    return node.value


def _name(reader: Interpreter, node: ast.Name, frame: Frame) -> Any:
    value = reader.name(node.id, frame)
    known(value)
    return value


def _sequence(reader: Interpreter, node: ast.List | ast.Tuple | ast.Set, frame: Frame) -> Any:
    found: list[Any] = []
    for one in node.elts:
        if isinstance(one, ast.Starred):
            found += items(reader.evaluate(one.value, frame))
        else:
            found.append(reader.evaluate(one, frame))
    return (
        found if isinstance(node, ast.List) else tuple(found) if isinstance(node, ast.Tuple) else set(found)
    )


def _dict(reader: Interpreter, node: ast.Dict, frame: Frame) -> dict[Any, Any]:
    made: dict[Any, Any] = {}
    for key, value in zip(node.keys, node.values, strict=True):
        if key is None:
            made.update(reader.evaluate(value, frame))
        else:
            made[reader.evaluate(key, frame)] = reader.attempt(value, frame)
    return made


def _joined(reader: Interpreter, node: ast.JoinedStr, frame: Frame) -> str:
    parts = []
    for one in node.values:
        value = reader.evaluate(one.value if isinstance(one, ast.FormattedValue) else one, frame)
        if not isinstance(value, (str, int, float)):
            raise Unreadable("a text with what is not plain in it")
        parts.append(str(value))
    return "".join(parts)


def _binary(reader: Interpreter, node: ast.BinOp, frame: Frame) -> Any:
    return operate(node.op, reader.evaluate(node.left, frame), reader.evaluate(node.right, frame))


def _unary(reader: Interpreter, node: ast.UnaryOp, frame: Frame) -> Any:
    value = reader.evaluate(node.operand, frame)
    if isinstance(node.op, ast.Not):
        return not truth(value)
    known(value)
    return -value if isinstance(node.op, ast.USub) else +value if isinstance(node.op, ast.UAdd) else ~value


def _boolean(reader: Interpreter, node: ast.BoolOp, frame: Frame) -> Any:
    value: Any = None
    for one in node.values:
        value = reader.evaluate(one, frame)
        if truth(value) is isinstance(node.op, ast.Or):
            return value
    return value


def _compare(reader: Interpreter, node: ast.Compare, frame: Frame) -> bool:
    left = reader.evaluate(node.left, frame)
    for op, one in zip(node.ops, node.comparators, strict=True):
        right = reader.evaluate(one, frame)
        known(left, right)
        if not _COMPARE[type(op)](left, right):
            return False
        left = right
    return True


def _choice(reader: Interpreter, node: ast.IfExp, frame: Frame) -> Any:
    return reader.evaluate(node.body if reader.truth(node.test, frame) else node.orelse, frame)


def _subscript(reader: Interpreter, node: ast.Subscript, frame: Frame) -> Any:
    value = reader.evaluate(node.value, frame)
    known(value)
    if isinstance(value, External):
        if value.name == "SkipValidation":  # pydantic's way of annotating a type
            return typing.Annotated[reader.evaluate(node.slice, frame), value]
        return value
    if isinstance(value, Special):
        return External(f"builtins.{value.name}")  # type[X], as an annotation
    if isinstance(value, type) and "_source" in value.__dict__:
        return value  # a generic class of the package
    if isinstance(node.slice, ast.Slice):
        low, high = (
            reader.evaluate(one, frame) if one else None for one in (node.slice.lower, node.slice.upper)
        )
        return value[low:high]
    key = reader.evaluate(node.slice, frame)
    return value[key]


def _attribute(reader: Interpreter, node: ast.Attribute, frame: Frame) -> Any:
    value = reader.attribute(reader.evaluate(node.value, frame), node.attr)
    known(value)
    return value


def _call(reader: Interpreter, node: ast.Call, frame: Frame) -> Any:
    function = reader.evaluate(node.func, frame)
    given: list[Any] = []
    for one in node.args:
        if isinstance(one, ast.Starred):
            given += items(reader.evaluate(one.value, frame))
        else:
            given.append(reader.attempt(one, frame))
    named: dict[str, Any] = {}
    for keyword in node.keywords:
        if keyword.arg is None:
            named.update(reader.evaluate(keyword.value, frame))
        else:
            named[keyword.arg] = reader.attempt(keyword.value, frame)
    if not isinstance(function, (Bound, Function)) and not isinstance(function, type):
        known(*given)
    return reader.call(function, given, named, frame)


def _lambda(reader: Interpreter, node: ast.Lambda, frame: Frame) -> Function:
    return reader.function("<lambda>", node, frame)


def _walrus(reader: Interpreter, node: ast.NamedExpr, frame: Frame) -> Any:
    value = reader.evaluate(node.value, frame)
    frame.names[node.target.id] = value
    return value


def _each(reader: Interpreter, generators: list[ast.comprehension], frame: Frame) -> Iterator[Frame]:
    if not generators:
        yield frame
        return
    first, *rest = generators
    for value in items(reader.evaluate(first.iter, frame)):
        inner = Frame(frame.module, {}, frame, frame.owner)
        reader.bind(first.target, value, inner)
        if all(reader.truth(one, inner) for one in first.ifs):
            yield from _each(reader, rest, inner)


def _comprehension(
    reader: Interpreter, node: ast.ListComp | ast.SetComp | ast.GeneratorExp, frame: Frame
) -> Any:
    found = [reader.evaluate(node.elt, inner) for inner in _each(reader, node.generators, frame)]
    if isinstance(node, ast.GeneratorExp):
        return iter(found)
    return set(found) if isinstance(node, ast.SetComp) else found


def _mapping(reader: Interpreter, node: ast.DictComp, frame: Frame) -> dict[Any, Any]:
    return {
        reader.evaluate(node.key, inner): reader.evaluate(node.value, inner)
        for inner in _each(reader, node.generators, frame)
    }


_HANDLERS: Mapping[type, Callable[[Any, Any, Frame], Any]] = {
    ast.Constant: _constant, ast.Name: _name, ast.List: _sequence, ast.Tuple: _sequence, ast.Set: _sequence,
    ast.Dict: _dict, ast.JoinedStr: _joined, ast.BinOp: _binary, ast.UnaryOp: _unary, ast.BoolOp: _boolean,
    ast.Compare: _compare, ast.IfExp: _choice, ast.Subscript: _subscript, ast.Attribute: _attribute,
    ast.Call: _call, ast.Lambda: _lambda, ast.NamedExpr: _walrus, ast.ListComp: _comprehension,
    ast.SetComp: _comprehension, ast.GeneratorExp: _comprehension, ast.DictComp: _mapping,
}  # fmt: skip
