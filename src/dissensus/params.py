"""Settings with limits: the type of a field gives the values it may have.

A method is a frozen dataclass whose fields are annotated with the types below. The limits are
checked on construction, shown by `dissensus methods`, and used by the property tests.

>>> from dataclasses import dataclass
>>> @dataclass(frozen=True, kw_only=True)
... class Shrink(Settings):
...     strength: Positive = 1.0
>>> Shrink(strength=-1)
Traceback (most recent call last):
dissensus.errors.MethodError: strength = -1, but it must be above 0
"""

from __future__ import annotations

import json
import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from inspect import cleandoc
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    NamedTuple,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from annotated_types import Ge, Gt, Interval, Le, Lt

from .base.names import text
from .errors import MethodError

Positive = Annotated[float, Gt(0)]
NonNegative = Annotated[float, Ge(0)]
Probability = Annotated[float, Interval(ge=0, le=1)]
Count = Annotated[int, Interval(ge=1, le=10**6)]
Whole = Annotated[int, Interval(ge=0, le=10**6)]
Folds = Annotated[int, Interval(ge=1, le=100)]
Size = Annotated[int, Interval(ge=1, le=10**12)]  # of data
_SMALLEST, _LARGEST = 1e-30, 1e30  # of a float that is not zero: others over- or underflow


@dataclass(frozen=True, kw_only=True)
class Settings:
    """A dataclass whose fields are checked against the limits in their types."""

    def __post_init__(self) -> None:
        for field in describe_fields(type(self)):
            value = getattr(self, field.name)
            nonzero = isinstance(value, float) and value and math.isfinite(value)
            if nonzero and not _SMALLEST <= abs(value) <= _LARGEST:
                limits = f"its size must be between {_SMALLEST:g} and {_LARGEST:g}"
                raise MethodError(f"{field.name} = {value!r}, but {limits}")
            if not any(option.allows(value) for option in field.options):
                raise MethodError(f"{field.name} = {value!r}, but it must be {field.limits}")
            bases = [option.base for option in field.options]
            if isinstance(value, int) and float in bases and int not in bases:
                object.__setattr__(self, field.name, float(value))
            if isinstance(value, str) and Mapping in bases and value.lstrip().startswith("{"):
                object.__setattr__(self, field.name, _parse_table(field, value))

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002
        """Return the settings by name, as scikit-learn's `clone` needs them."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


class Option(NamedTuple):
    """One of the types that a setting may have."""

    base: Any  # without limits and arguments
    arguments: tuple[Any, ...]  # choices of a literal, types in a mapping
    bounds: tuple[tuple[str, Any, Callable[[Any, Any], bool]], ...]  # words, limit, comparison

    def allows(self, value: object) -> bool:
        """Return whether a value has this type and is within its limits."""
        if self.base is Literal:
            return value in self.arguments
        kind = (int, float) if self.base is float else self.base
        if not isinstance(value, kind) or (isinstance(value, bool) and self.base is not bool):
            return False
        if self.base is float and not math.isfinite(cast(float, value)):
            return False
        return all(compare(value, limit) for _, limit, compare in self.bounds)


class Field(NamedTuple):
    """One setting of a method."""

    name: str
    kind: Any  # the type as written, with its limits
    options: tuple[Option, ...]
    default: Any  # `MISSING` where there is none
    owner: type[Settings]

    @property
    def doc(self) -> str:
        """The description in the docstring of the class."""
        return _documented(self.owner).get(self.name, "")

    @property
    def limits(self) -> str:
        """The allowed values, in words."""
        words: list[str] = []
        for base, arguments, bounds in self.options:
            limits = " and ".join(f"{word} {limit}" for word, limit, _ in bounds)
            if base is Literal:
                words += map(str, arguments)
            elif limits and base is not int:
                words.append(limits)
            else:
                words.append(", ".join(filter(None, [_NAMES.get(base, str(base)), limits])))
        return " or ".join(words)


_DESCRIBED: dict[type[Settings], tuple[Field, ...]] = {}


def describe_fields(cls: type[Settings]) -> tuple[Field, ...]:
    """Return the settings of a class."""
    if cls not in _DESCRIBED:
        kinds = get_type_hints(cls, include_extras=True)
        _DESCRIBED[cls] = tuple(
            Field(
                field.name,
                kinds[field.name],
                _options(kinds[field.name]),
                field.default_factory() if field.default_factory is not MISSING else field.default,
                cls,
            )
            for field in fields(cls)
        )
    return _DESCRIBED[cls]


def format_value(value: object) -> str:
    """Return a setting's value as it is written in a specification."""
    if isinstance(value, Mapping):
        table = json.dumps({text(name): one for name, one in value.items()})
        return repr(table.replace("'", "\\u0027"))  # no quotes of both kinds
    if isinstance(value, str) and not (value.isidentifier() and value not in _WORDS):
        return repr(value)
    return str(value)


