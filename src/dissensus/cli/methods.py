"""`dissensus methods`, and peerannot's `agginfo`: every registered method as plain data.

The same entries are in the pages of `docs/`.
"""

from __future__ import annotations

import ast
import re
import sys
from dataclasses import MISSING, asdict, dataclass
from importlib.util import find_spec
from inspect import cleandoc
from itertools import takewhile
from pathlib import Path
from typing import Any

from ..pages.terminal import print_table, print_text, show_json
from ..params import describe_fields, format_value
from ..registry import ON_TORCH, REGISTRIES, Registry
from .verb import command

FAILS = "When it fails: "
_COMMANDS = {  # family → command, where it is not the family's name
    "aggregate answers": "aggregate -s … on answers of another kind",
    "aggregate numbers": "aggregate -s … on numbers",
    "meta": "meta fit -s …",
}
_HEADING = re.compile(r"\w+\n---")  # of a section of a docstring
_YEAR = re.compile(r"\b(1[789]|20)\d\d\b")  # of a paper


@command()
def methods(name: str | None = None, *, as_json: bool = False) -> None:
    """List the methods and their settings; with a NAME, describe one.

    \b
    Example:
      dissensus methods dawid-skene
    """
    if name:
        show_entries(entries(name), as_json, settings=True)
    else:
        show_entries(catalogue() if as_json else outlines(), as_json)


@command()
def agginfo(*, as_json: bool = False) -> None:
    """List the methods of aggregation."""
    from ..registry import aggregators

    show_entries(entries_of(aggregators), as_json)


def show_entries(
    shown_entries: list[Entry], as_json: bool, *, settings: bool = False, title: str | None = None
) -> None:
    """Print the methods of every family, and the settings of each on request."""
    if as_json:
        show_json([entry.as_dict() for entry in shown_entries])
        return
    for verb in dict.fromkeys(entry.command for entry in shown_entries):
        rows = [
            (entry.name, entry.summary, ", ".join(entry.aliases))
            for entry in shown_entries
            if entry.command == verb
        ]
        columns = ("method", "description", "aliases")
        print_table(columns, rows, title or verb)
    for entry in shown_entries if settings else ():
        if entry.settings:
            rows_of = [
                (setting.name, setting.default, setting.limits, setting.doc)
                for setting in entry.settings
            ]
            print_table(("setting", "default", "range", "meaning"), rows_of, entry.name)
        for paragraph in entry.paragraphs:
            print_text(paragraph)


@dataclass(frozen=True)
class Setting:
    """One setting of a method."""

    name: str
    default: str
    limits: str
    doc: str


@dataclass(frozen=True)
class Entry:
    """One method of a family."""

    family: str
    name: str
    aliases: tuple[str, ...]
    summary: str  # the class's first sentence
    text: str  # the module's docstring: the model and its paper
    settings: tuple[Setting, ...]

    @property
    def paragraphs(self) -> list[str]:
        """The text, a line for each paragraph; indented ones start with `> `."""
        return [
            ("> " if block.startswith("    ") else "") + " ".join(block.split())
            for block in self.text.split("\n\n")
        ]

    @property
    def model(self) -> list[str]:
        """The model in words and formulas, which are indented blocks, without the title."""
        blocks = self.text.split("\n\n")[1:]
        return [
            block for block in blocks if not block.startswith(FAILS) and block not in self.papers
        ]

    @property
    def fails(self) -> str:
        """Where not to use it."""
        paragraphs = [paragraph for paragraph in self.paragraphs if paragraph.startswith(FAILS)]
        return paragraphs[0].removeprefix(FAILS) if paragraphs else ""

    @property
    def papers(self) -> list[str]:
        """The papers: indented blocks with a year."""
        blocks = self.text.split("\n\n")
        return [block for block in blocks if block.startswith("    ") and _YEAR.search(block)]

    @property
    def command(self) -> str:
        """The command that takes the methods of this family."""
        return f"dissensus {_COMMANDS.get(self.family, f'{self.family} -s …')}"

    @property
    def verb(self) -> str:
        """The first word of that command."""
        return self.family.split()[0]

    def as_dict(self) -> dict[str, Any]:
        """Return plain dictionaries, ready for JSON."""
        return asdict(self)


def catalogue() -> list[Entry]:
    """Return all methods of all families; those on torch only where it is installed."""
    torch = find_spec("torch") is not None
    installed = [registry for registry in REGISTRIES if torch or registry not in ON_TORCH]
    return [entry for registry in installed for entry in entries_of(registry)]


def outlines() -> list[Entry]:
    """Return all methods without their settings, from their source: only plug-ins are imported."""
    return [
        _outline(registry, name) if name in registry.table else _entry(registry, name)
        for registry in REGISTRIES
        for name in registry
    ]


def entries_of(registry: Registry[Any]) -> list[Entry]:
    """Return the methods of one family."""
    return [_entry(registry, name) for name in registry]


def entries(name: str) -> list[Entry]:
    """Return the methods with this name or alias, in all families."""
    from ..errors import MethodError

    matches, problem = [], None
    for registry in REGISTRIES:
        try:
            matches.append(_entry(registry, registry.resolve(name)[0]))
        except MethodError as unknown:
            problem = problem or unknown
    if not matches and problem:
        raise problem
    return matches


def _entry(registry: Registry[Any], name: str) -> Entry:
    """Return a method of a family."""
    cls = registry.find(name)
    settings = tuple(
        Setting(
            field.name,
            "needed" if field.default is MISSING else format_value(field.default),
            field.limits,
            field.doc,
        )
        for field in describe_fields(cls)
    )
    module = sys.modules[cls.__module__]
    family = [base.__doc__ or "" for base in cls.__mro__ if base.__module__ == cls.__module__]
    return _with_aliases(registry, name, family, file=module.__doc__ or "", settings=settings)


def _outline(registry: Registry[Any], name: str) -> Entry:
    module, _, attribute = registry.table[name].partition(":")
    package = Path(__file__).parents[1]
    file = package.joinpath(*module.split(".")[1:]).with_suffix(".py")
    tree = ast.parse(file.read_text(encoding="utf-8"))
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    family, names = [], [attribute]
    while names:
        cls = classes[names.pop(0)]
        family.append(ast.get_docstring(cls) or "")
        bases = [ast.unparse(base).partition("[")[0] for base in cls.bases]
        names += [base for base in bases if base in classes]
    return _with_aliases(registry, name, family, file=ast.get_docstring(tree) or "")


def _with_aliases(
    registry: Registry[Any],
    name: str,
    family: list[str],
    *,
    file: str,
    settings: tuple[Setting, ...] = (),
) -> Entry:
    """Return the entry of a method: its class or its file tells its model, or a class it varies."""
    aliases = tuple(
        alias if target == name else f"{alias} (= {target})"
        for alias, target in registry.other_names(name).items()
    )
    models = [_told(doc) for doc in family]
    varied = next(filter(None, models), "")  # by a class that only varies another
    text = models[0] or (cleandoc(file) if FAILS in file or not varied else varied)
    summary = cleandoc(family[0]).partition("\n\n")[0].replace("\n", " ")
    return Entry(
        family=registry.family,
        name=name,
        aliases=aliases,
        summary=summary,
        text=text,
        settings=settings,
    )


def _told(doc: str) -> str:
    """Return what a class says of its model after its summary, if it does."""
    blocks = takewhile(lambda block: not _HEADING.match(block), cleandoc(doc).split("\n\n"))
    _, *text = blocks
    return "\n\n".join(text) if any(block.startswith(FAILS) for block in text) else ""
