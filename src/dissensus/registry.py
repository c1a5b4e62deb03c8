"""Methods by name: `name[setting=value,…]`, as on the command line, in reports and file names.

One explicit table maps names to `module:Class`, imported when asked for. Whatever speaks of all
methods walks these tables: the command line, the docs, the promises' tests, the benchmarks.
Case, `-` and `_` make no difference; aliases may fix settings, which brackets then overrule.

>>> aggregators.create("Dawid_Skene[smoothing=1]")
DawidSkene(max_iter=200, tol=1e-06, restarts=1, smoothing=1.0)
>>> aggregators.describe(_)
'dawid-skene[smoothing=1.0]'
>>> aggregators.create("dawid")
Traceback (most recent call last):
dissensus.errors.MethodError: no method 'dawid'; did you mean dawid-skene?
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass
from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from .errors import MethodError
from .params import Settings, describe_fields, spoken

if TYPE_CHECKING:
    from .aggregation._base import Aggregator
    from .simulation._crowd import Strategy

__all__ = ["Registry", "aggregators", "simulators", "split_spec"]

Kind = TypeVar("Kind", bound=Settings)

_SPEC = re.compile(r"\s*([^\[\]]+?)\s*(?:\[(.*)\])?\s*", re.DOTALL)


@dataclass(frozen=True)
class Registry(Generic[Kind]):
    """The methods of one family."""

    family: str
    table: Mapping[str, str]  # name → module:Class
    aliases: Mapping[str, str]  # other name → specification

    def __iter__(self) -> Iterator[str]:
        return iter(self.table)

    def find(self, name: str) -> type[Kind]:
        """Return the class of a method."""
        module, _, attribute = self.table[name].partition(":")
        return cast("type[Kind]", getattr(import_module(module), attribute))

    def resolve(self, spec: str) -> tuple[str, dict[str, Any]]:
        """Return a method's own name and all settings that a specification gives."""
        name, settings = split_spec(spec)
        names = {_plain(known): known for known in self.table}
        aliases = {_plain(alias): target for alias, target in self.aliases.items()}
        if _plain(name) in names:
            return names[_plain(name)], settings
        if _plain(name) in aliases:
            known, preset = split_spec(aliases[_plain(name)])
            return known, preset | settings
        close = get_close_matches(_plain(name), [*names, *aliases], n=1, cutoff=0.5)
        written = {_plain(alias): alias for alias in self.aliases} | names
        hint = f"did you mean {written[close[0]]}?" if close else f"there are {', '.join(self)}"
        raise MethodError(f"no method {name!r}; {hint}")

    def create(self, spec: str) -> Kind:
        """Return the method that a specification describes."""
        name, settings = self.resolve(spec)
        cls = self.find(name)
        known = [field.name for field in describe_fields(cls)]
        for setting in settings:
            if setting not in known:
                raise MethodError(
                    f"{name} has no setting {setting!r}; it has {', '.join(known) or 'none'}"
                )
        for field in describe_fields(cls):
            if field.default is MISSING and field.name not in settings:
                raise MethodError(f"{name} needs {field.name}: write {name}[{field.name}=…]")
        return cls(**settings)

    def describe(self, method: Kind) -> str:
        """Return the shortest specification that makes this method again."""
        name = next(name for name in self if self.find(name) is type(method))
        told = [
            f"{field.name}={spoken(getattr(method, field.name))}"
            for field in describe_fields(type(method))
            if getattr(method, field.name) != field.default
        ]
        return f"{name}[{','.join(told)}]" if told else name

    def other_names(self, name: str) -> dict[str, str]:
        """Return the aliases of a method and what each stands for."""
        return {
            alias: target for alias, target in self.aliases.items() if split_spec(target)[0] == name
        }


def split_spec(spec: str) -> tuple[str, dict[str, Any]]:
    """Split `name[key=value,…]`; bare words are texts, the rest is read as Python literals.

    >>> split_spec("dswc[L=5, kind=soft, scale=1e-4]")
    ('dswc', {'L': 5, 'kind': 'soft', 'scale': 0.0001})
    """
    match = _SPEC.fullmatch(spec)
    if match is None:
        raise MethodError(f"cannot read {spec!r}; write name or name[setting=value,…]")
    name, inside = match.groups()
    settings: dict[str, Any] = {}
    for entry in filter(None, map(str.strip, _split_commas(inside or ""))):
        key, equals, value = map(str.strip, entry.partition("="))
        if not equals or not key:
            raise MethodError(f"cannot read {entry!r} in {spec!r}; write setting=value")
        settings[key] = _value(value)
    return name, settings


def _split_commas(text: str) -> list[str]:
    """Split at the commas that stand outside quotes."""
    return re.split(r""",(?=(?:[^'"]|'[^']*'|"[^"]*")*$)""", text)


def _value(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return text


def _plain(name: str) -> str:
    return name.casefold().replace("-", "").replace("_", "")


aggregators: Registry[Aggregator] = Registry(
    "aggregate",
    {
        "majority": "dissensus.aggregation.majority:Majority",
        "naive-soft": "dissensus.aggregation.naive_soft:NaiveSoft",
        "dawid-skene": "dissensus.aggregation.dawid_skene:DawidSkene",
    },
    {
        "MV": "majority",
        "majority-voting": "majority",
        "majority-vote": "majority",
        "NS": "naive-soft",
        # As published with peerannot: maximum likelihood, fifty rounds, no test for an earlier end.
        "DS": "dawid-skene[smoothing=0,tol=0,max_iter=50]",
    },
)

simulators: Registry[Strategy] = Registry(
    "simulate",
    {
        "hammer-spammer": "dissensus.simulation.hammer_spammer:HammerSpammer",
        "independent-confusion": "dissensus.simulation.independent_confusion:IndependentConfusion",
        "given-matrices": "dissensus.simulation.given_matrices:GivenMatrices",
        "student-teacher": "dissensus.simulation.student_teacher:StudentTeacher",
        "discrete-difficulty": "dissensus.simulation.discrete_difficulty:DiscreteDifficulty",
        "glad": "dissensus.simulation.glad:Glad",
        "mace": "dissensus.simulation.mace:Mace",
        "one-coin": "dissensus.simulation.one_coin:OneCoin",
        "community": "dissensus.simulation.community:Community",
        "ordinal": "dissensus.simulation.ordinal:Ordinal",
        "numeric": "dissensus.simulation.numeric:Numeric",
    },
    {"matrix-independent": "given-matrices"},
)