def table_of(name: str, value: Mapping[Any, Any] | str | None) -> dict[str, Any]:
    """Return a mapping setting by name, empty where it is not given."""
    if isinstance(value, str):
        raise MethodError(
            f"{name} = {value!r} is a file that has not been read; give a mapping, or use "
            "dissensus.aggregate, which reads it"
        )
    return {text(key): one for key, one in (value or {}).items()}


def _parse_table(field: Field, value: str) -> dict[str, Any]:
    """Return a mapping from JSON, with values of the right type."""
    mapping = next(option for option in field.options if option.base is Mapping)
    options = _options(mapping.arguments[1])
    try:
        table = json.loads(value)
        if all(any(option.allows(one) for option in options) for one in table.values()):
            return table
    except (ValueError, AttributeError, RecursionError):
        pass
    raise MethodError(f'{field.name} = {value!r}, but it must look like {{"name": 0.9}}')


_WORDS = {"True", "False", "None"}
_NAMES: dict[Any, str] = {
    int: "a whole number",
    float: "a number",
    bool: "True or False",
    str: "a text",
    Mapping: "a mapping",
    NoneType: "None",
}
_LIMITS: dict[type, tuple[str, str, Callable[[Any, Any], bool]]] = {
    Gt: ("gt", "above", operator.gt),
    Ge: ("ge", "at least", operator.ge),
    Lt: ("lt", "below", operator.lt),
    Le: ("le", "at most", operator.le),
}


def _documented(cls: type) -> dict[str, str]:
    """Return name → text from the `Parameters` sections of a class and its bases."""
    docs: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        docs |= documented(base.__doc__ or "")
    return docs


def documented(docstring: str) -> dict[str, str]:
    r"""Return name → text from the `Parameters` section of a docstring.

    >>> documented("Add.\n\nParameters\n----------\nx, y\n    Terms.\n\nReturns\n-------")
    {'x': 'Terms.', 'y': 'Terms.'}
    """
    docs: dict[str, str] = {}
    _, _, section = cleandoc(docstring).partition("Parameters\n----------\n")
    names: list[str] = []  # of the paragraph; several are separated by commas
    for line in section.splitlines():
        if line.startswith("---"):
            for name in names:
                docs.pop(name, None)
            break
        if line and not line.startswith(" "):
            names = [name.strip() for name in line.split(",")]
            docs |= dict.fromkeys(names, "")
        elif line:
            docs |= {name: f"{docs[name]} {line.strip()}".strip() for name in names}
    return docs


def _options(kind: Any) -> tuple[Option, ...]:
    """Return the alternatives of a type."""
    options = []
    for one in get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,):
        base, *extras = get_args(one) if get_origin(one) is Annotated else (one,)
        bounds = [
            (word, getattr(bound, name), compare)
            for extra in extras
            for bound in (extra if isinstance(extra, Interval) else (extra,))
            for name, word, compare in (_LIMITS[type(bound)],)
        ]
        options.append(Option(get_origin(base) or base, get_args(base), tuple(bounds)))
    return tuple(options)
