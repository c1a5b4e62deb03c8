"""Every registered method as plain data: for `dissensus methods` and the pages in `docs/`."""

from __future__ import annotations

import sys
from dataclasses import MISSING, asdict, dataclass
from inspect import cleandoc
from typing import Any

from .params import describe_fields, spoken
from .registry import Registry, aggregators, estimators, policies, simulators

__all__ = ["Entry", "Setting", "catalogue", "entries", "entry_of"]


@dataclass(frozen=True)
class Setting:
    """One setting of a method, in words."""

    name: str
    default: str
    limits: str
    doc: str


@dataclass(frozen=True)
class Entry:
    """One method, in words."""

    family: str
    name: str
    aliases: tuple[str, ...]
    summary: str  # the class's first sentence
    text: str  # the module's docstring: the model and its paper
    settings: tuple[Setting, ...]

    @property
    def paragraphs(self) -> list[str]:
        """The text, a line for each paragraph; what was indented there begins with `> `."""
        return [
            ("> " if block.startswith("    ") else "") + " ".join(block.split())
            for block in self.text.split("\n\n")
        ]

    def as_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        return asdict(self)


def catalogue() -> list[Entry]:
    """Return all methods of all families."""
    registries: list[Registry[Any]] = [aggregators, estimators, simulators, policies]
    return [entry_of(registry, name) for registry in registries for name in registry]


def entries(name: str) -> list[Entry]:
    """Return the methods of that name or alias, in whatever family."""
    from .errors import MethodError

    registries: list[Registry[Any]] = [aggregators, estimators, simulators, policies]
    found, problem = [], None
    for registry in registries:
        try:
            found.append(entry_of(registry, registry.resolve(name)[0]))
        except MethodError as unknown:
            problem = problem or unknown
    if not found and problem:
        raise problem
    return found


def entry_of(registry: Registry[Any], name: str) -> Entry:
    """Return a method of a family, in words."""
    cls = registry.find(name)
    settings = tuple(
        Setting(
            field.name,
            "needed" if field.default is MISSING else spoken(field.default),
            field.limits,
            field.doc,
        )
        for field in describe_fields(cls)
    )
    aliases = tuple(
        alias if target == name else f"{alias} (= {target})"
        for alias, target in registry.other_names(name).items()
    )
    summary = cleandoc(cls.__doc__ or "").split("\n\n")[0].replace("\n", " ")
    text = cleandoc(sys.modules[cls.__module__].__doc__ or "")
    return Entry(registry.family, name, aliases, summary, text, settings)
