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
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

from annotated_types import Ge, Gt, Interval, Le, Lt

from ._names import text
from .errors import MethodError

Positive = Annotated[float, Gt(0)]
NonNegative = Annotated[float, Ge(0)]
Probability = Annotated[float, Interval(ge=0, le=1)]
Count = Annotated[int, Ge(1)]


@dataclass(frozen=True, kw_only=True)
class Settings:
    """A dataclass whose fields are checked against the limits in their types."""

    def __post_init__(self) -> None:
        for field in describe_fields(type(self)):
            value = getattr(self, field.name)
            if not field.allows(value):
                raise MethodError(f"{field.name} = {value!r}, but it must be {field.limits}")
            if field.is_float and isinstance(value, int):
                object.__setattr__(self, field.name, float(value))
            if field.is_table and isinstance(value, str) and value.lstrip().startswith("{"):
                object.__setattr__(self, field.name, _parse_table(field, value))

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002
        """Return the settings by name, as scikit-learn's `clone` needs them."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


class Field(NamedTuple):
    """One setting of a method."""

    name: str
    kind: Any  # the type as written, with its limits
    default: Any  # `MISSING` where there is none
    doc: str

    @property
    def limits(self) -> str:
        """The allowed values, in words."""
        return " or ".join(_words(option) for option in _options(self.kind))

    @property
    def is_float(self) -> bool:
        """Whether integers are converted to floats."""
        bases = [_base(option) for option in _options(self.kind)]
        return float in bases and int not in bases

    @property
    def is_table(self) -> bool:
        """Whether it is a mapping, which specifications give as JSON or as the path of a file."""
        return Mapping in [_base(option) for option in _options(self.kind)]

    def allows(self, value: object) -> bool:
        """Whether a value is within the limits."""
        return any(_fits(value, option) for option in _options(self.kind))


def describe_fields(cls: type[Settings]) -> tuple[Field, ...]:
    """Return the settings of a class, with their descriptions from its docstring."""
    if cls not in _DESCRIBED:
        _DESCRIBED[cls] = _describe(cls)
    return _DESCRIBED[cls]


_DESCRIBED: dict[type[Settings], tuple[Field, ...]] = {}


def _describe(cls: type[Settings]) -> tuple[Field, ...]:
    hints = get_type_hints(cls, include_extras=True)
    docs = _documented(cls)
    return tuple(
        Field(
            field.name,
            hints[field.name],
            field.default_factory() if field.default_factory is not MISSING else field.default,
            docs.get(field.name, ""),
        )
        for field in fields(cls)
    )


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
    mapping = next(kind for kind in _options(field.kind) if get_origin(kind) is Mapping)
    kind = get_args(mapping)[1]
    try:
        table = json.loads(value)
        if all(_fits(one, kind) for one in table.values()):
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
        _, _, section = cleandoc(base.__doc__ or "").partition("Parameters\n----------\n")
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


def _options(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)


def _base(kind: Any) -> Any:
    if get_origin(kind) is Annotated:
        return get_args(kind)[0]
    return Mapping if get_origin(kind) is Mapping else kind


def _bounds(kind: Any) -> list[Any]:
    if get_origin(kind) is not Annotated:
        return []
    extras = get_args(kind)[1:]
    return [
        bound for extra in extras for bound in (extra if isinstance(extra, Interval) else (extra,))
    ]


def _fits(value: object, kind: Any) -> bool:
    if get_origin(kind) is Literal:
        return value in get_args(kind)
    base = _base(kind)
    if base is NoneType or base is None:
        return value is None
    if base is not bool and isinstance(value, bool):
        return False
    if base is float and isinstance(value, (int, float)):
        return math.isfinite(value) and all(_within(value, bound) for bound in _bounds(kind))
    return isinstance(value, base) and all(_within(value, bound) for bound in _bounds(kind))


def _within(value: Any, bound: Any) -> bool:
    attribute, _, compare = _LIMITS[type(bound)]
    return bool(compare(value, getattr(bound, attribute)))


def _words(kind: Any) -> str:
    if get_origin(kind) is Literal:
        return " or ".join(str(choice) for choice in get_args(kind))
    bounds = [
        f"{_LIMITS[type(bound)][1]} {getattr(bound, _LIMITS[type(bound)][0])}"
        for bound in _bounds(kind)
    ]
    base = _base(kind)
    name = "None" if base is NoneType else _NAMES.get(base, str(base))
    if bounds and base is int:
        return f"{name}, {' and '.join(bounds)}"
    return " and ".join(bounds) or name
